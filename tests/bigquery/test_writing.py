"""Writing to BigQuery: which jobs do it, what is left of a failure, and values at the borders of its types."""

import datetime as dt
import tempfile
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from google.api_core import exceptions
from google.cloud import bigquery

import longshore
from longshore.sources.bigquery_values import Column, parse_field
from tests.bigquery.engine import Engine
from tests.quirks import bigquery as quirks

D = Decimal
BOATS = pa.table({"id": [1, 2], "name": ["Ada", None]})
#: A column that is not loaded as it is.
LATER = BOATS.append_column("seen", pa.array([dt.datetime(2024, 1, 1), None], pa.timestamp("us")))  # noqa: DTZ001


@pytest.fixture
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Give the URL of a project of its own."""
    with quirks.on_fake(request, tmp_path) as url:
        yield url


@pytest.fixture
def engine(url: str) -> Engine:
    """Give what answers there."""
    return quirks.engine_of(url)


def rows(url: str, table: str = "boats") -> list[dict[str, Any]]:
    result: Any = longshore.read_sql(f"SELECT * FROM {table} ORDER BY 1", url, return_type="arrow")
    found: list[dict[str, Any]] = result.to_pylist()
    return found


def tables(engine: Engine) -> list[str]:
    query = "SELECT table_name FROM duckdb_tables() WHERE schema_name = 'main'"
    return [name for (name,) in engine.database.cursor().execute(query).fetchall()]


# Jobs.


@pytest.mark.parametrize(
    ("mode", "disposition"), [("fail", "WRITE_EMPTY"), ("replace", "WRITE_TRUNCATE"), ("append", "WRITE_APPEND")]
)
def test_a_plain_write_is_one_job_that_loads(mode: Any, disposition: str, engine: Engine, url: str) -> None:
    if mode != "fail":
        longshore.write_sql(BOATS, "boats", url)
        engine.loads.clear()
    assert longshore.write_sql(BOATS, "boats", url, if_exists=mode) == 2
    assert engine.loads == [("boats", disposition, ["id", "name"])]
    assert rows(url) == sorted(BOATS.to_pylist() * (1 + (mode == "append")), key=lambda row: row["id"])


@pytest.mark.parametrize(
    ("mode", "data", "key"),
    [
        ("fail", LATER, None),
        ("fail", BOATS, "id"),
        ("replace", LATER, None),
        ("append", LATER, None),
        ("append", BOATS, None),
        ("truncate", BOATS, None),
        ("upsert", BOATS, "id"),
    ],
)
def test_others_go_by_a_table_that_ends_by_itself(
    mode: Any, data: pa.Table, key: str | None, engine: Engine, url: str
) -> None:
    if mode != "fail":
        longshore.write_sql(LATER.slice(0, 0), "boats", url)
    # That the drop fails is not the write's failure.
    engine.failures["DROP"] = exceptions.ServiceUnavailable("gone")
    assert longshore.write_sql(data, "boats", url, if_exists=mode, key=key) == 2
    ((staged, end),) = engine.expiring.items()
    assert dt.timedelta(hours=23) < end - dt.datetime.now(dt.UTC) < dt.timedelta(hours=25)
    assert [table for table, *_ in engine.loads] == [staged]
    assert [row["name"] for row in rows(url)] == ["Ada", None]


#: The statement that ends each mode.
ENDS = {"fail": "CREATE", "replace": "CREATE", "append": "INSERT", "truncate": "BEGIN", "upsert": "MERGE"}


@pytest.mark.parametrize(("mode", "fails"), [*((mode, "LOAD") for mode in ENDS), *ENDS.items()])
def test_a_job_that_fails_leaves_nothing(mode: Any, fails: str, engine: Engine, url: str) -> None:
    if mode != "fail":
        longshore.write_sql(LATER, "boats", url)
    before = tables(engine)
    engine.failures[fails] = exceptions.BadRequest("no more of this")
    arguments: Any = {"if_exists": mode, "key": "id" if mode == "upsert" else None}
    with pytest.raises(longshore.ProgrammingError, match="400 no more of this"):
        longshore.write_sql(LATER, "boats", url, **arguments)
    assert tables(engine) == before
    assert engine.expiring == {}
    assert mode == "fail" or rows(url) == LATER.to_pylist()


def test_a_deadline_cancels_the_job_that_loads(engine: Engine, url: str) -> None:
    engine.waits = True
    with pytest.raises(longshore.TimeoutError):
        longshore.write_sql(LATER, "boats", url, timeout=1)
    assert engine.cancelled.wait(10)
    assert tables(engine) == []


def test_a_full_disk_is_an_error_with_what_to_do(engine: Engine, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(**_: str) -> Any:
        return Path("/dev/full").open("r+b", buffering=0)

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    with pytest.raises(longshore.OperationalError, match="No space left on device") as caught:
        longshore.write_sql(BOATS, "boats", url)
    assert "TMPDIR" in (caught.value.hint or "")
    assert tables(engine) == []


def test_a_key_is_declared_and_not_enforced(engine: Engine, url: str) -> None:
    statements: list[str] = []
    engine.heard = statements.append
    longshore.write_sql(BOATS, "boats", url, key="id")
    (statement,) = (each for each in statements if each.startswith("CREATE"))
    assert "(`id` INT64 NOT NULL, `name` STRING, PRIMARY KEY (`id`) NOT ENFORCED) AS SELECT" in statement
    # Each row of an upsert's key is changed.
    longshore.write_sql(BOATS, "boats", url, if_exists="append")
    longshore.write_sql(pa.table({"id": [1], "name": ["Bea"]}), "boats", url, if_exists="upsert", key="id")
    assert [row["name"] for row in rows(url)] == ["Bea", "Bea", None, None]


def test_without_a_dataset(engine: Engine, url: str) -> None:
    with pytest.raises(longshore.ProgrammingError, match="has no dataset") as caught:
        longshore.write_sql(BOATS, "boats", url.removesuffix("/main"))
    assert "bigquery://project/dataset" in (caught.value.hint or "")
    assert longshore.write_sql(BOATS, "main.boats", url.removesuffix("/main")) == 2
    assert engine.loads[0][0] == "boats"


def test_many_sets_of_parameters_are_few_jobs(engine: Engine, url: str) -> None:
    longshore.write_sql(BOATS.slice(0, 0), "boats", url)
    statements: list[str] = []
    engine.heard = statements.append
    sets = [(number, f"boat {number}" if number % 2 else None) for number in range(6_000)]
    with longshore.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.executemany("INSERT INTO boats (id, name) VALUES (?, ?)", sets)
        assert cursor.rowcount == 6_000
    # Of ten thousand parameters at most.
    assert [each.count("?") for each in statements] == [10_000, 2_000]
    assert [tuple(row.values()) for row in rows(url)] == sets


def test_many_decimals_and_a_null(url: str) -> None:
    longshore.write_sql(pa.table({"v": pa.array([], pa.decimal128(38, 18))}), "t", url)
    most = D("9" * 18 + ".5")
    with longshore.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.executemany("INSERT INTO t VALUES (?)", [(D("0.5"),)] * 16 + [(most,), (None,)])
        found = [value for (value,) in cursor.execute("SELECT v FROM t ORDER BY v").fetchall()]
    assert found == [None, *[D("0.5")] * 16, most]


# Types.

EPOCH, TIMES = dt.datetime(1970, 1, 1, tzinfo=dt.UTC), [[dt.time(2), dt.time(1)], []]
NESTED = pa.struct([("at", pa.time64("us")), ("n", pa.list_(pa.int16()))])
WRITTEN: dict[str, tuple[pa.Array, str, list[Any]]] = {
    "numeric": (pa.array([D("-1.50"), None], pa.decimal128(38, 9)), "NUMERIC", [D("-1.5"), None]),
    "wide": (pa.array([D("1.5"), None], pa.decimal128(20, 15)), "BIGNUMERIC", [D("1.5"), None]),
    "unsigned": (pa.array([2**64 - 1, None], pa.uint64()), "NUMERIC", [D(2**64 - 1), None]),
    "float32": (pa.array([0.1, None], pa.float32()), "FLOAT64", [0.10000000149011612, None]),
    "time": (pa.array([dt.time(1, 2, 3, 4), None], pa.time64("ns")), "TIME", [dt.time(1, 2, 3, 4), None]),
    "category": (pa.array(["a", None]).dictionary_encode(), "STRING", ["a", None]),
    "seconds": (pa.array([0, None], pa.timestamp("s")), "DATETIME", [dt.datetime(1970, 1, 1), None]),  # noqa: DTZ001
    "zoned": (pa.array([0, None], pa.timestamp("ms", "Asia/Tokyo")), "TIMESTAMP", [EPOCH, None]),
    "list": (pa.array([[1, 2], []], pa.large_list(pa.int32())), "ARRAY<INT64>", [[1, 2], []]),
    "times": (pa.array(TIMES, pa.list_(pa.time32("s"))), "ARRAY<TIME>", TIMES),
    "struct": (pa.array([{"at": dt.time(1), "n": [1]}, None], NESTED), "STRUCT", [{"at": dt.time(1), "n": [1]}, None]),
}  # fmt: skip


@pytest.mark.parametrize("name", WRITTEN)
def test_types_of_a_new_table(name: str, url: str) -> None:
    values, native, wanted = WRITTEN[name]
    # A slice has what is before it in its buffers.
    data = pa.table({"n": range(2), "v": pa.concat_arrays([values, values]).slice(2)})
    assert longshore.write_sql(data, "t", url) == 2
    result: Any = longshore.read_sql("SELECT v FROM t ORDER BY n", url, return_type="arrow")
    assert result.schema.field(0).metadata[b"native_type"].decode() == native
    assert result["v"].to_pylist() == wanted


NS = pa.timestamp("ns")
UNFIT: dict[str, tuple[str, pa.Array, str]] = {
    "beyond INT64": ("INT64", pa.array([0, 2**63], pa.uint64()), "9223372036854775808 does not fit int64 exactly"),
    "a part": ("INT64", pa.array([1.0, 1.5]), "1.5 does not fit int64 exactly"),
    "a text": ("INT64", pa.array(["7", "07"]), "07 does not fit int64 exactly"),
    "a large integer": ("FLOAT64", pa.array([2**53, 2**53 + 1]), "9007199254740993 does not fit float64 exactly"),
    "a decimal's digits": ("FLOAT64", pa.array([D("0.1"), D("0.30000000000000000001")]), "does not fit float64"),
    "scale": ("NUMERIC(5, 2)", pa.array([D("999.99"), D("0.001")]), r"0.001 does not fit numeric\(5, 2\) exactly"),
    "precision": ("NUMERIC(5, 2)", pa.array([D("999.99"), D("1000.00")]), "1000.00 does not fit"),
    "whole": ("NUMERIC(5)", pa.array([1.0, 0.5]), "0.5 does not fit"),
    "not a number": ("NUMERIC", pa.array([0.5, float("nan")]), "nan does not fit numeric exactly"),
    "too many digits": ("NUMERIC", pa.array([D(1), D(10**29)], pa.decimal256(40, 0)), "does not fit numeric exactly"),
    "nanoseconds": ("DATETIME", pa.array([1000, 1], NS), "1970-01-01 00:00:00.000000001 does not fit datetime"),
    "a year": ("DATE", pa.array([0, 2932897], pa.date32()), "date has the years 1 to 9999"),
    "a time of day": ("DATE", pa.array([0, 1], pa.timestamp("s")), "has a time of day"),
    "length": ("STRING(3)", pa.array(["äöü", "abcd"]), "longer than the 3"),
    "bytes": ("BYTES(1)", pa.array([b"a", b"ab"]), "longer than the 1"),
    "a NULL list": ("ARRAY<INT64>", pa.array([[1], None]), "NULL, and not a list"),
    "a NULL within": ("ARRAY<INT64>", pa.array([[1, 2], [None]]), "has no NULL"),
    "a value within": ("ARRAY<NUMERIC(3, 1)>", pa.array([[1.5, 2.5], [3.5, 0.25]]), "does not fit"),
    "a field": ("STRUCT<a INT64, b STRING(1)>", pa.array([{"a": 1, "b": "x"}, {"a": 2, "b": "yz"}]), "longer than"),
    "a nanosecond": ("INTERVAL", pa.array([(1, 2, 3000), (0, 0, 1)], pa.month_day_nano_interval()), "has nanoseconds"),
}


@pytest.mark.parametrize("name", UNFIT)
def test_a_value_that_does_not_fit_names_its_row(name: str, engine: Engine, url: str) -> None:
    native, values, says = UNFIT[name]
    before = pa.table({"v": values.slice(0, 1)})
    with pytest.raises(longshore.DataError, match=says) as caught:
        longshore.write_sql(iter([before, pa.table({"v": values})]), "t", url, types={"v": native})
    assert (caught.value.column, caught.value.row, caught.value.native_type) == ("v", 2, native.lower())
    assert caught.value.hint
    assert tables(engine) == []


@pytest.mark.parametrize(
    ("native", "values", "says"),
    [
        ("TIMESTAMP", pa.array([0], pa.timestamp("us")), "by a time zone"),
        ("DATETIME", pa.array([0], pa.timestamp("us", "UTC")), "by a time zone"),
        ("DATE", pa.array([0], pa.timestamp("us", "UTC")), "by a time zone"),
        ("STRING", pa.array([b"a"]), "does not go into a column of string"),
        ("DATE", pa.array([1]), "does not go into a column of date"),
        ("ARRAY<INT64>", pa.array([1]), "does not go into"),
        ("STRUCT<a INT64>", pa.array([{"b": 1}]), "does not go into"),
        ("INT64", pa.array([0], pa.duration("s")), "does not go into"),
    ],
)
def test_a_type_that_the_column_does_not_take(native: str, values: pa.Array, says: str, url: str) -> None:
    with pytest.raises(longshore.NotSupportedError, match=says) as caught:
        longshore.write_sql(pa.table({"v": values}), "t", url, types={"v": native})
    assert caught.value.column == "v"


@pytest.mark.parametrize(
    "native", ["", "INT65", "NUMERIC(5", "ARRAY<INT64", "INT64; DROP TABLE t", "STRUCT<>", "STRUCT<a INT64)", "INT64)"]
)
def test_what_is_not_a_type(native: str, url: str) -> None:
    with pytest.raises(longshore.ProgrammingError, match="is not a type of BigQuery's"):
        longshore.write_sql(pa.table({"v": [1]}), "t", url, types={"v": native or " "})


def fitted(native: str, values: pa.Array) -> tuple[list[Any], str]:
    """Return what is loaded, and the SQL of it."""
    column = Column("v", native, parse_field("v", native))
    column.check(values.type)
    loaded: list[Any] = column.fit(pa.chunked_array([values]), 0).to_pylist()
    return loaded, column.sql("v")


def test_what_the_engine_has_no_type_for() -> None:
    """See what is loaded: digits that DuckDB's decimals have not, intervals and geographies."""
    digits = [D("9" * 38 + "." + "9" * 38), None, D("-" + "9" * 38 + "." + "9" * 38)]
    assert fitted("BIGNUMERIC", pa.array(digits, pa.decimal256(76, 38))) == (digits, "v")
    spans = pa.array([(14, -3, -3_723_000_004_000), None, (-1, 0, 0)], pa.month_day_nano_interval())
    texts = ["1-2 -3 -1:2:3.000004", None, "-0-1 0 0:0:0.000000"]
    assert fitted("INTERVAL", spans) == (texts, "CAST(v AS INTERVAL)")
    assert fitted("GEOGRAPHY", pa.array(["POINT(1 2)"])) == (["POINT(1 2)"], "ST_GEOGFROMTEXT(v)")


def test_types_are_read_as_sql_has_them() -> None:
    field = parse_field("v", "array< Struct<`a b` decimal(5, 2), c ARRAY<String(3)>> >")
    assert (field.mode, field.field_type) == ("REPEATED", "RECORD")
    a, c = field.fields
    assert (a.name, a.field_type, a.precision, a.scale) == ("a b", "NUMERIC", 5, 2)
    assert (c.mode, c.field_type, c.max_length) == ("REPEATED", "STRING", 3)
    assert parse_field("v", "bigint") == bigquery.SchemaField("v", "INT64")
