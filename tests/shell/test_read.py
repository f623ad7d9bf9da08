"""`longshore read`: files that hold exactly the result, and previews that say that they are such."""

import csv
import io
import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import longshore
from tests.shell.running import Shell, alone

pytestmark = pytest.mark.packages

QUERY = (
    "SELECT n::bigint AS n, 'row ' || n AS t, (n::numeric / 8)::numeric(20, 3) AS d, n * 0.1::float8 AS f, "
    "CASE WHEN n % 3 = 0 THEN NULL ELSE '2026-01-01'::timestamptz + n * interval '1.000001 s' END AS at "
    "FROM generate_series(1, 70000) AS n"
)
# Each value once as SQL, as a field of CSV and as JSON.
VALUES = {
    "true": ("true", "true"),
    "(-32768)::int2": ("-32768", "-32768"),
    "9223372036854775807::int8": ("9223372036854775807", "9223372036854775807"),
    "0.1::float8": ("0.1", "0.1"),
    "'1e-320'::float8": ("1e-320", "1e-320"),
    "'-0'::float8": ("-0", "-0"),
    "0.1::float4": ("0.1", "0.1"),
    "12345678901234567890.10::numeric(30,2)": ("12345678901234567890.10", "12345678901234567890.10"),
    "0.00000000001::numeric(20,11)": ("0.00000000001", "0.00000000001"),
    "'a\"b'::text": ('"a""b"', '"a\\"b"'),
    "E'one\\ntwo,'::text": ('"one\ntwo,"', '"one\\ntwo,"'),
    "' x '::text": ('" x "', '" x "'),
    "''::text": ('""', '""'),
    "'ä€😀'::text": ("ä€😀", '"ä€😀"'),
    "NULL::text": ("", "null"),
    "NULL::int": ("", "null"),
    "'\\x00ff'::bytea": ("\\x00ff", '"\\\\x00ff"'),
    "'1969-12-31'::date": ("1969-12-31", '"1969-12-31"'),
    "'5874897-12-31'::date": ("5874897-12-31", '"5874897-12-31"'),
    "'4713-01-01 BC'::date": ("-4712-01-01", '"-4712-01-01"'),
    "'294246-12-31 23:59:59.999999+00'::timestamptz": (
        "294246-12-31 23:59:59.999999Z",
        '"294246-12-31 23:59:59.999999Z"',
    ),
    "'9999-12-31 23:59:59.999999'::timestamp": ("9999-12-31 23:59:59.999999", '"9999-12-31 23:59:59.999999"'),
    "'2026-01-01 00:00+01'::timestamptz": ("2025-12-31 23:00:00.000000Z", '"2025-12-31 23:00:00.000000Z"'),
    "'23:59:59.5'::time": ("23:59:59.500000", '"23:59:59.500000"'),
    "'1 mon -2 days 3.5 s'::interval": ("P1M-2DT3.5S", '"P1M-2DT3.5S"'),
    "'6f2b6b63-4d4a-4f3c-9d6c-000000000001'::uuid": (
        "6f2b6b63-4d4a-4f3c-9d6c-000000000001",
        '"6f2b6b63-4d4a-4f3c-9d6c-000000000001"',
    ),
    "'{\"a\":  1.10}'::json": ('"{""a"":  1.10}"', '{"a":  1.10}'),
    "E'{\"a\":\\n[1]}'::json": ('"{""a"":\n[1]}"', '{"a": [1]}'),
    "ARRAY[1, NULL, 3]": ('"[1,null,3]"', "[1,null,3]"),
    "ARRAY['a\"', NULL]": ('"[""a\\"""",null]"', '["a\\"",null]'),
    "'{}'::int[]": ("[]", "[]"),
    "NULL::int[]": ("", "null"),
    "ARRAY[1.5, NULL]::numeric(3,1)[]": ('"[1.5,null]"', "[1.5,null]"),
    "ARRAY[-0.5, 2]::float8[]": ('"[-0.5,2]"', "[-0.5,2]"),
}


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "arrows", "feather"])
def test_files_hold_the_result(suffix: str, shell: Shell, url: str, tmp_path: Path) -> None:
    file = tmp_path / f"out.{suffix}"
    done = shell("read", QUERY, "--from", url, "--to", str(file))
    assert (done.code, done.errors) == (0, "")
    assert done.text.startswith("70,000 rows, ")
    assert [path.name for path in tmp_path.iterdir()] == [file.name]
    with longshore.read_sql(QUERY, url, return_type="arrow_stream") as stream:
        expected = pa.Table.from_batches(list(stream), stream.schema)
    if suffix == "parquet":
        assert pq.read_table(file).equals(expected)
        return
    found = table(suffix.replace("feather", "arrow"), file.read_bytes())
    assert found.equals(expected)
    assert found.schema.equals(expected.schema, check_metadata=True)


@pytest.mark.parametrize("sql", VALUES)
def test_values_in_text(sql: str, shell: Shell, url: str) -> None:
    in_csv, in_json = VALUES[sql]
    query = f"SELECT 1 AS a, {sql} AS b"
    done = shell("read", query, "--from", url, "--to", "-")
    assert (done.code, done.text) == (0, f"a,b\n1,{in_csv}\n")
    done = shell("read", query, "--from", url, "--to", "-", "--format", "json")
    assert (done.code, done.text) == (0, f'{{"a":1,"b":{in_json}}}\n')
    json.loads(done.text)


def test_all_rows_in_text(shell: Shell, url: str, tmp_path: Path) -> None:
    shell("read", QUERY, "--from", url, "--to", str(tmp_path / "a.csv"))
    with (tmp_path / "a.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    expected = longshore.read_sql(QUERY, url, return_type="arrow").to_pylist()
    assert rows[0] == ["n", "t", "d", "f", "at"]
    assert [(int(n), t, d, float(f)) for n, t, d, f, _ in rows[1:]] == [
        (row["n"], row["t"], str(row["d"]), row["f"]) for row in expected
    ]
    assert [row[4] == "" for row in rows[1:]] == [row["at"] is None for row in expected]
    shell("read", QUERY, "--from", url, "--to", str(tmp_path / "a.jsonl"))
    with (tmp_path / "a.jsonl").open() as lines:
        objects = [json.loads(line) for line in lines]
    assert [(row["n"], row["f"]) for row in objects] == [(row["n"], row["f"]) for row in expected]


def test_composites_are_objects(shell: Shell, url: str, harbour: str, tmp_path: Path) -> None:
    with longshore.connect(url) as connection:
        connection.execute(f"CREATE TYPE {harbour}.pair AS (x int, y text)")
    query = (
        f"SELECT ROW(1, NULL)::{harbour}.pair AS one, NULL::{harbour}.pair AS none, "
        f"ARRAY[ROW(2, 'a')::{harbour}.pair, NULL] AS many"
    )
    shell("read", query, "--from", url, "--to", str(tmp_path / "a.json"))
    expected = '{"one":{"x":1,"y":null},"none":null,"many":[{"x":2,"y":"a"},null]}\n'
    assert (tmp_path / "a.json").read_text() == expected
    done = shell("read", query, "--from", url, "--to", "-")
    assert list(csv.reader(io.StringIO(done.text)))[1] == ['{"x":1,"y":null}', "", '[{"x":2,"y":"a"},null]']


@pytest.mark.parametrize("form", ["csv", "json", "parquet", "arrow", "arrows"])
def test_no_rows(form: str, shell: Shell, url: str, tmp_path: Path) -> None:
    file = tmp_path / f"a.{form}"
    done = shell("read", "SELECT 1 AS a, 'x' AS b WHERE false", "--from", url, "--to", str(file), "--json")
    assert done.said["rows"] == 0
    match form:
        case "csv":
            assert file.read_text() == "a,b\n"
        case "json":
            assert file.read_text() == ""
        case "parquet":
            assert pq.read_table(file).schema.types == [pa.int32(), pa.string()]


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity"])
def test_what_json_has_no_number_for(word: str, shell: Shell, url: str, tmp_path: Path) -> None:
    query = f"SELECT CASE WHEN n = 66000 THEN '{word}'::float8 ELSE n END AS depth FROM generate_series(0, 70000) n"
    file = tmp_path / "a.json"
    done = shell("read", query, "--from", url, "--to", str(file), "--json")
    assert done.code == 1
    assert (done.failure["kind"], done.failure["column"], done.failure["row"]) == ("DataError", "depth", 66000)
    assert list(tmp_path.iterdir()) == []
    done = shell("read", query, "--from", url, "--to", "-")
    assert done.text.splitlines()[66001] == {"NaN": "nan", "Infinity": "inf", "-Infinity": "-inf"}[word]


def test_a_bad_number_within_a_list_names_its_row(shell: Shell, url: str) -> None:
    query = (
        "SELECT CASE WHEN n = 7 THEN ARRAY[1, 'NaN'::float8] WHEN n < 5 THEN '{}' END AS a FROM generate_series(0, 9) n"
    )
    done = shell("read", query, "--from", url, "--to", "-", "--format", "json", "--json")
    assert (done.code, done.failure["row"]) == (1, 7)


def test_columns_of_one_name(shell: Shell, url: str, tmp_path: Path) -> None:
    query = "SELECT 1 AS a, 2 AS a"
    assert shell("read", query, "--from", url, "--to", "-").text == "a,a\n1,2\n"
    for form in ("json", "parquet"):
        done = shell("read", query, "--from", url, "--to", str(tmp_path / f"a.{form}"))
        assert done.code == 1
        assert 'two columns are called "a"' in done.errors
    assert list(tmp_path.iterdir()) == []


def test_what_parquet_has_no_type_for(shell: Shell, url: str, tmp_path: Path) -> None:
    done = shell("read", "SELECT interval '1 day' AS a", "--from", url, "--to", str(tmp_path / "a.parquet"))
    assert done.code == 1
    assert "write an arrow file" in done.errors
    assert list(tmp_path.iterdir()) == []


def test_a_failure_in_the_middle_leaves_the_old_file(shell: Shell, url: str, tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("old")
    query = "SELECT 1000000 / (200000 - n) AS n FROM generate_series(1, 300000) n"
    done = shell("read", query, "--from", url, "--to", str(file))
    assert done.code == 1
    assert "division by zero" in done.errors
    assert (file.read_text(), len(list(tmp_path.iterdir()))) == ("old", 1)
    file.chmod(0o640)
    assert shell("read", "SELECT 1 AS a", "--from", url, "--to", str(file)).code == 0
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("a\n1\n", 0o640)


@pytest.mark.parametrize("form", ["arrows", "arrow", "parquet"])
def test_a_part_on_standard_output_reads_as_none(form: str, shell: Shell, url: str) -> None:
    query = "SELECT 1000000 / (200000 - n) AS n FROM generate_series(1, 300000) n"
    done = shell("read", query, "--from", url, "--to", "-", "--format", form)
    assert done.code == 1
    assert len(done.out) > 1000
    with pytest.raises((pa.ArrowException, OSError)):
        table(form, done.out)


def table(form: str, data: bytes) -> pa.Table:
    """Read a file's bytes."""
    source = pa.BufferReader(data)
    match form:
        case "parquet":
            return pq.read_table(source)
        case "arrow":
            return pa.ipc.open_file(source).read_all()
        case _:
            return pa.ipc.open_stream(source).read_all()


def test_the_summary_for_machines(shell: Shell, url: str, tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    said = shell("read", "SELECT 7 AS berth", "--from", url, "--to", str(file), "--json").said
    assert said.pop("seconds") > 0
    assert said == {
        "rows": 1,
        "bytes": 12,
        "bytes_read": 15,
        "file": str(file),
        "format": "json",
        "warnings": [],
    }
    done = shell("read", "SELECT 7 AS berth", "--from", url, "--to", "-", "--json")
    assert done.text == "berth\n7\n"
    assert done.failure["rows"] == 1


@pytest.mark.parametrize("to", [["--to", "a.csv"], []], ids=["file", "preview"])
def test_warnings_for_machines(
    to: list[str], shell: Shell, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    query = "SELECT n FROM generate_series(1, 5) n LIMIT 3"
    done = shell("read", query, "--from", url, "--partition-on", "n", "--partition-num", "3", *to, "--json")
    assert done.errors == ""
    assert "read over one connection" in done.said["warnings"][0]


def test_a_preview(shell: Shell, url: str) -> None:
    done = shell("read", "SELECT generate_series(1, 100000000) AS n, 'x' AS t", "--from", url, "--rows", "2")
    lines = [line.split() for line in done.text.splitlines() if line.strip()]
    assert lines[:2] == [["n", "t"], ["int32", "string"]]
    assert lines[3:5] == [["1", "x"], ["2", "x"]]
    assert " ".join(lines[5]) == "the first 2 rows of more; the rest was not read"
    assert "2 rows in all" in shell("read", "VALUES (1), (2)", "--from", url, "--rows", "2").text


def test_a_preview_does_nothing_to_the_terminal(shell: Shell, url: str) -> None:
    query = "SELECT E'\\x1b[2J[red]\\n' AS \"[bold]\", NULL AS n, 'NaN'::float8 AS f, ARRAY['a'] AS l"
    done = shell("read", query, "--from", url)
    assert "\x1b" not in done.text
    assert "\\x1b[2J[red]\\n" in done.text
    assert "[bold]" in done.text
    assert "NULL" in done.text
    assert '["a"]' in done.text


def test_a_preview_for_machines(shell: Shell, url: str) -> None:
    query = "SELECT n, n * 1.5 AS n, 'NaN'::float8 AS f FROM generate_series(1, 9) n"
    said = shell("read", query, "--from", url, "--rows", "1", "--json").said
    assert [column["name"] for column in said["columns"]] == ["n", "n", "f"]
    assert (said["rows"], said["shown"], said["more"]) == ([[1, 1.5, "nan"]], 1, True)


def test_where_the_query_comes_from(shell: Shell, url: str, tmp_path: Path) -> None:
    (tmp_path / "q.sql").write_text("SELECT 1 AS a")
    for query in (f"@{tmp_path}/q.sql", "-"):
        assert shell("read", query, "--from", url, "--to", "-", given=b"SELECT 1 AS a").text == "a\n1\n"
    assert shell("read", f"@{tmp_path}/none.sql", "--from", url).code == 4
    assert shell("read", " ", "--from", url).code == 2
    done = shell("read", f"{tmp_path}/q.sql", "--from", url)
    assert done.code == 2
    assert f"Hint: @{tmp_path}/q.sql is the query in the file" in done.errors
    assert shell("read", "SELECT 1; SELECT 2", "--from", url).code == 1


@pytest.mark.once
@pytest.mark.parametrize("mode", ["0", "1"])
def test_a_locale_of_ascii(mode: str, lite: str, tmp_path: Path) -> None:
    file = tmp_path / "ä.csv"
    arguments = ["SELECT 'ä€' AS \"ö\", :t AS t", "--param", "t=ü", "--from", lite]
    done = alone("read", *arguments, "--to", "-", LC_ALL="C", PYTHONUTF8=mode)
    assert (done.code, done.text, done.errors) == (0, "ö,t\nä€,ü\n", "")
    done = alone("read", *arguments, "--json", LC_ALL="C", PYTHONUTF8=mode)
    assert done.said["rows"] == [["ä€", "ü"]]
    done = alone("read", *arguments, "--to", str(file), LC_ALL="C", PYTHONUTF8=mode)
    assert f"into {file} in" in done.text
    done = alone("write", str(file), "--table", "ß", "--to", lite, LC_ALL="C", PYTHONUTF8=mode)
    assert (done.code, done.errors) == (0, "")
    assert longshore.read_sql('SELECT * FROM "ß"', lite, return_type="arrow").to_pylist() == [{"ö": "ä€", "t": "ü"}]


@pytest.mark.parametrize(
    ("query", "given", "expected"),
    [
        ("SELECT :n::int + 1 AS a", ["--param", "n=5"], "6"),
        ("SELECT :t::text AS a", ["--param", "t=007"], "007"),
        ("SELECT :t::text AS a", ["--param", 't="7"'], "7"),
        ("SELECT :t::text AS a", ["--param", "t=a=b"], "a=b"),
        (
            "SELECT :t::numeric::text AS a",
            ["--param", "t=12345678901234567890.5"],
            "12345678901234567890.5",
        ),
        ("SELECT :t::float8 AS a", ["--param", "t=0.1"], "0.1"),
        ("SELECT :t::bool IS NULL AS a", ["--param", "t=null"], "true"),
        ("SELECT $1::int - $2::int AS a", ["--arg", "5", "--arg", "-3"], "8"),
        ("SELECT $1::date AS a", ["--arg", "2026-01-31"], "2026-01-31"),
    ],
)
def test_parameters(query: str, given: list[str], expected: str, shell: Shell, url: str) -> None:
    done = shell("read", query, "--from", url, "--to", "-", *given)
    assert (done.errors, done.text) == ("", f"a\n{expected}\n")


def test_types_options_and_parts(shell: Shell, url: str) -> None:
    query = "SELECT 'NaN'::numeric AS a"
    assert shell("read", query, "--from", url, "--to", "-").code == 1
    done = shell("read", query, "--from", url, "--to", "-", "--option", "numeric_nan=null")
    assert (done.code, done.text) == (0, "a\n\n")
    assert shell("read", query, "--from", url, "--to", "-", "--schema", "a=string").text == "a\nNaN\n"
    query = "SELECT n FROM generate_series(1, 1000) n"
    done = shell("read", query, "--from", url, "--to", "-", "--partition-on", "n", "--partition-num", "3")
    assert sorted(map(int, done.text.split()[1:])) == [*range(1, 1001)]
    query = "SELECT n FROM generate_series(1, 5) n LIMIT 3"
    done = shell("read", query, "--from", url, "--to", "-", "--partition-on", "n", "--partition-num", "3")
    assert "warning: read over one connection" in done.errors


def test_databases_by_name(shell: Shell, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARBOUR", url)
    for place in ("env:HARBOUR", "$HARBOUR"):
        assert shell("read", "SELECT 1 AS a", "--from", place, "--to", "-").text == "a\n1\n"
    monkeypatch.setenv("LONGSHORE_FROM", "env:HARBOUR")
    assert shell("read", "SELECT 1 AS a", "--to", "-").text == "a\n1\n"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["SELECT 1"], "--from is missing"),
        (["SELECT 1", "--from", "env:NOWHERE"], "no variable 'NOWHERE'"),
        (["SELECT 1", "--from", "harbour"], "--from: conn is not a URL"),
        (["SELECT 1", "--from", "nosuch://host/db"], "nosuch"),
        (["sqlite:///a.db", "--from", "sqlite:///:memory:"], "the query is a URL"),
        (["SELECT 1", "--from", "sqlite:///:memory:", "--to", "a.xyz"], "tells no format"),
        (["SELECT 1", "--from", "sqlite:///:memory:", "--to", "sqlite:///b.db"], "longshore copy"),
        (["SELECT 1", "--from", "sqlite:///:memory:", "--to", "-", "--rows", "3"], "--rows is for a preview"),
        (["SELECT 1", "--from", "sqlite:///:memory:", "--format", "csv"], "--format is for --to"),
        (["SELECT 1", "--from", "sqlite:///:memory:", "--param", "a"], "--param is name=value"),
        (["SELECT 1", "--from", "sqlite:///:memory:", "--param", "a=1", "--arg", "1"], "not both"),
        (["SELECT 1", "--from", "sqlite:///:memory:", "--option", "nosuch=1"], "unknown option 'nosuch'"),
        (["SELECT 1", "--from", "sqlite:///:memory:", "--partition-num", "x"], "partition_num"),
        (["SELECT 1", "--from", "sqlite:///:memory:", "--format", "xml", "--to", "a"], "--format"),
    ],
)
def test_wrong_arguments(arguments: list[str], problem: str, shell: Shell) -> None:
    done = shell("read", *arguments)
    assert (done.code, done.out) == (2, b"")
    assert problem in done.errors
    done = shell("read", *arguments, "--json")
    assert (done.code, done.failure["kind"], done.failure["code"]) == (2, "InterfaceError", 2)


def test_no_such_directory(shell: Shell, lite: str, tmp_path: Path) -> None:
    done = shell("read", "SELECT 1", "--from", lite, "--to", str(tmp_path / "none" / "a.csv"))
    assert done.code == 4
    assert "there is no such directory" in done.errors


def test_a_preview_on_a_narrow_terminal(shell: Shell, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    query = "SELECT " + ", ".join(f"'{'value' * 20}' AS column_{number}" for number in range(30))
    assert "column_29" in shell("read", query, "--from", url).text
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    done = shell("read", query, "--from", url)
    assert "1 row in all; 2 of 30 columns fit" in done.text
    assert max(len(re.sub(r"\x1b\[[\d;]*m", "", line)) for line in done.text.splitlines()) <= 100


def test_no_columns(shell: Shell, url: str) -> None:
    done = shell("read", "SELECT FROM generate_series(1, 2)", "--from", url, "--to", "-")
    assert (done.code, done.out) == (1, b"")
