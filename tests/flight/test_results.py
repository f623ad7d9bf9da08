"""Results of every shape that the protocol has: endpoints, locations, compression, dictionaries, large messages."""

import contextlib
import datetime as dt
import decimal
import threading
from collections.abc import Iterator
from functools import partial

import pyarrow as pa
import pytest
from pyarrow import flight

import longshore
from tests.flight.scripted import Part, Script, ScriptedFlight, script, serving

NUMBERS = pa.table({"n": pa.array(range(10), pa.int64()), "t": [f"text {n}" for n in range(10)]})
MORE = pa.table({"n": pa.array(range(10, 15), pa.int64()), "t": pa.array([None] * 5, pa.string())})
TYPES = pa.table(
    {
        "bool": pa.array([True, None, False]),
        "uint64": pa.array([0, None, 2**64 - 1], pa.uint64()),
        "float": pa.array([1.5, None, float("-inf")]),
        "decimal": pa.array([decimal.Decimal("-1.10"), None, decimal.Decimal("99.99")], pa.decimal128(4, 2)),
        "wide": pa.array([decimal.Decimal(10) ** 50, None, decimal.Decimal(0)], pa.decimal256(60, 0)),
        "date": pa.array([dt.date(1, 1, 1), None, dt.date(9999, 12, 31)]),
        "time": pa.array([dt.time(0), None, dt.time(23, 59, 59, 999999)], pa.time64("us")),
        "stamp": pa.array([0, None, 2**53 + 1], pa.timestamp("us")),
        "instant": pa.array([0, None, 1], pa.timestamp("ns", "UTC")),
        "view": pa.array(["a", None, "longer than twelve bytes"], pa.string_view()),
        "large": pa.array([b"", None, b"\x00\xff"], pa.large_binary()),
        "list": pa.array([[1, None], None, []], pa.list_(pa.int32())),
        "struct": pa.array([{"a": 1, "b": "x"}, None, {"a": None, "b": ""}]),
        "map": pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int64())),
        "labels": pa.array(["b", None, "a"]).dictionary_encode(),
    }
)


def read(server: ScriptedFlight, query: str, **options: object) -> pa.Table:
    """Read a scripted result to Arrow."""
    return longshore.read_sql(f"SELECT {query}", server.url(), return_type="arrow", **options)  # type: ignore[call-overload]


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedFlight]:
    """Give a server of well-formed results."""
    deltas = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True)
    first, more = pa.array(["a", "b"]), pa.array(["a", "b", "c", None])
    keys = pa.array([0, 1, 1], pa.int32()), pa.array([2, 0, 3], pa.int32())
    growing = [pa.DictionaryArray.from_arrays(*pair) for pair in zip(keys, (first, more), strict=True)]
    others = [growing[0], pa.DictionaryArray.from_arrays(keys[0], pa.array(["x", "y"]))]
    big = pa.table({"b": pa.array([b"x" * (24 << 20), b"y" * (24 << 20)], pa.large_binary())})
    scripts = {
        "one": script(NUMBERS),
        "types": script(TYPES),
        "none": Script([], NUMBERS.schema),
        "empty": script(NUMBERS.slice(0, 0)),
        "ordered": script(NUMBERS, MORE, NUMBERS, ordered=True),
        "several": script(*[NUMBERS] * 20),
        "lz4": script(TYPES, options=pa.ipc.IpcWriteOptions(compression="lz4")),
        "zstd": script(TYPES, options=pa.ipc.IpcWriteOptions(compression="zstd")),
        "deltas": script(pa.table({"d": pa.chunked_array(growing)}), options=deltas),
        "replaced": script(pa.table({"d": pa.chunked_array(others)})),
        "big": script(big),
        "columnless": script(pa.table({"a": [1, 2, 3]}).select([])),
    }
    with serving(scripts) as server:
        yield server


def test_one_endpoint(server: ScriptedFlight) -> None:
    assert read(server, "one").equals(NUMBERS)


@pytest.mark.parametrize("query", ["types", "lz4", "zstd"])
def test_types_arrive_as_they_are(server: ScriptedFlight, query: str) -> None:
    found = read(server, query)
    assert found.equals(TYPES)
    assert longshore.schema(f"SELECT {query}", server.url()).equals(TYPES.schema)


def test_pandas_has_doubles_for_decimals_and_what_the_caller_asks_for(server: ScriptedFlight) -> None:
    frame = longshore.read_sql("SELECT types", server.url(), schema={"uint64": "string"})
    assert frame["decimal"].tolist()[0] == -1.1
    assert str(frame["decimal"].dtype) == "float64"
    assert frame["uint64"].tolist()[2] == "18446744073709551615"
    with pytest.raises(longshore.DataError, match=r"beyond|does not fit|range") as failure:
        read(server, "types", schema={"uint64": "int64"})
    assert (failure.value.column, failure.value.row) == ("uint64", 2)


@pytest.mark.parametrize("query", ["none", "empty"])
def test_a_result_without_rows_has_its_schema(server: ScriptedFlight, query: str) -> None:
    found = read(server, query)
    assert found.num_rows == 0
    assert found.schema.equals(NUMBERS.schema)


def test_endpoints_in_order_are_read_in_order(server: ScriptedFlight) -> None:
    assert read(server, "ordered").equals(pa.concat_tables([NUMBERS, MORE, NUMBERS]))


def test_all_endpoints_are_read_once(server: ScriptedFlight) -> None:
    server.seen.calls.clear()
    found = read(server, "several")
    assert sorted(found["n"].to_pylist()) == sorted(list(range(10)) * 20)
    asked = [text for kind, text in server.seen.calls if kind == "DoGet"]
    assert sorted(asked) == sorted(f"several#{at}" for at in range(20))
    assert not [text for kind, text in server.seen.calls if kind == "DoAction"]


@pytest.mark.parametrize(("query", "values"), [("deltas", "a b b c a -"), ("replaced", "a b b x y y")])
def test_dictionaries_grow_and_are_replaced(server: ScriptedFlight, query: str, values: str) -> None:
    expected = [None if value == "-" else value for value in values.split()]
    batches = longshore.read_sql(f"SELECT {query}", server.url(), return_type="arrow_stream")
    assert [value for batch in batches for value in batch.column(0).to_pylist()] == expected
    assert read(server, query)["d"].to_pylist() == expected
    assert (
        longshore.read_sql(f"SELECT {query}", server.url())["d"]
        .astype(object)
        .where(lambda s: s.notna(), None)
        .tolist()
        == expected
    )


def test_a_message_may_be_large(server: ScriptedFlight) -> None:
    assert read(server, "big").column(0).to_pylist()[1] == b"y" * (24 << 20)
    with pytest.raises(longshore.OperationalError, match=r"too large|limit") as failure:
        longshore.read_sql("SELECT big", server.url(max_message_size=1 << 20))
    assert "max_message_size" in (failure.value.hint or "")


def test_rows_without_columns_are_counted(server: ScriptedFlight) -> None:
    assert read(server, "columnless").num_rows == 3


def test_locations_are_tried_in_turn(server: ScriptedFlight) -> None:
    reused, gone = "arrow-flight-reuse-connection://?", "grpc://127.0.0.1:1"
    send = partial(flight.RecordBatchStream, NUMBERS)
    with serving({"there": script(NUMBERS)}) as other:
        places = [[], [reused], [gone, reused], [gone, other.location]]
        other.scripts["places"] = Script([Part(send)] * len(places), NUMBERS.schema)
        server.scripts["places"] = Script([Part(send, place) for place in places], NUMBERS.schema)
        assert read(server, "places").num_rows == 10 * len(places)
        assert [text for kind, text in other.seen.calls if kind == "DoGet"] == ["places#3"]
    server.scripts["nowhere"] = Script([Part(send, [gone, "grpc://127.0.0.1:2"])], NUMBERS.schema)
    with pytest.raises(longshore.OperationalError, match="none of the locations") as failure:
        read(server, "nowhere")
    assert ":1:" in str(failure.value)
    assert ":2:" in str(failure.value)
    server.scripts["strange"] = Script([Part(send, ["https://127.0.0.1/rows.parquet"])], NUMBERS.schema)
    with pytest.raises(longshore.NotSupportedError, match="https"):
        read(server, "strange")


def test_a_stream_holds_few_batches(server: ScriptedFlight) -> None:
    sent = 0
    wide = pa.table({"b": pa.array([b"x" * (1 << 20)])})

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal sent
        for _ in range(200):
            sent += 1
            yield wide.to_batches()[0]

    server.scripts["long"] = Script([Part(lambda: flight.GeneratorStream(wide.schema, batches()))], wide.schema)
    stream = longshore.read_sql("SELECT long", server.url(), return_type="arrow_stream")
    next(iter(stream))
    before = threading.Event()
    before.wait(0.5)
    # What the windows of HTTP/2 and both sides' buffers take.
    assert sent < 60
    rest = sum(batch.num_rows for batch in stream)
    assert (sent, rest) == (200, 199)


@pytest.mark.parametrize("form", ["arrow", "pandas", "polars"])
def test_a_limit_of_memory_counts_a_message_once(server: ScriptedFlight, form: str) -> None:
    """All columns of a message share its body."""
    server.scripts["wide"] = script(pa.table({f"n{at}": pa.array(range(20_000), pa.int64()) for at in range(20)}))
    for limit, fits in ((4 << 20, True), (2 << 20, False)):
        options = {"memory_limit": limit}
        with contextlib.nullcontext() if fits else pytest.raises(longshore.MemoryLimitError, match="memory_limit"):
            longshore.read_sql("SELECT wide", server.url(), return_type=form, options=options)


def test_several_queries_are_refused(server: ScriptedFlight) -> None:
    with pytest.raises(longshore.ProgrammingError, match="several statements"):
        read(server, "1; SELECT 2")


def test_a_server_that_gives_no_parts_is_told_of(server: ScriptedFlight) -> None:
    with pytest.warns(longshore.SerialReadWarning, match="one endpoint"):
        assert read(server, "one", partition_num=3) == NUMBERS
    # It has several by itself.
    assert read(server, "several", partition_num=3).num_rows == 200
