"""`longshore sql`: SQL over files and attached databases, with the results of `longshore read`."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import longshore
from tests.servers import MySQLEndpoint
from tests.shell.running import Shell

pytestmark = pytest.mark.packages


@pytest.fixture
def boats(tmp_path: Path) -> str:
    """Give the name of a file of rows."""
    file = tmp_path / "boats.parquet"
    pq.write_table(pa.table({"berth": [1, 2, 2, None], "tons": [10.5, 4.0, None, 1.0]}), file)
    return str(file)


def test_a_preview(shell: Shell, boats: str) -> None:
    query = f"SELECT berth, sum(tons) AS tons FROM '{boats}' GROUP BY berth ORDER BY berth"
    done = shell("sql", query, "--rows", "2")
    lines = [line.split() for line in done.text.splitlines() if line.strip()]
    assert (lines[0], lines[3], lines[4]) == (["berth", "tons"], ["1", "10.5"], ["2", "4"])
    assert " ".join(lines[5]) == "the first 2 rows of more; the rest was not read"
    said = shell("sql", query, "--json").said
    assert (said["rows"], said["more"]) == ([[1, 10.5], [2, 4], [None, 1]], False)


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "arrows", "csv", "json", "csv.gz", "csv.zst", "jsonl.gz"])
def test_there_and_back(suffix: str, shell: Shell, boats: str, tmp_path: Path) -> None:
    file = tmp_path / f"out.{suffix}"
    done = shell("sql", f"FROM '{boats}'", "--to", str(file), "--json")
    form = suffix.partition(".")[0].removesuffix("l")
    assert done.said == {
        **done.said,
        "rows": 4,
        "bytes_read": None,
        "bytes": file.stat().st_size,
        "format": form,
        "warnings": [],
    }
    assert longshore.sql(f"FROM '{file}'", return_type="arrow").to_pylist() == pq.read_table(boats).to_pylist()


def test_a_delimiter(shell: Shell, boats: str) -> None:
    done = shell("sql", f"FROM '{boats}' WHERE berth = 2", "--to", "-", "--delimiter", "|")
    assert (done.text, done.errors) == ("berth|tons\n2|4\n2|\n", "")


def test_parameters_and_options(shell: Shell) -> None:
    done = shell("sql", "SELECT $n + 1 AS n, :t AS t", "--param", "n=5", "--param", "t=007", "--to", "-")
    assert done.text == "n,t\n6,007\n"
    done = shell("sql", "SELECT ? + ? AS n", "--arg", "5", "--arg", "-3", "--to", "-")
    assert done.text == "n\n2\n"
    done = shell("sql", "SELECT current_setting('threads') AS n", "--option", "threads=1", "--to", "-")
    assert done.text == "n\n1\n"


def test_attached_databases(
    *,
    shell: Shell,
    boats: str,
    url: str,
    harbour: str,
    lite: str,
    mariadb: MySQLEndpoint,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    longshore.write_sql(pa.table({"berth": [1, 2], "name": ["a", "b"]}), f"{harbour}.berths", url)
    longshore.write_sql(pa.table({"name": ["a", "b"], "flag": [True, False]}), "flags", lite)
    mariadb.sql("CREATE DATABASE IF NOT EXISTS shell_sql; CREATE TABLE shell_sql.fees (berth int, fee decimal(6,2))")
    mariadb.sql("INSERT INTO shell_sql.fees VALUES (1, 1.50), (2, 2.25)")
    monkeypatch.setenv("HARBOUR", url)
    monkeypatch.setenv("FEES", mariadb.url(database="shell_sql"))
    query = f"""
        SELECT name, fee, flag, sum(tons) AS tons FROM '{boats}' JOIN pg.{harbour}.berths USING (berth)
        JOIN my.fees USING (berth) JOIN lite.flags USING (name) GROUP BY ALL ORDER BY ALL
    """
    try:
        attached = ["--attach", "pg=env:HARBOUR", "--attach", "my=$FEES", "--attach", f"lite={lite}"]
        done = shell("sql", query, *attached, "--to", "-", "--format", "json")
    finally:
        mariadb.sql("DROP DATABASE shell_sql")
    assert done.errors == ""
    assert [json.loads(line) for line in done.text.splitlines()] == [
        {"name": "a", "fee": 1.50, "flag": True, "tons": 10.5},
        {"name": "b", "fee": 2.25, "flag": False, "tons": 4.0},
    ]


def test_variables_of_the_command_are_not_tables(shell: Shell) -> None:
    for name in ("query", "databases", "rows", "result", "given", "options", "longshore", "call", "sql"):
        done = shell("sql", f"SELECT * FROM {name}")
        assert done.code == 1
        assert f"no table and no variable is called '{name}'" in done.errors


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        (["SELEC 1"], 1, "syntax error"),
        (["SELECT * FROM 'none.parquet'"], 4, "none.parquet"),
        (["SELECT 1", "--attach", "sqlite:///a.db"], 2, "--attach is name=value"),
        (["SELECT 1", "--attach", "a=env:NOWHERE"], 2, "no variable 'NOWHERE'"),
        (["SELECT 1", "--attach", "a=b=c"], 2, "--attach a: conn is not a URL"),
        (["SELECT 1", "--to", "sqlite:///b.db"], 2, "longshore copy"),
        (["SELECT 1", "--format", "csv"], 2, "--format is for --to"),
        (["SELECT 1", "--option", "nosuch=1"], 2, "unknown option 'nosuch'"),
        (["SET threads = 1"], 1, "has no result"),
        (["SELECT error('storm')"], 1, "storm"),
    ],
)
def test_failures(arguments: list[str], code: int, problem: str, shell: Shell) -> None:
    done = shell("sql", *arguments, "--json")
    assert (done.code, done.out, done.failure["code"]) == (code, b"", code)
    assert problem in done.failure["message"]


def test_a_failure_leaves_the_old_file(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("old")
    query = "SELECT CASE WHEN i = 900000 THEN error('storm') ELSE i END AS i FROM range(1000000) AS t (i)"
    assert shell("sql", query, "--to", str(tmp_path / "a.csv")).code == 1
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a.csv", "old")]
