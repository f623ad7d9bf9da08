"""Apache's own example servers, in Go over SQLite and in Java over Derby: reads, parameters, updates, errors."""

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import pytest

import longshore
from tests.fixtures import require
from tests.servers import GoFlight, JavaFlight

ROWS = [(1, "one", 1, 1), (2, "zero", 0, 1), (3, "negative one", -1, 1)]


@contextmanager
def rows_gone(url: str) -> Iterator[None]:
    """Delete what the block has added."""
    try:
        yield
    finally:
        with longshore.connect(url, autocommit=True) as connection:
            connection.cursor().execute("DELETE FROM intTable WHERE value > 100")


@pytest.fixture(scope="module", params=[GoFlight, JavaFlight], ids=["go", "java"])
def foreign(request: pytest.FixtureRequest) -> Iterator[GoFlight | JavaFlight]:
    """Give a server that is not ours."""
    with require(request.param) as server:
        yield server


def test_a_table_is_read(foreign: GoFlight | JavaFlight) -> None:
    found = longshore.read_sql("SELECT * FROM intTable ORDER BY id", foreign.url(), return_type="arrow")
    assert [tuple(row.values()) for row in found.to_pylist()][:3] == ROWS
    is_go = isinstance(foreign, GoFlight)
    integer = pa.int64() if is_go else pa.int32()
    assert found.schema.types == [integer, pa.string(), integer, integer]
    assert found.schema.field(0).nullable == is_go


def test_a_frame_has_the_servers_types(foreign: GoFlight | JavaFlight) -> None:
    frame = longshore.read_sql("SELECT * FROM intTable WHERE id < 3 ORDER BY id", foreign.url())
    assert [tuple(row) for row in frame.itertuples(index=False)] == ROWS[:2]


@pytest.mark.parametrize("params", [["one"], {"name": "one"}])
def test_parameters_are_bound_by_the_server(foreign: GoFlight | JavaFlight, params: list[str] | dict[str, str]) -> None:
    place = ":name" if isinstance(params, dict) else "?"
    query = f"SELECT value FROM intTable WHERE keyName = {place}"
    found = longshore.read_sql(query, foreign.url(), params=params, return_type="arrow")
    assert found.column(0).to_pylist() == [1]


def test_a_statement_is_closed_before_the_next(foreign: GoFlight | JavaFlight) -> None:
    query = "SELECT value FROM intTable WHERE keyName = ?"
    # The server in Java fails at one in twenty, if the last is being closed meanwhile.
    with longshore.connect(foreign.url(), autocommit=True) as connection:
        for _ in range(50):
            assert connection.execute(query, ["one"]) == 1


def test_a_parameter_too_many_is_an_error(foreign: GoFlight | JavaFlight) -> None:
    with pytest.raises(longshore.Error):
        longshore.read_sql("SELECT value FROM intTable WHERE id = ?", foreign.url(), params=[1, 2])


def test_schemas_are_told_before_a_query_runs(foreign: GoFlight | JavaFlight) -> None:
    query = "SELECT id, keyName FROM intTable"
    if isinstance(foreign, GoFlight):
        with pytest.raises(longshore.NotSupportedError, match="does not tell"):
            longshore.schema(query, foreign.url())
    else:
        assert longshore.schema(query, foreign.url()).types == [pa.int32(), pa.string()]


def test_changes_are_counted_and_kept(foreign: GoFlight | JavaFlight) -> None:
    url = foreign.url()
    with rows_gone(url), longshore.connect(url, autocommit=True) as connection:
        cursor = connection.cursor()
        cursor.execute("INSERT INTO intTable (keyName, value) VALUES ('a', 101)")
        assert cursor.rowcount == 1
        cursor.execute("INSERT INTO intTable (keyName, value) VALUES (?, ?)", ("b", 102))
        assert cursor.rowcount == 1
        cursor.execute("SELECT keyName, value FROM intTable WHERE value > 100 ORDER BY value")
        assert cursor.fetchall() == [("a", 101), ("b", 102)]
        cursor.execute("UPDATE intTable SET value = 103 WHERE value > 100")
        assert cursor.rowcount == 2


def test_transactions(foreign: GoFlight | JavaFlight) -> None:
    """The server in Java has none."""
    url, insert = foreign.url(), "INSERT INTO intTable (keyName, value) VALUES (?, ?)"
    with rows_gone(url), longshore.connect(url) as connection:
        cursor = connection.cursor()
        if isinstance(foreign, JavaFlight):
            cursor.execute("SELECT count(*) FROM intTable")
            with pytest.raises(longshore.NotSupportedError, match="no transactions"):
                cursor.execute(insert, ("c", 104))
        else:
            cursor.executemany(insert, [("c", 104), ("d", None), (None, 105)])
            assert cursor.rowcount == 3
            cursor.execute("SELECT keyName, value FROM intTable WHERE id > 4 ORDER BY id")
            assert cursor.fetchall() == [("c", 104), ("d", None), (None, 105)]
            connection.rollback()
            cursor.execute("SELECT count(*) FROM intTable WHERE id > 4")
            assert cursor.fetchall() == [(0,)]
            cursor.execute(insert, ("e", 106))
            connection.commit()
            found = longshore.read_sql("SELECT keyName FROM intTable WHERE value = 106", url, return_type="arrow")
            assert found.num_rows == 1


@pytest.mark.parametrize("query", ["SELEC 1", "SELECT * FROM nowhere", "SELECT 1 / 'a' FROM nowhere WHERE x = ?"])
def test_the_servers_words_arrive(foreign: GoFlight | JavaFlight, query: str) -> None:
    params = ["a"] if "?" in query else None
    with pytest.raises(longshore.Error, match=r"(?i)syntax|nowhere|internal|error"):
        longshore.read_sql(query, foreign.url(), params=params)


def test_a_statement_without_rows_is_not_run_as_a_query(foreign: GoFlight | JavaFlight) -> None:
    with pytest.raises(longshore.ProgrammingError, match="returns no rows, and was not run"):
        longshore.read_sql("DELETE FROM intTable", foreign.url())
    assert len(longshore.read_sql("SELECT * FROM intTable", foreign.url())) >= 3


def test_a_list_of_queries_and_a_stream(foreign: GoFlight | JavaFlight) -> None:
    queries = ["SELECT keyName FROM intTable WHERE id = 1", "SELECT keyName FROM intTable WHERE id = 2"]
    found = longshore.read_sql(queries, foreign.url(), return_type="arrow")
    assert found.column(0).to_pylist() == ["one", "zero"]
    stream = longshore.read_sql("SELECT id FROM intTable", foreign.url(), return_type="arrow_stream", batch_size=2)
    assert next(iter(stream)).num_rows == 2


def test_a_pool_serves_several(foreign: GoFlight | JavaFlight) -> None:
    with longshore.Pool(foreign.url(), size=2) as pool:
        for _ in range(5):
            assert len(longshore.read_sql("SELECT id FROM intTable WHERE id = 1", pool)) == 1


def test_a_table_by_its_name_in_sql(foreign: GoFlight | JavaFlight) -> None:
    attach = {"harbour": foreign.url()}
    query = "SELECT keyName AS k FROM harbour.intTable WHERE id = 2 AND value IS NOT NULL"
    assert longshore.sql(query, attach=attach, return_type="arrow").to_pylist() == [{"k": "zero"}]
    query = "SELECT a.id AS n FROM harbour.intTable a JOIN harbour.intTable b ON a.id = b.value + 1 WHERE b.id = 1"
    assert longshore.sql(query, attach=attach, return_type="arrow").to_pylist() == [{"n": 2}]


def tables(objects: list[dict]) -> dict[str, dict]:  # type: ignore[type-arg]
    """Return the tables of `adbc_get_objects` by name."""
    schemas = [schema for catalog in objects for schema in catalog["catalog_db_schemas"] or []]
    return {table["table_name"]: table for schema in schemas for table in schema["db_schema_tables"] or []}


def test_objects_are_listed(foreign: GoFlight | JavaFlight) -> None:
    is_go = isinstance(foreign, GoFlight)
    with longshore.connect(foreign.url()) as connection:
        found = tables(connection.adbc_get_objects().read_all().to_pylist())
        # Derby's names are in capitals.
        names = ["intTable", "foreignTable"] if is_go else ["INTTABLE", "FOREIGNTABLE"]
        assert set(names) <= set(found)
        columns = [column["column_name"] for column in found[names[0]]["table_columns"]]
        expected = ["id", "keyName", "value", "foreignId"]
        assert columns == (expected if is_go else [name.upper() for name in expected])
        keys = {each["constraint_type"]: each for each in found[names[0]]["table_constraints"]}
        assert keys["PRIMARY KEY"]["constraint_column_names"] == columns[:1]
        assert keys["FOREIGN KEY"]["constraint_column_usage"][0]["fk_table"] == names[1]
        if is_go:
            # It is that of a query over the table, which this server does not tell.
            with pytest.raises(longshore.NotSupportedError, match="does not tell"):
                connection.adbc_get_table_schema(names[0])
        else:
            assert connection.adbc_get_table_schema(names[0]).names == columns
        assert ("table" if is_go else "TABLE") in connection.adbc_get_table_types()
        assert connection.adbc_get_info()["vendor_name"] == ("db_name" if is_go else "Apache Derby")
