"""`longshore copy` and `longshore schema`."""

import pytest

import longshore
from tests.servers import MySQLEndpoint
from tests.shell.running import Shell

pytestmark = pytest.mark.packages


def test_a_copy(shell: Shell, url: str, lite: str) -> None:
    query = "SELECT n::int AS n, 'x' || n AS t FROM generate_series(1, :most::int) n"
    done = shell("copy", query, "--param", "most=100000", "--from", url, "--to", lite, "--table", "t", "--key", "n")
    assert (done.code, done.errors) == (0, "")
    assert done.text.startswith("100,000 rows into t in ")
    assert longshore.read_sql("SELECT count(*), max(n) FROM t", lite, return_type="arrow").to_pylist() == [
        {"count(*)": 100_000, "max(n)": 100_000}
    ]
    done = shell("copy", query, "--param", "most=3", "--from", url, "--to", lite, "--table", "t")
    assert (done.code, done.out) == (1, b"")
    upsert = ["--if-exists", "upsert", "--key", "n", "--json"]
    done = shell("copy", query, "--param", "most=3", "--from", url, "--to", lite, "--table", "t", *upsert)
    assert done.said == {**done.said, "rows": 3, "table": "t", "warnings": []}
    assert done.said["bytes"] > 0


def test_both_databases_by_name(shell: Shell, url: str, lite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGSHORE_FROM", url)
    monkeypatch.setenv("LONGSHORE_TO", lite)
    assert shell("copy", "SELECT 1 AS a", "--table", "t").code == 0
    assert shell("read", "SELECT * FROM t", "--from", lite, "--to", "-").text == "a\n1\n"


def test_the_columns_of_a_table(shell: Shell, url: str, harbour: str) -> None:
    table = f'{harbour}."Big ""Boats"'
    with longshore.connect(url) as connection:
        columns = '(n int PRIMARY KEY, "a.b" numeric(6,2), at timestamptz NOT NULL)'
        connection.execute(f"CREATE TABLE {table} {columns}")
    done = shell("schema", url, table, "--json")
    assert done.said == {
        "table": table,
        "columns": [
            {"name": "n", "native_type": "int4", "arrow_type": "int32", "nullable": False},
            {"name": "a.b", "native_type": "numeric(6,2)", "arrow_type": "decimal128(6, 2)", "nullable": True},
            {"name": "at", "native_type": "timestamptz", "arrow_type": "timestamp[us, tz=UTC]", "nullable": False},
        ],
    }
    lines = [line.split() for line in shell("schema", url, table).text.splitlines() if line.strip()]
    assert lines[0] == ["column", "database", "Arrow", "NULL"]
    assert lines[2] == ["n", "int4", "int32", "never"]
    assert shell("schema", url, f"{harbour}.none").code == 1


def test_the_columns_of_a_query(shell: Shell, url: str) -> None:
    done = shell("schema", url, "--query", "SELECT pg_sleep(60)::text AS a", "--json")
    assert [column["name"] for column in done.said["columns"]] == ["a"]
    assert shell("schema", url).code == 2
    assert shell("schema", url, "t", "--query", "SELECT 1").code == 2


def test_the_columns_elsewhere(shell: Shell, lite: str, mariadb: MySQLEndpoint) -> None:
    shell("write", "-", "--to", lite, "--table", 'a "b', "--key", "n", given=b"n,t\n1,x\n")
    said = shell("schema", lite, '"a ""b"', "--json").said
    assert [column["native_type"] for column in said["columns"]] == ["INTEGER", "TEXT"]
    mariadb.sql("CREATE DATABASE IF NOT EXISTS `sh``ell`; CREATE TABLE `sh``ell`.`t` (n int NOT NULL)")
    try:
        said = shell("schema", mariadb.url(), "sh`ell.t", "--json").said
        assert [(column["name"], column["nullable"]) for column in said["columns"]] == [("n", False)]
    finally:
        mariadb.sql("DROP DATABASE `sh``ell`")
