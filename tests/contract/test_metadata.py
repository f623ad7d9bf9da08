"""`Connection.tables` and `Connection.table_schema`: what a database holds."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import longshore
from tests.contract.conftest import Database

NAMES = ["catalog_name", "db_schema_name", "table_name", "table_type"]


@pytest.fixture
def view(database: Database, table: str) -> Iterator[str]:
    """Give a view over a table of two columns, of which one is NOT NULL; nothing where there are no views."""
    columns = ", ".join((database.column("id", "int32", "NOT NULL"), database.column("odd name", "text")))
    name = f"{table}_view"
    database.execute(f"CREATE TABLE {table} ({columns})", f"INSERT INTO {table} VALUES (1, 'a')")
    if not database.quirks.has_views:
        yield ""
        return
    database.execute(f"CREATE VIEW {name} AS SELECT * FROM {table}")
    yield name
    database.execute(f"DROP VIEW {name}")


def named(database: Database, table: str, view: str) -> list[str]:
    return [database.quirks.kept(name) for name in ([table, view] if view else [table])]


def vendor(database: Database) -> str:
    return database.quirks.vendor or database.source.removeprefix("adbc_")


def of(listed: Any, table: str) -> list[dict[str, Any]]:
    return [row for row in listed.to_pylist() if row["table_name"].startswith(table)]


def test_tables(database: Database, table: str, view: str) -> None:
    with longshore.connect(database.url, autocommit=True) as connection:
        listed = connection.tables()
        assert listed.schema.names == NAMES
        assert set(listed.schema.types) == {pa.string()}
        rows = of(listed, database.quirks.kept(table))
        kinds = zip(named(database, table, view), ["table", "view"], strict=False)
        assert [(row["table_name"], row["table_type"]) for row in rows] == list(kinds)
        # What is listed is found under the names that it is listed with.
        schemas = [connection.table_schema((row["db_schema_name"], row["table_name"])) for row in rows]
        assert [schema.names for schema in schemas] == [["id", "odd name"]] * len(rows)


def test_no_table_of_the_system_is_listed(database: Database) -> None:
    with longshore.connect(database.url, autocommit=True) as connection:
        listed = {row["table_name"] for row in connection.tables().to_pylist()}
    assert not listed & {"pg_class", "tables", "user", "sqlite_schema", "sqlite_sequence", "duckdb_tables"}


def test_the_schema_of_a_table(database: Database, table: str, view: str) -> None:
    query: Any = f"SELECT * FROM {table}"
    with longshore.connect(database.url, autocommit=True) as connection:
        schema = connection.table_schema(table)
        assert schema.equals(longshore.schema(query, connection), check_metadata=True)
        assert schema.types[0] == database.quirks.types["int32"].arrow
        assert [connection.table_schema(name).names for name in named(database, table, view)[1:]] in (
            [],
            [schema.names],
        )
        assert connection.table_schema(f'"{database.quirks.kept(table)}"') == schema
        if database.quirks.tells_not_null:
            assert [field.nullable for field in schema] == [False, True]


def test_a_table_that_is_not_there(database: Database) -> None:
    with longshore.connect(database.url, autocommit=True) as connection:
        with pytest.raises(longshore.ProgrammingError, match=r"(?i)no_such_table"):
            connection.table_schema("no_such_table")
        for name in ("", ("a", "b", "c"), 7, '"a'):
            with pytest.raises(longshore.InterfaceError):
                connection.table_schema(name)  # type: ignore[arg-type]
        assert database.rows("SELECT 1 AS n", connection) == [(1,)]


def test_in_asyncio(database: Database, table: str, view: str) -> None:
    async def found() -> tuple[list[str], list[str]]:
        async with await longshore.connect_async(database.url) as connection:
            listed = of(await connection.tables(), database.quirks.kept(table))
            return [row["table_name"] for row in listed], (await connection.table_schema(view or table)).names

    assert asyncio.run(found()) == (named(database, table, view), ["id", "odd name"])


@pytest.fixture
def family(database: Database, table: str) -> Iterator[str]:
    """Give a table with constraints, and of the same name with `_child` one that points at it where there are such."""
    unique, reference, constraints, quoted = "", "", "", database.quirks.name
    if database.quirks.has_references:
        unique = f"CONSTRAINT {table}_uq UNIQUE (code, {quoted('id')}), "
        reference = f", CONSTRAINT {table}_fk FOREIGN KEY ({quoted('parent')}) REFERENCES {table} ({quoted('id')})"
    if database.quirks.has_constraints:
        constraints = f", CONSTRAINT {table}_pk PRIMARY KEY ({quoted('id')}), {unique}"
        constraints += f"CONSTRAINT {table}_ck CHECK ({quoted('id')} > 0)"
    default = "" if database.quirks.default is None else "DEFAULT 'x'"
    database.execute(
        f"CREATE TABLE {table} ({database.column('id', 'int32', 'NOT NULL')}, code varchar(50) {default}, "
        f"amount decimal(10,2){constraints})",
        f"INSERT INTO {table} VALUES (1, 'a', 1.5), (2, 'b', NULL), (3, 'c', 0)",
        f"CREATE TABLE {table}_child ({database.column('parent', 'int32')}{reference})",
    )
    yield table
    database.execute(f"DROP TABLE {table}_child")


def objects(database: Database, table: str, **wanted: Any) -> list[dict[str, Any]]:
    """Return the tables of the current schema whose names begin so."""
    with longshore.connect(database.url, autocommit=True) as connection:
        info = connection.info()
        listed = connection.objects(table=database.quirks.kept(f"{table}%"), **wanted).to_pylist()
    (catalog,) = (each for each in listed if each["catalog_name"] == info["current_catalog"])
    (schema,) = (each for each in catalog["catalog_db_schemas"] if each["db_schema_name"] == info["current_schema"])
    tables: list[dict[str, Any]] = schema["db_schema_tables"]
    return tables


def test_columns(database: Database, family: str) -> None:
    columns = objects(database, family)[0]["table_columns"]
    assert [(each["column_name"], each["ordinal_position"]) for each in columns] == [
        ("id", 1),
        (database.quirks.kept("code"), 2),
        (database.quirks.kept("amount"), 3),
    ]
    assert [each["xdbc_type_name"] for each in columns] == list(database.quirks.listed_types)
    assert [each["xdbc_is_nullable"] for each in columns] == ["NO", "YES", "YES"]
    assert [each["xdbc_nullable"] for each in columns] == [0, 1, 1]
    defaults = [each["xdbc_column_def"] and each["xdbc_column_def"].strip("'")[0] for each in columns]
    assert defaults == [None, None if database.quirks.default is None else "x", None]
    assert [each["xdbc_data_type"] for each in columns] in ([4, 12, 2], [4, 12, 3], [2, 12, 2], [-5, 12, 2])
    numbers = [
        (each["xdbc_column_size"], each["xdbc_decimal_digits"], each["xdbc_num_prec_radix"])
        for each in (columns[0], columns[2])
    ]
    assert numbers == [(19 if columns[0]["xdbc_data_type"] == -5 else 10, 0, 10), (10, 2, 10)]
    assert [each["xdbc_is_generatedcolumn"] for each in columns] == [False] * 3


def test_constraints(database: Database, family: str) -> None:
    parent, child = objects(database, family)
    kept = database.quirks.kept
    assert (parent["table_type"], child["table_name"]) == ("table", kept(f"{family}_child"))
    found = {each["constraint_type"]: each for each in parent["table_constraints"]}
    expected = {"PRIMARY KEY": ["id"]} if database.quirks.has_constraints else {}
    if database.quirks.has_references:
        expected["UNIQUE"] = [kept("code"), "id"]
    if database.quirks.check_columns is not None:
        expected["CHECK"] = list(database.quirks.check_columns)
    assert {kind: each["constraint_column_names"] for kind, each in found.items()} == expected
    assert [each["constraint_column_usage"] for each in found.values()] == [[]] * len(found)
    if not database.quirks.has_references:
        assert child["table_constraints"] == []
        return
    (reference,) = child["table_constraints"]
    assert (reference["constraint_type"], reference["constraint_column_names"]) == ("FOREIGN KEY", ["parent"])
    with longshore.connect(database.url) as connection:
        info = connection.info()
    assert reference["constraint_column_usage"] == [
        {
            "fk_catalog": info["current_catalog"],
            "fk_db_schema": info["current_schema"],
            "fk_table": kept(family),
            "fk_column_name": "id",
        }
    ]
    names = (found["UNIQUE"]["constraint_name"], reference["constraint_name"])
    told = database.quirks.tells_constraint_names
    assert (names == (f"{family}_uq", f"{family}_fk")) is told


def test_objects_are_listed_as_deep_as_wanted(database: Database, family: str) -> None:
    with longshore.connect(database.url, autocommit=True) as connection:
        info = connection.info()
        assert str(info["vendor_name"]).lower() == vendor(database)
        assert info["vendor_version"]

        def listed(depth: Any, **wanted: Any) -> Any:
            rows = connection.objects(depth=depth, **wanted).to_pylist()
            (own,) = (each for each in rows if each["catalog_name"] == info["current_catalog"])
            return own["catalog_db_schemas"]

        assert listed("catalogs") is None
        schemas = listed("schemas")
        assert info["current_schema"] in [each["db_schema_name"] for each in schemas]
        assert {each["db_schema_tables"] is None for each in schemas} == {True}
        only = {"schema": info["current_schema"], "table": database.quirks.kept(f"{family}_ch%")}
        (schema,) = listed("tables", **only)
        assert schema["db_schema_tables"] == [
            {
                "table_name": database.quirks.kept(f"{family}_child"),
                "table_type": "table",
                "table_columns": None,
                "table_constraints": None,
            }
        ]
        assert listed("all", **only) == listed("columns", **only)
        assert connection.objects(catalog="no_such_catalog").num_rows == 0
        (schema,) = listed("all", **only, table_types=["View"])
        assert schema["db_schema_tables"] == []
        (schema,) = listed("all", **only, column="no_such_column")
        assert schema["db_schema_tables"][0]["table_columns"] == []
        assert "table" in connection.table_types()
        assert ("view" in connection.table_types()) is database.quirks.has_views
        for wrong in ({"depth": "everything"}, {"table": 7}, {"table_types": "view"}):
            with pytest.raises(longshore.InterfaceError):
                connection.objects(**wrong)


def test_statistics(database: Database, family: str) -> None:
    def rows(*, approximate: bool) -> list[dict[str, Any]]:
        with longshore.connect(database.url, autocommit=True) as connection:
            info = connection.info()
            names: dict[str, Any] = {
                "catalog": info["current_catalog"] or "",
                "schema": info["current_schema"],
                "table": database.quirks.kept(family),
            }
            found: list[dict[str, Any]] = connection.statistics(approximate=approximate, **names).to_pylist()
        if approximate and not database.quirks.estimates_rows:
            return found
        (catalog,) = found
        assert catalog["catalog_name"] == info["current_catalog"]
        (schema,) = catalog["catalog_db_schemas"]
        assert schema["db_schema_name"] == info["current_schema"]
        return list(schema["db_schema_statistics"])

    counted = {
        "table_name": database.quirks.kept(family),
        "column_name": None,
        "statistic_key": 6,
        "statistic_value": 3,
        "statistic_is_approximate": False,
    }
    assert rows(approximate=False) == [counted]
    if database.quirks.analyze is None:
        assert rows(approximate=True) == ([counted] if database.quirks.estimates_rows else [])
        return
    database.execute(database.quirks.analyze.format(table=family))
    estimated = rows(approximate=True)
    assert [each for each in estimated if each["statistic_key"] == 6] == [
        counted | {"statistic_value": 3.0, "statistic_is_approximate": True}
    ]
    assert {each["statistic_is_approximate"] for each in estimated} == {True}


def test_statistics_of_a_table_with_children_and_an_expression_index(postgres: Any) -> None:
    url = postgres.url()
    with longshore.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE kin_parent (id bigint)")
        connection.execute("CREATE TABLE kin_child () INHERITS (kin_parent)")
        connection.execute("CREATE TABLE kin_parts (id bigint) PARTITION BY RANGE (id)")
        connection.execute("CREATE TABLE kin_part PARTITION OF kin_parts DEFAULT")
        connection.execute("CREATE INDEX kin_index ON kin_parent ((id + 1))")
        try:
            connection.execute("INSERT INTO kin_parent SELECT generate_series(1, 10)")
            connection.execute("INSERT INTO kin_child SELECT generate_series(1, 30)")
            connection.execute("INSERT INTO kin_parts SELECT generate_series(1, 7)")
            connection.execute("ANALYZE kin_parent, kin_child, kin_parts")
            (catalog,) = connection.statistics(table="kin%").to_pylist()
        finally:
            connection.execute("DROP TABLE kin_parent, kin_child, kin_parts")
    (schema,) = catalog["catalog_db_schemas"]
    distinct = {
        row["table_name"]: row["statistic_value"] for row in schema["db_schema_statistics"] if row["statistic_key"] == 1
    }
    assert distinct == {"kin_parent": 10.0, "kin_child": 30.0, "kin_parts": 7.0, "kin_part": 7.0}
    keys = [(row["table_name"], row["column_name"], row["statistic_key"]) for row in schema["db_schema_statistics"]]
    assert len(keys) == len(set(keys)) == 16


def test_a_schema_becomes_the_current_one(database: Database) -> None:
    with longshore.connect(database.url) as connection, database.can("a current schema"):
        connection.use_schema("information_schema")
        connection.rollback()
        with pytest.raises(longshore.DatabaseError, match="no_such_schema"):
            connection.use_schema("no_such_schema")
        assert connection.info()["current_schema"] == "information_schema"


def test_the_catalogue_is_read_in_the_transaction(database: Database) -> None:
    with longshore.connect(database.url) as connection:
        connection.objects(depth="catalogs")
        assert connection.in_transaction
        connection.rollback()
        assert not connection.in_transaction


def test_objects_in_asyncio(database: Database, family: str) -> None:
    async def found() -> tuple[int, list[str]]:
        async with await longshore.connect_async(database.url) as connection:
            listed = await connection.statistics(table=database.quirks.kept(family), approximate=False)
            return listed.num_rows, await connection.table_types()

    assert asyncio.run(found())[0] == 1


def test_the_methods_of_adbc_leave_no_transaction(database: Database, family: str) -> None:
    with longshore.connect(database.url) as connection:
        listed = connection.adbc_get_objects(depth="db_schemas").read_all()
        assert (
            connection.adbc_get_objects(table_name_filter=database.quirks.kept(family)).read_all().num_rows
            == listed.num_rows
        )
        counted = connection.adbc_get_statistics(
            table_name_filter=database.quirks.kept(family), approximate=False
        ).read_all()
        assert counted.num_rows == 1
        assert "table" in connection.adbc_get_table_types()
        info = connection.adbc_get_info()
        assert (str(info["vendor_name"]).lower(), info["driver_name"]) == (vendor(database), "Longshore")
        assert connection.in_transaction is False
        assert listed.equals(connection.objects(depth="schemas"))
        connection.rollback()
    with longshore.connect(database.url, autocommit=True) as connection, database.can("a current schema"):
        connection.adbc_current_db_schema = "information_schema"
        assert connection.adbc_current_db_schema == "information_schema"
