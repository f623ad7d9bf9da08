"""`longshore write`: what is in a file is in the table, or nothing is."""

import csv
import decimal
import gzip
import hashlib
import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import longshore
from tests.servers import MySQLEndpoint
from tests.shell.running import Shell

pytestmark = pytest.mark.packages

TABLE = pa.table(
    {
        "n": pa.array([1, 2, None], pa.int64()),
        "t": pa.array(['a,"b"\n', "", None]),
        "d": pa.array(
            [decimal.Decimal("1.50"), None, decimal.Decimal("-12345678901234567890.25")], pa.decimal128(30, 2)
        ),
        "f": pa.array([0.1, None, -0.0]),
        "b": pa.array([True, False, None]),
        "day": pa.array([date(1969, 12, 31), None, date(9999, 12, 31)]),
        "at": pa.array([datetime(2026, 1, 1, tzinfo=UTC), None, None], pa.timestamp("us", "UTC")),
    }
)


def rows(url: str, table: str, order: str = "n") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = longshore.read_sql(
        f"SELECT * FROM {table} ORDER BY {order}", url, return_type="arrow"
    ).to_pylist()
    return found


def save_bytes(file: Path, data: bytes) -> None:
    compression = {".gz": "gzip", ".zst": "zstd"}.get(file.suffix)
    with pa.output_stream(str(file), compression=compression) as stream:
        stream.write(data)


def save(table: pa.Table, file: Path) -> None:
    match file.suffix:
        case ".parquet":
            pq.write_table(table, file)
        case ".arrow":
            with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_file(sink, table.schema) as out:
                out.write_table(table)
        case _:
            with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as out:
                out.write_table(table)


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "arrows"])
def test_files_with_types(suffix: str, shell: Shell, url: str, harbour: str, tmp_path: Path) -> None:
    file = tmp_path / f"a.{suffix}"
    save(TABLE, file)
    done = shell("write", str(file), "--to", url, "--table", f"{harbour}.t", "--json")
    assert done.said == {**done.said, "rows": 3, "table": f"{harbour}.t", "format": suffix, "warnings": []}
    assert rows(url, f"{harbour}.t") == TABLE.to_pylist()
    done = shell("write", "-", "--format", suffix, "--to", url, "-t", f"{harbour}.u", given=file.read_bytes())
    assert (done.code, done.errors) == (0, "")
    assert rows(url, f"{harbour}.u") == TABLE.to_pylist()


@pytest.mark.parametrize("form", ["csv", "json", "parquet", "arrow", "arrows"])
def test_there_and_back(form: str, shell: Shell, url: str, harbour: str, tmp_path: Path) -> None:
    file = str(tmp_path / f"a.{form}")
    longshore.write_sql(TABLE, f"{harbour}.t", url)
    shell("read", f"SELECT * FROM {harbour}.t ORDER BY n", "--from", url, "--to", file)
    done = shell("write", file, "--to", url, "--table", f"{harbour}.t", "--if-exists", "truncate")
    assert (done.code, done.errors) == (0, "")
    assert rows(url, f"{harbour}.t") == TABLE.to_pylist()


CSV: dict[tuple[str, ...], tuple[str, list[Any]]] = {
    # What a column's fields are in a new table.
    ("1", "-2", "9223372036854775807"): ("bigint", [1, -2, 9223372036854775807]),
    ("1", "9223372036854775808"): ("numeric", [1, 9223372036854775808]),
    ("007", "8"): ("text", ["007", "8"]),
    ("1", "", "2"): ("bigint", [1, None, 2]),
    ("1", '""'): ("text", ["1", ""]),
    ("1.50", "-2"): ("numeric", [decimal.Decimal("1.50"), decimal.Decimal(-2)]),
    ("12345678901234567890.123456789012345678901", "1"): (
        "numeric",
        [decimal.Decimal("12345678901234567890.123456789012345678901"), decimal.Decimal(1)],
    ),
    ("1e3", "nan", "-inf", "0.1"): ("double precision", [1000.0, float("nan"), float("-inf"), 0.1]),
    ("1e3", "0.12345678901234567890"): ("text", ["1e3", "0.12345678901234567890"]),
    ("1e999", "1"): ("text", ["1e999", "1"]),
    ("1e-999", "1"): ("text", ["1e-999", "1"]),
    ("nan", "inf"): ("text", ["nan", "inf"]),
    ("-0",): ("double precision", [-0.0]),
    ("true", "false"): ("boolean", [True, False]),
    ("True",): ("text", ["True"]),
    ("2026-01-31", "0001-01-01"): ("date", [date(2026, 1, 31), date(1, 1, 1)]),
    ("2026-02-30",): ("text", ["2026-02-30"]),
    ("2026-01-31 23:59:59.5", "2026-01-31T00:00:00"): (
        "timestamp without time zone",
        [datetime(2026, 1, 31, 23, 59, 59, 500000), datetime(2026, 1, 31)],  # noqa: DTZ001
    ),
    ("2026-01-31 23:59:59Z",): (
        "timestamp with time zone",
        [datetime(2026, 1, 31, 23, 59, 59, tzinfo=UTC)],
    ),
    ("2026-01-31 23:59:59.1234567",): ("text", ["2026-01-31 23:59:59.1234567"]),
    ("9" * 40, "1"): ("numeric", [decimal.Decimal("9" * 40), decimal.Decimal(1)]),
    ("9" * 80,): ("text", ["9" * 80]),
    ("", ""): ("text", [None, None]),
    (" 1",): ("text", [" 1"]),
}


@pytest.mark.parametrize("fields", CSV, ids=" ".join)
def test_types_of_csv(fields: tuple[str, ...], shell: Shell, url: str, harbour: str) -> None:
    kind, values = CSV[fields]
    text = "i,a\n" + "".join(f"{number},{field}\n" for number, field in enumerate(fields))
    done = shell("write", "-", "--to", url, "--table", f"{harbour}.t", given=text.encode())
    assert (done.code, done.errors) == (0, "")
    query = (
        f"SELECT {'a::text' if kind == 'numeric' else 'a'} AS a, format_type(atttypid, -1) AS kind "
        f"FROM {harbour}.t, pg_attribute WHERE attrelid = '{harbour}.t'::regclass AND attname = 'a' ORDER BY i"
    )
    found = longshore.read_sql(query, url, return_type="arrow").to_pylist()
    assert {row["kind"] for row in found} == {kind}
    # As texts, for NaN equals nothing, 0.0 equals -0.0, and each pyarrow has a UTC of its own.
    if kind == "numeric":
        assert [decimal.Decimal(row["a"]) for row in found] == values
    else:
        assert [(type(row["a"]), str(row["a"])) for row in found] == [(type(value), str(value)) for value in values]


def test_a_column_is_what_all_of_it_is(shell: Shell, url: str, harbour: str, tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("n,t\n" + "".join(f"{n},{n}\n" for n in range(1_000_000)) + "1000000,last\n")
    done = shell("write", str(file), "--to", url, "--table", f"{harbour}.t", "--key", "n", "--type", "t=varchar(9)")
    assert (done.code, done.errors) == (0, "")
    query = f"SELECT count(*) AS n, max(t) AS t, sum(n)::bigint AS s FROM {harbour}.t"
    assert longshore.read_sql(query, url, return_type="arrow").to_pylist() == [
        {"n": 1_000_001, "t": "last", "s": 500_000_500_000}
    ]


def test_one_column_of_nulls(shell: Shell, lite: str) -> None:
    assert shell("read", "VALUES (1), (NULL), (3)", "--from", lite, "--to", "-").text == "column1\n1\n\n3\n"
    assert shell("write", "-", "--to", lite, "--table", "t", given=b"n\n1\n\n3\n").code == 0
    assert [row["n"] for row in rows(lite, "t", "rowid")] == [1, None, 3]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "no heading"),
        ("a,a\n1,2\n", 'two columns of the csv file are called "a"'),
        ("a,b\n1\n", "standard input: line 2: expected 2 fields, as the heading has, and found 1"),
        ('a\n"1\n', "is not closed"),
        ("a\n\udcff\n", "standard input: line 2 is not UTF-8: it has the byte 0xff"),
    ],
)
def test_csv_that_is_none(text: str, problem: str, shell: Shell, lite: str) -> None:
    done = shell("write", "-", "--to", lite, "--table", "t", given=text.encode(errors="surrogateescape"))
    assert done.code in {1, 4}
    assert problem in done.errors
    assert shell("read", "SELECT * FROM t", "--from", lite).code == 1


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "csv.zst"])
def test_lines_of_a_csv_that_is_none(suffix: str, shell: Shell, lite: str, tmp_path: Path) -> None:
    file = tmp_path / f"a.{suffix}"
    rows = "".join(f'{number},"two\nlines"\n' for number in range(100_000))
    for text, problem in {
        f"a,b\n{rows}1,2,3\n{rows}": "line 200002: expected 2 fields, as the heading has, and found 3",
        f"a,b\n{rows}1,\udce9\n{rows}": "line 200002 is not UTF-8: it has the byte 0xe9",
    }.items():
        save_bytes(file, text.encode(errors="surrogateescape"))
        done = shell("write", str(file), "--to", lite, "--table", "t")
        assert (done.code, done.errors) == (4, f"error: {file}: {problem}\n")
    save_bytes(file, b"a,a\n1,2\n")
    done = shell("write", str(file), "--to", lite, "--table", "t", "--json")
    assert (done.code, done.failure["column"]) == (1, "a")
    assert done.failure["message"] == f'{file}: two columns of the csv file are called "a"'


def test_lines_of_json_that_is_none(shell: Shell, lite: str, tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    for text, code, problem in [
        (b'{"a": 1}\n{"a": "\xff"}\n', 4, "line 2 is not UTF-8: it has the byte 0xff"),
        (b'{"a": 1}\n{"a": 2', 1, "line 2 is not JSON"),
    ]:
        file.write_bytes(text)
        done = shell("write", str(file), "--to", lite, "--table", "t")
        assert done.code == code
        assert done.errors.startswith(f"error: {file}: {problem}")


@pytest.mark.parametrize("suffix", ["csv.gz", "csv.zst", "jsonl.gz", "json.zst"])
def test_compressed_files(suffix: str, shell: Shell, lite: str, tmp_path: Path) -> None:
    file = tmp_path / f"a.{suffix}"
    numbers = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30000)"
    query = f"{numbers} SELECT i, 'boat ' || i AS t FROM n"
    done = shell("read", query, "--from", lite, "--to", str(file), "--json")
    assert done.said == {**done.said, "rows": 30_000, "bytes": file.stat().st_size}
    form = suffix.partition(".")[0].removesuffix("l")
    plain = shell("read", query, "--from", lite, "--to", "-", "--format", form).out
    with pa.input_stream(str(file), compression={"gz": "gzip", "zst": "zstd"}[suffix.partition(".")[2]]) as stream:
        assert hashlib.sha256(stream.read()).digest() == hashlib.sha256(plain).digest()
    done = shell("write", str(file), "--to", lite, "--table", "t")
    assert (done.code, done.errors) == (0, "")
    assert done.text.startswith("30,000 rows into t in ")
    # Not as lists: what pytest says of their difference takes minutes.
    expected = longshore.read_sql(query, lite, return_type="arrow")
    assert longshore.read_sql("SELECT * FROM t ORDER BY i", lite, return_type="arrow").equals(expected)
    whole = file.read_bytes()
    for part in (whole[:-1], whole[: len(whole) // 2], plain):
        file.write_bytes(part)
        done = shell("write", str(file), "--to", lite, "--table", "u")
        assert done.code == 4
        assert done.errors.startswith(f"error: {file}: ")
    assert shell("read", "SELECT * FROM u", "--from", lite).code == 1


@pytest.mark.parametrize("delimiter", [";", "\\t", "\t", "|", " ", "."])
def test_delimiters(delimiter: str, shell: Shell, lite: str, tmp_path: Path) -> None:
    file = str(tmp_path / "a.csv")
    values = ["a;b", "a\tb", "a|b", "a,b", "a b", "1.5", "", None]
    table = pa.table({"x;\t|, .": values, "n": list(range(8)), "f": [number + 0.5 for number in range(8)]})
    longshore.write_sql(table, "t", lite)
    mark = delimiter.replace("\\t", "\t")
    shell("read", "SELECT * FROM t", "--from", lite, "--to", file, "--delimiter", delimiter)
    with Path(file).open(newline="") as lines:
        assert [row[0] for row in csv.reader(lines, delimiter=mark)] == ["x;\t|, .", *(value or "" for value in values)]
    done = shell("write", file, "--to", lite, "--table", "u", "--delimiter", delimiter)
    assert (done.code, done.errors) == (0, "")
    assert longshore.read_sql("SELECT * FROM u", lite, return_type="arrow").to_pylist() == table.to_pylist()


@pytest.mark.parametrize("delimiter", ["", ";;", '"', "\n", "ä"])
def test_delimiters_that_are_none(delimiter: str, shell: Shell, lite: str) -> None:
    done = shell("write", "-", "--to", lite, "--table", "t", "--delimiter", delimiter, given=b"a\n1\n")
    assert done.code == 2
    assert "--delimiter is one ASCII character" in done.errors


def test_layouts_that_do_not_go_together(shell: Shell, lite: str, tmp_path: Path) -> None:
    for arguments in (["--to", "a.json", "--delimiter", ";"], ["--to", "a.parquet.gz"], ["--delimiter", ";"]):
        assert shell("read", "SELECT 1", "--from", lite, *arguments).code == 2
    file = tmp_path / "a.gz"
    assert shell("read", "SELECT 1 AS a", "--from", lite, "--to", str(file), "--format", "csv").code == 0
    assert gzip.decompress(file.read_bytes()) == b"a\n1\n"


@pytest.mark.parametrize(("mark", "said"), [(";", ";"), ("\t", r"\t"), ("|", "|")])
def test_a_csv_that_looks_delimited_otherwise(mark: str, said: str, shell: Shell, lite: str) -> None:
    text = f"a{mark}b\n1{mark}2\n".encode()
    done = shell("write", "-", "--to", lite, "--table", "t", given=text)
    assert done.code == 0
    assert done.errors == f"warning: standard input is read as one column, 'a{said}b': is it --delimiter '{said}'?\n"
    done = shell("write", "-", "--to", lite, "--table", "u", "--delimiter", mark, given=text)
    assert (done.code, done.errors) == (0, "")
    assert rows(lite, "u", "a") == [{"a": 1, "b": 2}]


def test_one_row(shell: Shell, lite: str) -> None:
    assert shell("write", "-", "--to", lite, "--table", "t", given=b"a\n1\n").text.startswith("1 row into t in ")


def test_a_heading_only(shell: Shell, lite: str) -> None:
    done = shell("write", "-", "--to", lite, "--table", "t", given=b'\xef\xbb\xbf"a\nb",c\n')
    assert (done.code, done.errors) == (0, "")
    assert longshore.read_sql("SELECT * FROM t", lite, return_type="arrow").column_names == ["a\nb", "c"]


def test_json_lines(shell: Shell, url: str, harbour: str) -> None:
    lines = [
        {"n": 1, "d": 1.5, "t": "007", "b": True, "day": "2026-01-31", "o": {"x": [1, None]}},
        {"n": 2, "more": "später"},
        {"n": None, "d": None, "t": None},
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines).replace("1.5", "12345678901234567890.50")
    done = shell(
        "write",
        "-",
        "--format",
        "json",
        "--to",
        url,
        "--table",
        f"{harbour}.t",
        "--type",
        "o=jsonb",
        given=text.encode(),
    )
    assert (done.code, done.errors) == (0, "")
    nothing = dict.fromkeys(["d", "t", "b", "day", "o", "more"])
    assert rows(url, f"{harbour}.t") == [
        {
            "n": 1,
            "d": decimal.Decimal("12345678901234567890.50"),
            "t": "007",
            "b": True,
            "day": date(2026, 1, 31),
            "o": '{"x": [1, null]}',
            "more": None,
        },
        {**nothing, "n": 2, "more": "später"},
        {**nothing, "n": None},
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"a": 1}\n{"a": "x"}\n', 'column "a", row 1: a text after a number'),
        ('{"a": 1}\n{"a": 2', "line 2 is not JSON"),
        ("[1]\n", "line 1 is not an object"),
        ('{"a": NaN}\n', "NaN is not a JSON number"),
        ('{"a": 1, "a": 2}\n', "a key twice"),
        ('{"a": {"b": 1, "b": 2}}\n', "a key twice"),
    ],
)
def test_json_that_is_none(text: str, problem: str, shell: Shell, lite: str) -> None:
    done = shell("write", "-", "--format", "json", "--to", lite, "--table", "t", given=text.encode())
    assert done.code == 1
    assert problem in done.errors
    assert shell("read", "SELECT * FROM t", "--from", lite).code == 1


def test_types_by_column(shell: Shell, url: str, harbour: str) -> None:
    text = b"a,b,c\n1,\\x00ff,1.500\n"
    given = ["--schema", "a=string", "--schema", "b=binary", "--schema", "c=decimal128(6, 2)"]
    assert shell("write", "-", "--to", url, "--table", f"{harbour}.t", *given, given=text).code == 0
    assert rows(url, f"{harbour}.t", "a") == [{"a": "1", "b": b"\x00\xff", "c": decimal.Decimal("1.50")}]


@pytest.mark.parametrize(
    ("field", "kind"),
    [
        ("1.505", "decimal128(6, 2)"),
        ("9" * 41, "decimal128(38, 0)"),
        ("300", "int8"),
        ("x", "int64"),
        ("1e999", "float64"),
        ("00ff", "binary"),
        ("\\x0g", "binary"),
        ("2026-02-30", "date32"),
    ],
)
def test_a_value_that_its_type_does_not_hold(field: str, kind: str, shell: Shell, lite: str) -> None:
    text = f"a\n\n{field}\n".encode()
    done = shell("write", "-", "--to", lite, "--table", "t", "--schema", f"a={kind}", "--json", given=text)
    assert (done.code, done.failure["kind"], done.failure["column"], done.failure["row"]) == (1, "DataError", "a", 1)


def test_types_that_are_none(shell: Shell, lite: str) -> None:
    for given, problem in {
        "a=nosuch": "is not a type",
        "b=int64": "the file has 'a'",
        "a=decimal128(39, 0)": "is not a type",
    }.items():
        done = shell("write", "-", "--to", lite, "--table", "t", "--schema", given, given=b"a\n1\n")
        assert done.code == 2
        assert problem in done.errors


def test_a_value_that_its_column_does_not_hold(shell: Shell, url: str, harbour: str) -> None:
    shell("write", "-", "--to", url, "--table", f"{harbour}.t", "--type", "n=smallint", given=b"n\n1\n")
    text = ("n\n" + "5\n" * 100_000 + "40000\n").encode()
    done = shell("write", "-", "--to", url, "--table", f"{harbour}.t", "--if-exists", "append", "--json", given=text)
    assert (done.code, done.failure["column"], done.failure["row"]) == (1, "n", 100_000)
    assert [row["n"] for row in rows(url, f"{harbour}.t")] == [1]


def test_upserts(shell: Shell, lite: str) -> None:
    shell("write", "-", "--to", lite, "--table", "t", "--key", "n", given=b"n,t\n1,a\n2,b\n")
    done = shell("write", "-", "--to", lite, "--table", "t", given=b"n,t\n1,a\n")
    assert done.code == 1
    upsert = ["--if-exists", "upsert", "--key", "n"]
    assert shell("write", "-", "--to", lite, "--table", "t", *upsert, given=b"n,t\n2,c\n3,d\n").code == 0
    assert [row["t"] for row in rows(lite, "t")] == ["a", "c", "d"]


def test_an_arrow_stream_that_was_cut(shell: Shell, lite: str, tmp_path: Path) -> None:
    save(TABLE, tmp_path / "a.arrows")
    whole = (tmp_path / "a.arrows").read_bytes()
    # Without its end mark, and the same within its last batch.
    for part in (whole[:-8], whole[:-20]):
        done = shell("write", "-", "--format", "arrows", "--to", lite, "--table", "t", given=part)
        assert done.code in {1, 4}
        assert shell("read", "SELECT * FROM t", "--from", lite).code == 1


@pytest.mark.parametrize("form", ["parquet", "arrow", "arrows"])
def test_files_of_another_format(form: str, shell: Shell, lite: str) -> None:
    done = shell("write", "-", "--format", form, "--to", lite, "--table", "t", given=b"a,b\n1,2\n")
    assert done.code == 4
    assert done.errors.startswith("error: ")


def test_schema_is_for_text(shell: Shell, lite: str, tmp_path: Path) -> None:
    save(TABLE, tmp_path / "a.parquet")
    done = shell("write", str(tmp_path / "a.parquet"), "--to", lite, "--table", "t", "--schema", "n=int8")
    assert done.code == 2


def test_into_mariadb(shell: Shell, mariadb: MySQLEndpoint) -> None:
    mariadb.sql("CREATE DATABASE IF NOT EXISTS shell")
    try:
        url = mariadb.url(database="shell")
        text = "n,d,t,b\n1,1.50,ä,true\n2,,,\n"
        assert shell("write", "-", "--to", url, "--table", "t", "--key", "n", given=text.encode()).code == 0
        done = shell("read", "SELECT * FROM t ORDER BY n", "--from", url, "--to", "-")
        assert done.text == "n,d,t,b\n1,1.50,ä,1\n2,,,\n"
    finally:
        mariadb.sql("DROP DATABASE shell")


def test_a_type_runs_no_statement(shell: Shell, url: str, harbour: str) -> None:
    hostile = f"n=int); DROP SCHEMA {harbour} CASCADE; --"
    done = shell("write", "-", "--to", url, "--table", f"{harbour}.t", "--type", hostile, given=b"n\n1\n")
    assert (done.code, "is not one type of a column" in done.errors) == (2, True)
    assert shell("write", "-", "--to", url, "--table", f"{harbour}.t", given=b"n\n1\n").code == 0
