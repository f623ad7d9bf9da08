"""How a query names tables and columns of attached databases."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import longshore
from tests.servers import Endpoint, MySQLEndpoint
from tests.sql.remote.conftest import url

pytestmark = pytest.mark.packages


@pytest.fixture
def named(postgres: Endpoint) -> Iterator[dict[str, Any]]:
    """Give a PostgreSQL whose names are hard to tell apart."""
    postgres.psql("""
        CREATE SCHEMA "Pier"; CREATE SCHEMA quay;
        CREATE TABLE "Pier"."Ships" ("Id" int, name text); INSERT INTO "Pier"."Ships" VALUES (1, 'upper');
        CREATE TABLE "Pier".boats (id int, "Odd ""name"" x" text); INSERT INTO "Pier".boats VALUES (1, 'b');
        CREATE TABLE quay.ships (id int); INSERT INTO quay.ships VALUES (2);
        CREATE TABLE quay."SHIPS" (id int); INSERT INTO quay."SHIPS" VALUES (3);
        CREATE TABLE quay.twins (a int, "A" int, b int); INSERT INTO quay.twins VALUES (1, 2, 3);
        CREATE TABLE quay.bare ();
        CREATE TABLE quay."select" ("from" int, "all" int); INSERT INTO quay."select" VALUES (1, 5), (2, 5);
        CREATE VIEW quay.seen AS SELECT id * 2 AS twice FROM quay.ships;
    """)
    yield {"pg": postgres.url()}
    postgres.psql('DROP SCHEMA "Pier", quay CASCADE')


def one(query: str, attach: dict[str, Any], **more: Any) -> Any:
    """Give the one value of a query."""
    ((value,),) = longshore.sql(query, attach=attach, return_type="arrow", **more).to_pandas().to_numpy().tolist()
    return value


@pytest.mark.parametrize(
    ("query", "value"),
    [
        ("SELECT name FROM pg.pier.ships", "upper"),
        ("SELECT ID FROM PG.PIER.SHIPS", 1),
        ('SELECT "id" FROM "pg"."Pier"."Ships"', 1),
        ("SELECT pg.pier.ships.id FROM pg.pier.ships WHERE pier.ships.id = 1 AND ships.id = 1", 1),
        ("SELECT max(md5(pg.pier.ships.name)) IS NULL FROM pg.pier.ships WHERE pier.ships.id = 1", False),
        ('SELECT "odd ""NAME"" X" FROM pg.Pier.Boats', "b"),
        ("SELECT id FROM pg.quay.ships", 2),
        ('SELECT id FROM pg.quay."SHIPS"', 3),
        ("SELECT b FROM pg.quay.twins", 3),
        ("SELECT twice FROM pg.quay.seen AS ships", 4),
        ('SELECT sum("from") FROM pg.quay."select"', 3),
        ("SELECT x.id FROM pg . /* a remark */ quay . ships x", 2),
        ("WITH ships AS (SELECT 9 AS id) SELECT ships.id FROM ships, pg.quay.ships AS other", 9),
        ("SELECT s FROM (SELECT s.id AS s FROM pg.quay.ships s, pg.quay.seen) AS d", 2),
        ("FROM pg.quay.ships", 2),
        ("TABLE pg.quay.ships", 2),
        ("SELECT (SELECT max(id) FROM pg.quay.ships)", 2),
        ("SELECT len(list(t)) FROM pg.quay.twins AS t(x, y, z)", None),
    ],
)
def test_names_are_found(named: dict[str, Any], query: str, value: Any) -> None:
    if value is None:
        with pytest.raises(longshore.NotSupportedError, match="'a' and 'A'"):
            one(query, named)
    else:
        assert one(query, named) == value


def test_a_name_that_is_not_clear_is_an_error(named: dict[str, Any]) -> None:
    with pytest.raises(longshore.ProgrammingError, match=r"quay.SHIPS and quay.ships"):
        one("SELECT id FROM pg.quay.Ships", named)


def test_columns_that_differ_in_case_are_an_error_when_needed(named: dict[str, Any]) -> None:
    with pytest.raises(longshore.NotSupportedError, match="'a' and 'A'"):
        one("SELECT a FROM pg.quay.twins", named)


@pytest.mark.parametrize(
    ("table", "text"),
    [
        ("pg.quay.nothing", "is not there"),
        ("pg.nowhere.ships", "is not there"),
        ("pg.ships", "is not there"),
        ("pg.quay.bare", "has no columns"),
        ("pg.quay.ships.id", "is not a table"),
    ],
)
def test_what_is_no_table_is_an_error(named: dict[str, Any], table: str, text: str) -> None:
    with pytest.raises(longshore.DatabaseError, match=text):
        one(f"SELECT * FROM {table}", named)


@pytest.mark.usefixtures("named")
def test_the_search_path_is_the_sources(postgres: Endpoint) -> None:
    with longshore.connect(postgres.url(), autocommit=True) as connection:
        connection.execute('SET search_path = "Pier", quay')
        attach = {"pg": connection}
        assert one('SELECT name FROM pg."Ships" WHERE id > 0', attach) == "upper"
        assert one("SELECT twice FROM pg.seen", attach) == 4
        connection.execute("CREATE TEMPORARY TABLE boats AS SELECT 7 AS id")
        assert one("SELECT id FROM pg.boats", attach) == 7


def test_group_by_a_column_called_all(named: dict[str, Any]) -> None:
    assert one('SELECT count(*) FROM pg.quay."select" GROUP BY "all"', named) == 2


@pytest.mark.parametrize(
    "query",
    [
        "INSERT INTO pg.quay.ships VALUES (4)",
        "DELETE FROM pg.quay.ships",
        "UPDATE pg.quay.ships SET id = 4",
        "CREATE TABLE pg.quay.more AS SELECT 1 AS id",
        "DROP TABLE pg.quay.ships",
        "TRUNCATE pg.quay.ships",
    ],
)
def test_sources_are_only_read(named: dict[str, Any], query: str) -> None:
    with pytest.raises(longshore.NotSupportedError, match="only reads"):
        longshore.sql(query, attach=named)
    assert one("SELECT count(*) FROM pg.quay.ships", named) == 1


def test_what_the_parser_does_not_know_is_found_by_its_words(named: dict[str, Any]) -> None:
    plan = longshore.sql("EXPLAIN SELECT id FROM pg.quay.ships JOIN pg.pier.boats b USING (id)", attach=named)
    assert "SCAN" in str(plan.to_numpy().tolist())


def test_copy_writes_what_it_reads(named: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "ships.parquet"
    longshore.sql(f"COPY (SELECT * FROM pg.quay.ships WHERE id = 2) TO '{path}'", attach=named)
    assert longshore.sql(f"SELECT id FROM '{path}'", return_type="arrow").to_pydict() == {"id": [2]}


def test_several_statements(named: dict[str, Any]) -> None:
    query = "CREATE TEMP TABLE s AS SELECT * FROM pg.quay.ships; SELECT s.id + t.id FROM s, pg.quay.ships AS t"
    assert one(query, named) == 4


@pytest.mark.parametrize("name", ["main", "temp", "SYSTEM", ""])
def test_names_that_the_engine_has_are_refused(name: str) -> None:
    with pytest.raises(longshore.InterfaceError, match="attach"):
        longshore.sql("SELECT 1", attach={name: "sqlite://"})


def test_names_that_differ_in_case_are_refused() -> None:
    with pytest.raises(longshore.InterfaceError, match="another's name"):
        longshore.sql("SELECT 1", attach={"a": "sqlite://", "A": "sqlite://"})


def test_what_is_no_connection_is_refused() -> None:
    with pytest.raises(longshore.InterfaceError, match="conn is a URL"):
        longshore.sql("SELECT 1", attach={"pg": 7})  # type: ignore[dict-item]
    with pytest.raises(longshore.InterfaceError, match="attach is a dict"):
        longshore.sql("SELECT 1", attach=["pg"])  # type: ignore[call-overload]


def test_mysql_names(mariadb: MySQLEndpoint) -> None:
    mariadb.sql("CREATE TABLE `Mixed Case` (`Id` int, `hid` int INVISIBLE); INSERT INTO `Mixed Case` VALUES (1)")
    try:
        attach = {"my": mariadb.url()}
        assert one('SELECT ID FROM my."mixed case" WHERE id = 1', attach) == 1
        assert one('SELECT * FROM my.test."Mixed Case"', attach) == 1
    finally:
        mariadb.sql("DROP TABLE `Mixed Case`")


def test_names_that_a_collation_finds_are_others(mariadb: MySQLEndpoint) -> None:
    mariadb.sql("CREATE DATABASE `caféine`; CREATE TABLE `caféine`.`café` (id int)")
    mariadb.sql("INSERT INTO `caféine`.`café` VALUES (1)")
    try:
        attach = {"my": mariadb.url(database="caféine")}
        for table in ("cafe", "caféine.cafe", "cafeine.café", '"café "'):
            with pytest.raises(longshore.ProgrammingError, match="is not there"):
                one(f"SELECT id FROM my.{table}", attach)
        for table in ("café", "CAFÉ", "Caféine.Café"):
            assert one(f"SELECT id FROM my.{table}", attach) == 1
    finally:
        mariadb.sql("DROP DATABASE `caféine`")


def test_sqlite_names(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with sqlite3.connect(path) as connection:
        connection.executescript(
            'CREATE TABLE "Odd Table" (id int, "a""b" text); INSERT INTO "Odd Table" VALUES (1, 2)'
        )
        connection.executescript("ATTACH ':memory:' AS aux; CREATE TABLE aux.t (id int); INSERT INTO aux.t VALUES (5)")
        for attach in ({"lite": url(path)}, {"lite": connection}):
            assert one('SELECT "A""B" FROM lite."odd table"', attach) == "2"
            assert one('SELECT id FROM lite.MAIN."odd table" WHERE id = 1', attach) == 1
        assert one("SELECT id FROM lite.aux.t", {"lite": connection}) == 5
    connection.close()


@pytest.mark.parametrize("url", ["host=127.0.0.1 user=me password=hidden", "me:hidden@127.0.0.1/db"])
def test_what_is_no_url_is_not_shown(url: str) -> None:
    with pytest.raises(longshore.InterfaceError, match="not a URL") as caught:
        longshore.sql("SELECT * FROM pg.t", attach={"pg": url})
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize("query", ["SHOW TABLES FROM db", "SHOW ALL TABLES", "FROM (show all tables)"])
@pytest.mark.parametrize("source", ["pg", "my", "lite"])
def test_what_lists_tables_is_in_the_hint(source: str, query: str, request: pytest.FixtureRequest) -> None:
    attach = {"db": request.getfixturevalue(source).attach[source]}
    with pytest.raises(longshore.NotSupportedError, match="SHOW lists the engine's own tables") as caught:
        longshore.sql(query, attach=attach)
    found = longshore.sql(str(caught.value.hint), attach=attach, return_type="arrow")
    assert "hostile" in found.columns[-1].to_pylist()


def test_a_time_of_mysql_is_an_interval(mariadb: MySQLEndpoint) -> None:
    mariadb.sql("CREATE TABLE spans (t time(6)); INSERT INTO spans VALUES ('-838:59:58.000001')", database="test")
    query = "SELECT {} FROM my.spans"
    attach = {"my": mariadb.url(database="test")}
    found = longshore.sql(query.format("t"), attach=attach, return_type="arrow")
    assert found.schema.types == [pa.month_day_nano_interval()]
    assert one(query.format("epoch_us(t)"), attach) == -3020398000001
    assert longshore.read_sql("SELECT t FROM spans", attach["my"], return_type="arrow")["t"].cast("int64")[
        0
    ].as_py() == (-3020398000001)
    mariadb.sql("DROP TABLE spans", database="test")
