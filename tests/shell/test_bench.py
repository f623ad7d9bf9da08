"""`longshore bench`, `longshore demo`, help and completion."""

import pytest

import longshore
from tests.servers import Endpoint, MySQLEndpoint
from tests.shell.running import Shell, alone


def test_a_bench(shell: Shell, url: str) -> None:
    query = "SELECT n, repeat('x', 100) AS t FROM generate_series(1, :most::int) n"
    arguments = ["bench", query, "--from", url, "--param", "most=50000", "--repeat", "2"]
    said = shell(*arguments, "--json").said
    assert said["repeat"] == 2
    assert [run["into"] for run in said["results"]] == ["pandas", "arrow", "polars", "numpy", "arrow_stream"]
    for run in said["results"]:
        assert run["rows"] == 50_000
        assert run["bytes"] > 5_000_000
        assert run["rows_per_second"] == pytest.approx(run["rows"] / run["seconds"])
        assert run["megabytes_per_second"] == pytest.approx(run["bytes"] / run["seconds"] / 1e6)
    assert max(run["peak_bytes"] for run in said["results"]) > 1 << 20
    done = shell("bench", query, "--from", url, "--param", "most=5", "--into", "arrow", "--repeat", "1")
    lines = [line.split() for line in done.text.splitlines() if line.strip()]
    assert lines[0] == ["into", "rows", "seconds", "rows/s", "MB/s", "peak", "MiB"]
    assert lines[2][:2] == ["arrow", "5"]


def test_a_bench_that_fails(shell: Shell, url: str) -> None:
    done = shell("bench", "SELECT nosuch", "--from", url, "--json")
    assert (done.code, done.failure["kind"], done.failure["sqlstate"]) == (1, "ProgrammingError", "42703")
    assert shell("bench", "SELECT 1", "--from", url, "--into", "modin").code == 2


def test_a_demo_of_sqlite(shell: Shell) -> None:
    done = shell("demo", "--rows", "1000")
    assert (done.code, done.errors) == (0, "")
    assert done.text.startswith("1,000 rows written into sqlite in ")
    assert "boat 5" in done.text


def test_a_demo_of_a_server(shell: Shell, url: str, postgres: Endpoint, mariadb: MySQLEndpoint) -> None:
    mariadb.sql("CREATE DATABASE IF NOT EXISTS demo")
    try:
        for place in (url, mariadb.url(database="demo")):
            said = shell("demo", "--from", place, "--rows", "1000", "--json").said
            assert (said["written"]["rows"], said["written"]["warnings"]) == (1000, [])
            assert {run["rows"] for run in said["results"]} == {1000}
        assert mariadb.sql("SHOW TABLES FROM demo") == []
    finally:
        mariadb.sql("DROP DATABASE demo")
    assert postgres.psql("SELECT count(*) FROM pg_class WHERE relname LIKE 'longshore_demo%'") == "0"


@pytest.mark.parametrize("name", ["read", "write", "copy", "sql", "schema", "demo", "bench"])
def test_help(name: str, shell: Shell) -> None:
    done = shell(name, "--help")
    assert (done.code, done.errors) == (0, "")
    assert f"longshore {name}" in done.text
    assert shell(name, "-h").text == done.text


def test_the_version(shell: Shell) -> None:
    assert shell("--version").text == shell("-V").text == f"longshore {longshore.__version__}\n"
    assert "Load and unload databases" in shell().text
    assert shell("nosuch").code == 2


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_completion(name: str) -> None:
    done = alone("--show-completion", name)
    assert (done.code, done.errors) == (0, "")
    assert "_LONGSHORE_COMPLETE" in done.text


def test_what_bash_completes() -> None:
    done = alone(_LONGSHORE_COMPLETE="complete_bash", COMP_WORDS="longshore sch", COMP_CWORD="1")
    assert done.text.split() == ["schema"]
    done = alone(_LONGSHORE_COMPLETE="complete_bash", COMP_WORDS="longshore read x --part", COMP_CWORD="3")
    assert done.text.split() == ["--partition-on", "--partition-num"]
