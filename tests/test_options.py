"""Each key of `options`, those that PostgreSQL has no use for included."""

import dataclasses
import uuid
from decimal import Decimal
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import longshore
from longshore import Options

pytestmark = pytest.mark.packages

WORDS = {
    "numeric_nan": ("error", "null"),
    "infinity": ("error", "null"),
    "time_24": ("error", "null"),
    "zero_date": ("null", "error"),
    "nan": ("null", "keep"),
    "tinyint1": ("int8", "bool"),
    "uuid": ("arrow", "text"),
    "json": ("text", "object"),
    "objects": ("error", "text"),
    "nested": ("error", "json"),
    "protocol": ("binary", "text"),
    "sqlite_types": ("declared", "stored"),
}
SWITCHES = {"snapshot": True, "ordered": False, "lock": False, "verify": False}


def test_every_key_is_here() -> None:
    keys = {field.name for field in dataclasses.fields(Options)}
    assert keys == {*WORDS, *SWITCHES, "memory_limit", "threads"}


@pytest.mark.parametrize(("key", "words"), WORDS.items())
def test_words(key: str, words: tuple[str, ...], url: str) -> None:
    assert getattr(Options(), key) == words[0]
    for word in words:
        assert getattr(Options(**{key: word}), key) == word  # type: ignore[arg-type]
        assert longshore.read_sql("SELECT 1 AS a", url, return_type="numpy", options={key: word})["a"].tolist() == [1]
    for other in ("nonsense", "", None, 1, True, ["null"], words[0].upper()):
        with pytest.raises(longshore.InterfaceError, match=rf"options\['{key}'\] is one of '{words[0]}'"):
            longshore.read_sql("SELECT 1", url, options={key: other})


@pytest.mark.parametrize(("key", "default"), SWITCHES.items())
def test_switches(key: str, default: bool, url: str) -> None:  # noqa: FBT001
    assert getattr(Options(), key) is default
    for value in (True, False):
        assert longshore.read_sql("SELECT 1 AS a", url, return_type="numpy", options={key: value})["a"].tolist() == [1]
    for other in (1, 0, "true", None):
        with pytest.raises(longshore.InterfaceError, match=rf"{key}'\] is True or False"):
            longshore.read_sql("SELECT 1", url, options={key: other})


@pytest.mark.parametrize(
    ("key", "says"),
    [
        ("numeric_nans", "did you mean 'numeric_nan'"),
        ("Protocol", "did you mean 'protocol'"),
        ("memorylimit", "did you mean 'memory_limit'"),
        ("zzz", "known are numeric_nan, infinity"),
        (7, "known are"),
    ],
)
def test_an_unknown_key(key: Any, says: str, url: str) -> None:
    with pytest.raises(longshore.InterfaceError, match=says):
        longshore.read_sql("SELECT 1", url, options={key: "null"})


def test_options_are_frozen_and_compare() -> None:
    assert Options(uuid="text") == Options(uuid="text") != Options()
    with pytest.raises(dataclasses.FrozenInstanceError):
        Options().uuid = "text"  # type: ignore[misc]
    with pytest.raises(TypeError):
        Options("null")  # type: ignore[call-arg]


def test_options_as_an_object(url: str) -> None:
    options = Options(numeric_nan="null")
    assert (
        longshore.read_sql("SELECT 'NaN'::numeric AS n", url, return_type="arrow", options=options)["n"].null_count == 1
    )


@pytest.mark.parametrize(
    ("limit", "size"),
    [
        (0, 0),
        (10, 10),
        ("7", 7),
        ("7b", 7),
        ("2KB", 2000),
        ("1 KiB", 1024),
        ("1.5mb", 1_500_000),
        ("2GiB", 2 << 30),
        (None, None),
        ((1 << 63) - 1, (1 << 63) - 1),
        ("auto", None),
    ],
)
def test_memory_limits(limit: Any, size: int | None) -> None:
    assert Options(memory_limit=limit).memory_limit_bytes == size


HUGE = [1 << 63, "99999999999999999999GB", f"{'9' * 400}MB"]


@pytest.mark.parametrize("limit", [-1, 1.5, True, "", "x", "1TB", "-1", ".", "1..5MB", "1e3", [1], *HUGE])
def test_memory_limits_that_are_none(limit: Any) -> None:
    with pytest.raises(longshore.InterfaceError, match="memory_limit"):
        Options(memory_limit=limit)


@pytest.mark.parametrize("threads", [0, -1, 1.5, True, "4"])
def test_threads_that_are_none(threads: Any) -> None:
    assert Options(threads=4).threads == 4
    with pytest.raises(longshore.InterfaceError, match="threads"):
        Options(threads=threads)


@pytest.mark.parametrize("return_type", ["pandas", "arrow", "polars", "numpy"])
@pytest.mark.parametrize("column", ["i", "i::text", "i::numeric"])
def test_a_result_over_the_memory_limit(return_type: str, column: str, url: str) -> None:
    query = f"SELECT {column} AS i FROM generate_series(1, 1000000) AS i"
    with pytest.raises(longshore.MemoryLimitError, match="memory_limit of 1000000 bytes") as caught:
        longshore.read_sql(query, url, return_type=return_type, options={"memory_limit": "1MB"})
    assert "arrow_stream" in str(caught.value.hint)
    few = longshore.read_sql(f"{query} LIMIT 10", url, return_type=return_type, options={"memory_limit": "1MB"})
    assert few is not None


@pytest.mark.parametrize("protocol", ["binary", "text"])
def test_uuid(protocol: str, url: str) -> None:
    text = "12345678-9abc-def0-1234-56789abcdef0"
    query = f"SELECT '{text}'::uuid AS u, ARRAY['{text}'::uuid, NULL] AS us"

    def read(return_type: str, kind: str) -> Any:
        return longshore.read_sql(query, url, return_type=return_type, options={"uuid": kind, "protocol": protocol})

    assert read("arrow", "text").to_pylist() == [{"u": text, "us": [text, None]}]
    assert read("arrow", "text").schema.field("u").type == pa.string()
    assert read("pandas", "arrow")["u"].tolist() == [uuid.UUID(text)]
    assert read("pandas", "text")["u"].tolist() == [text]
    assert read("numpy", "arrow")["u"].tolist() == [uuid.UUID(text)]
    assert read("polars", "arrow")["u"].to_list() == [text]


@pytest.mark.parametrize("protocol", ["binary", "text"])
@pytest.mark.parametrize("type_", ["json", "jsonb"])
def test_json(type_: str, protocol: str, url: str) -> None:
    query = f"""SELECT '{{"a": [1, null]}}'::{type_} AS j UNION ALL SELECT NULL UNION ALL SELECT 'null'"""

    def read(return_type: str, kind: str) -> list[Any]:
        frame = longshore.read_sql(query, url, return_type=return_type, options={"json": kind, "protocol": protocol})
        return list(frame["j"].tolist())

    assert read("pandas", "text")[::2] == ['{"a": [1, null]}', "null"]
    assert read("pandas", "object")[0] == {"a": [1, None]}
    assert read("numpy", "object") == [{"a": [1, None]}, None, None]


def test_protocol(url: str) -> None:
    query = "SELECT 1.5::float8 AS f, '\\x00'::bytea AS b, 1.50::numeric(3,2) AS n, now() AS at, ARRAY[1, NULL] AS l"
    binary, text = (
        longshore.read_sql(
            query.replace("now()", "'2024-01-01'::timestamptz"),
            url,
            return_type="arrow",
            options={"protocol": protocol},
        )
        for protocol in ("binary", "text")
    )
    assert binary.equals(text)
    assert binary.schema.equals(text.schema, check_metadata=True)


@pytest.mark.parametrize("return_type", ["pandas", "polars", "arrow", "numpy", "arrow_stream"])
def test_numeric_nan(return_type: str, url: str) -> None:
    query = "SELECT 'NaN'::numeric(10,2) AS n UNION ALL SELECT 1"

    def read(**options: Any) -> Any:
        got = longshore.read_sql(query, url, return_type=return_type, options=options)
        return pa.RecordBatchReader.from_stream(got).read_all() if return_type == "arrow_stream" else got

    with pytest.raises((longshore.DataError, pa.ArrowException, OSError), match="NaN has no exact decimal"):
        read()
    column = read(numeric_nan="null")["n"]
    if return_type == "pandas":
        assert pd.isna(column.iloc[0])
        assert column.iloc[1] == 1.0
    else:
        assert (
            column.tolist()
            if return_type == "numpy"
            else column.to_pylist()
            if return_type.startswith("arrow")
            else column.to_list()
        ) == [None, Decimal("1.00")]


def test_the_memory_limit_is_what_the_system_leaves_unless_it_is_given() -> None:
    assert Options().memory_budget == Options().stream_budget == "auto"
    assert (Options(memory_limit="1KB").memory_budget, Options(memory_limit="1KB").stream_budget) == (1000, None)
    assert (Options(memory_limit=None).memory_budget, Options(memory_limit=None).stream_budget) == (None, None)
    assert issubclass(longshore.MemoryLimitError, MemoryError)
