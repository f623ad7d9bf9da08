"""Apache's JDBC driver for Flight SQL with a server of ours, over TLS and as a user.

The driver itself has no transactions, no batch of statements without parameters, no way to stop a statement before its
first rows, and no SQLSTATE; it binds a parameter only where the server tells its type, which SQLite does not, and a
timestamp of microseconds wrongly.
"""

import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

import longshore
from longshore import _core
from tests.certificates import Certificates
from tests.fixtures import require
from tests.flight_server.conftest import BERTHS, made
from tests.flight_server.jdbc import Driver, JDBCError
from tests.servers import Endpoint

#: JDBC's number of the type VARCHAR, for NULL.
VARCHAR = 12


@pytest.fixture(scope="module")
def driver() -> Iterator[Driver]:
    """Give the driver, in one JVM."""
    with require(Driver) as running:
        yield running


@pytest.fixture(scope="module")
def urls(postgres: Endpoint, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Serve PostgreSQL and DuckDB, and give the driver's URLs for a writer and a reader."""
    folder = tmp_path_factory.mktemp("jdbc")
    files = Certificates.make(folder / "tls")
    users = folder / "users"
    users.write_text("".join(_core.user_line(name, f"{name}-knows", name) + "\n" for name in ("reader", "writer")))
    schema = f"jdbc_{uuid.uuid4().hex[:8]}"
    postgres.psql(f"CREATE SCHEMA {schema}")
    url = postgres.url(options=f"-csearch_path={schema}")
    longshore.write_sql(BERTHS, "berths", url, key="berth")
    with ExitStack() as stack:
        stack.callback(postgres.psql, f"DROP SCHEMA {schema} CASCADE")
        found = {}
        for kind, served in (("postgresql", url), ("duckdb", made("duckdb", folder))):
            tls = (files.server, files.server_key)
            server = stack.enter_context(longshore.serve(served, port=0, tls=tls, auth=users))
            place = (
                f"jdbc:arrow-flight-sql://127.0.0.1:{server.port}/?useEncryption=true&tlsRootCerts={files.authority}"
            )
            found[kind] = f"{place}&user=writer&password=writer-knows"
            found[f"{kind} reader"] = f"{place}&user=reader&password=reader-knows"
            found[f"{kind} stranger"] = f"{place}&user=reader&password=wrong"
        yield found


@pytest.fixture(params=["postgresql", "duckdb"])
def url(request: pytest.FixtureRequest, urls: dict[str, str]) -> str:
    """Give the URL of each."""
    return urls[request.param]


@pytest.fixture
def table(driver: Driver, url: str) -> Iterator[str]:
    """Give the name of a table, which goes with the test."""
    name = f"boats_{uuid.uuid4().hex[:8]}"
    yield name
    driver(url, "update", f"DROP TABLE IF EXISTS {name}")


def test_queries(driver: Driver, url: str) -> None:
    query = "SELECT berth, name FROM berths WHERE berth {} ORDER BY berth"
    found = driver(url, "query", query.format("< 3"))
    assert found == [{"berth": "1", "name": "quay 1"}, {"berth": "2", "name": "quay 2"}]
    assert driver(url, "query", query.format("< 0")) == []
    assert len(driver(url, "most", query.format("> 0"), 3)) == 3
    assert driver(url, "columns", query.format("= 1")) == [["berth", "BIGINT"], ["name", "VARCHAR"]]


def test_a_result_of_several_batches_comes_whole(driver: Driver, url: str) -> None:
    found = driver(url, "query", "SELECT n FROM generate_series(1, 30000) AS a (n)")
    assert [row["n"] for row in found] == [str(number) for number in range(1, 30_001)]


def test_each_statement_runs_once_and_is_counted(driver: Driver, url: str, table: str) -> None:
    """A count that is not known has the driver run the statement again."""
    assert driver(url, "update", f"CREATE TABLE {table} (boat BIGINT PRIMARY KEY, name VARCHAR(20))") == 0
    assert driver(url, "update", f"INSERT INTO {table} VALUES (1, 'Ada'), (2, NULL)") == 2
    assert driver(url, "execute", f"UPDATE {table} SET name = 'Bo' WHERE boat = 2") == [False, 1]
    assert driver(url, "execute", f"SELECT boat FROM {table}") == [True, -1]
    rows = driver(url, "query", f"SELECT boat, name FROM {table} ORDER BY boat")
    assert rows == [{"boat": "1", "name": "Ada"}, {"boat": "2", "name": "Bo"}]


def test_parameters_are_bound_in_their_types(driver: Driver, urls: dict[str, str]) -> None:
    url = urls["postgresql"]
    query = "SELECT name FROM berths WHERE berth = $1 OR name = $2 ORDER BY berth"
    assert driver(url, "parameters", query) == ["Int(64, true)", "Utf8"]
    found = driver(url, "query", query, ["Long", 3], ["String", "quay 7"])
    assert found == [{"name": "quay 3"}, {"name": "quay 7"}]
    for kind, value, native, text in [
        ("Short", -7, "smallint", "-7"),
        ("Int", 7, "integer", "7"),
        ("Long", 1 << 62, "bigint", str(1 << 62)),
        ("Float", 1.5, "real", "1.5"),
        ("Double", 0.1, "double precision", "0.1"),
        ("Boolean", True, "boolean", "true"),
        ("String", "ü'x", "text", "ü'x"),
        ("Bytes", "0001ff", "bytea", "\\x0001ff"),
        ("Date", "2024-02-29", "date", "2024-02-29"),
        # The driver takes its milliseconds for microseconds.
        ("Timestamp", "2024-02-29 12:34:56.123", "timestamp", "1970-01-20 18:46:50.096123"),
    ]:
        assert driver(url, "query", f"SELECT $1::{native}::text AS found", [kind, value]) == [{"found": text}], native
    assert driver(url, "query", "SELECT $1::text IS NULL AS found", ["Null", VARCHAR]) == [{"found": "True"}]


def test_batches_of_parameters_are_all_or_none(driver: Driver, urls: dict[str, str]) -> None:
    url, table = urls["postgresql"], f"boats_{uuid.uuid4().hex[:8]}"
    driver(url, "update", f"CREATE TABLE {table} (boat BIGINT PRIMARY KEY, name TEXT)")
    insert = f"INSERT INTO {table} VALUES ($1, $2)"
    assert driver(url, "update", insert, ["Long", 1], ["String", "Ada"]) == 1
    driver(url, "batch", insert, [["Long", 2], ["String", "Bo"]], [["Long", 3], ["Null", VARCHAR]])
    with pytest.raises(JDBCError, match="duplicate key"):
        driver(url, "batch", insert, [["Long", 4], ["String", "Cy"]], [["Long", 1], ["String", "Di"]])
    rows = driver(url, "query", f"SELECT boat, name FROM {table} ORDER BY boat")
    assert [tuple(row.values()) for row in rows] == [("1", "Ada"), ("2", "Bo"), ("3", None)]
    driver(url, "update", f"DROP TABLE {table}")


def test_parameters_of_duckdb_are_bound_in_the_types_that_it_resolves(driver: Driver, urls: dict[str, str]) -> None:
    url, table = urls["duckdb"], f"boats_{uuid.uuid4().hex[:8]}"
    types = (
        "boat TINYINT PRIMARY KEY, name TEXT, price DECIMAL(10, 2), length REAL, built DATE, seen TIMESTAMP, data BLOB"
    )
    driver(url, "update", f"CREATE TABLE {table} ({types})")
    insert = f"INSERT INTO {table} VALUES (?, ?, ?, ?, ?, ?, ?)"
    floats, time = "FloatingPoint(DOUBLE)", "Timestamp(MILLISECOND, null)"
    told = ["Int(64, true)", "Utf8", "Decimal(10, 2, 128)", floats, "Date(DAY)", time, "Binary"]
    assert driver(url, "parameters", insert) == told
    row = [["String", "Ada"], ["Null", VARCHAR], ["Double", 0.5], ["Date", "2024-02-29"]]
    row += [["Timestamp", "2024-02-29 12:34:56.123"], ["Bytes", "0001ff"]]
    assert driver(url, "update", insert, ["Long", 1], *row) == 1
    driver(url, "batch", insert, [["Int", 2], *row], [["Short", 3], *row])
    # The engine refuses what the driver would have cut.
    with pytest.raises(JDBCError, match="out of range"):
        driver(url, "update", insert, ["Long", 257], *row)
    query = f"SELECT boat, seen::TEXT AS seen FROM {table} WHERE boat BETWEEN ? AND ? AND built = ? ORDER BY boat"
    found = driver(url, "query", query, ["Long", 2], ["Long", 300], ["Date", "2024-02-29"])
    assert found == [{"boat": boat, "seen": "2024-02-29 12:34:56.123"} for boat in ("2", "3")]
    driver(url, "update", f"DROP TABLE {table}")


def test_a_parameter_of_an_unknown_type_is_not_bound(driver: Driver, urls: dict[str, str]) -> None:
    assert driver(urls["duckdb"], "parameters", "SELECT ? AS n") == ["Null"]
    with pytest.raises(JDBCError, match="Can't set non-null value on NullVector"):
        driver(urls["duckdb"], "query", "SELECT ? AS n", ["Long", 3])
    assert driver(urls["duckdb"], "query", "SELECT ?::BIGINT + 1 AS n", ["Long", 3]) == [{"n": "4"}]


def test_the_catalogue(driver: Driver, url: str, table: str) -> None:
    driver(url, "update", f"CREATE TABLE {table} (boat BIGINT PRIMARY KEY, berth BIGINT REFERENCES berths (berth))")

    def listed(method: str, *arguments: Any) -> list[dict[str, str]]:
        found: list[dict[str, str]] = driver(url, "catalogue", method, *arguments)
        return found

    (found,) = listed("getTables", None, None, table, None)
    assert (found["TABLE_NAME"], found["TABLE_TYPE"].lower()) == (table, "table")
    assert listed("getTables", None, None, table, ["view"]) == []
    columns = listed("getColumns", None, None, table, "%")
    assert [(each["COLUMN_NAME"], each["TYPE_NAME"], each["ORDINAL_POSITION"]) for each in columns] == [
        ("boat", "BIGINT", "1"),
        ("berth", "BIGINT", "2"),
    ]
    assert [key["COLUMN_NAME"] for key in listed("getPrimaryKeys", None, None, table)] == ["boat"]
    keys = [
        *listed("getImportedKeys", None, None, table),
        *listed("getCrossReference", None, None, "berths", None, None, table),
    ]
    keys += [key for key in listed("getExportedKeys", None, None, "berths") if key["FKTABLE_NAME"] == table]
    pairs = [(key["PKTABLE_NAME"], key["PKCOLUMN_NAME"], key["FKTABLE_NAME"], key["FKCOLUMN_NAME"]) for key in keys]
    assert pairs == [("berths", "berth", table, "berth")] * 3
    assert "table" in {row["TABLE_TYPE"].lower() for row in listed("getTableTypes")}
    assert any(row["TABLE_SCHEM"] == found["TABLE_SCHEM"] for row in listed("getSchemas"))
    assert found["TABLE_CAT"] in {row["TABLE_CAT"] for row in listed("getCatalogs")}
    assert driver(url, "catalogue", "getDatabaseProductName") in {"DuckDB", "PostgreSQL"}
    assert driver(url, "catalogue", "getIdentifierQuoteString") == '"'


def test_errors_have_the_databases_words(driver: Driver, url: str, table: str) -> None:
    with pytest.raises(JDBCError, match=r"syntax error at or near \"SELEC\""):
        driver(url, "query", "SELEC 1")
    with pytest.raises(JDBCError, match="no_such_table"):
        driver(url, "query", "SELECT 1 FROM no_such_table")
    with pytest.raises(JDBCError, match=r"(?i)could not convert|invalid input syntax"):
        driver(url, "query", "SELECT CAST(name AS INTEGER) AS n FROM berths")
    driver(url, "update", f"CREATE TABLE {table} (boat BIGINT PRIMARY KEY)")
    assert driver(url, "update", f"INSERT INTO {table} VALUES (1)") == 1
    with pytest.raises(JDBCError, match=r"(?i)duplicate key"):
        driver(url, "update", f"INSERT INTO {table} VALUES (1)")
    assert driver(url, "query", f"SELECT count(*) AS n FROM {table}") == [{"n": "1"}]


def test_a_statement_is_cancelled_between_its_rows(driver: Driver, url: str) -> None:
    million = "generate_series(1, 1000000)"
    with pytest.raises(JDBCError, match=r"(?i)cancel"):
        driver(url, "cancel", f"SELECT a.n FROM {million} AS a (n), {million} AS b (m)")
    assert driver(url, "query", "SELECT 1 AS n") == [{"n": "1"}]


def test_the_driver_has_no_transactions(driver: Driver, url: str, table: str) -> None:
    """It says that it has rolled back, and asks for nothing."""
    driver(url, "update", f"CREATE TABLE {table} (boat BIGINT)")
    assert driver(url, "undo", f"INSERT INTO {table} VALUES (1)") == 1
    assert driver(url, "query", f"SELECT count(*) AS n FROM {table}") == [{"n": "1"}]


def test_users(driver: Driver, urls: dict[str, str]) -> None:
    assert driver(urls["duckdb reader"], "query", "SELECT count(*) AS n FROM berths") == [{"n": "10"}]
    with pytest.raises(JDBCError, match=r"only reads .*25006"):
        driver(urls["duckdb reader"], "update", "DELETE FROM berths")
    with pytest.raises(JDBCError, match="the user or the password is wrong"):
        driver(urls["duckdb stranger"], "query", "SELECT 1")
    driver(urls["duckdb reader"], "close")


TYPES = [
    ("true", "BOOLEAN", "True"),
    ("(-128)::TINYINT", "TINYINT", "-128"),
    ("(-32768)::SMALLINT", "SMALLINT", "-32768"),
    ("(-2147483648)::INTEGER", "INTEGER", "-2147483648"),
    ("9223372036854775807", "BIGINT", "9223372036854775807"),
    ("1.5::REAL", "FLOAT", "1.5"),
    ("0.1::DOUBLE", "DOUBLE", "0.1"),
    ("123.45::DECIMAL(10,2)", "DECIMAL", "123.45"),
    ("12345678901234567890123456.789::DECIMAL(38,3)", "DECIMAL", "12345678901234567890123456.789"),
    ("'ü'", "VARCHAR", "ü"),
    ("'\\x01\\xff'::BLOB", "VARBINARY", "01ff"),
    ("DATE '0001-02-03'", "DATE", "0001-02-03"),
    ("TIMESTAMP '2024-02-29 12:34:56.123456'", "TIMESTAMP", "2024-02-29 12:34:56.123456"),
    ("'2024-02-29 12:34:56.123456789'::TIMESTAMP_NS", "TIMESTAMP", "2024-02-29 12:34:56.123456789"),
    ("[1, NULL]", "ARRAY", "[1,null]"),
    ("{'a': 1, 'b': 'x'}", "JAVA_OBJECT", '{"a":1,"b":"x"}'),
    ("MAP {'a': 1}", "JAVA_OBJECT", '{"a":1}'),
    # The driver's own: no type of JDBC's without a sign, milliseconds of times, and a dictionary's index for its value.
    ("255::UTINYINT", "TINYINT", "-1"),
    ("TIME '12:34:56.123456'", "TIME", "12:34:56.123"),
    ("'b'::ENUM('a', 'b')", "VARCHAR", "1"),
]


def test_types(driver: Driver, urls: dict[str, str]) -> None:
    query = f"SELECT {', '.join(f'{value} AS c{at}' for at, (value, _, _) in enumerate(TYPES))}"
    names = [column[1] for column in driver(urls["duckdb"], "columns", query)]
    (row,) = driver(urls["duckdb"], "query", query)
    found = list(zip([value for value, _, _ in TYPES], names, row.values(), strict=True))
    assert found == TYPES
