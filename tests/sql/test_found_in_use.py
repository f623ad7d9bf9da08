"""Names, tables and parameters as people and other libraries write them."""

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pytest

import longshore
from longshore import DataError, InterfaceError, ProgrammingError
from tests.sql.rows import rows

pytestmark = pytest.mark.packages

TABLE = pa.table({"x": [1, 2]})


class Producer:
    """A stream whenever it is asked for one."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        """Give it from the start."""
        return TABLE.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize(
    "query",
    [
        "WITH df AS (SELECT a + 1 AS a FROM df) SELECT * FROM df",
        "WITH df AS MATERIALIZED (SELECT a + 1 AS a FROM df) SELECT * FROM df",
        "WITH b AS (SELECT 1), df AS (SELECT a + 1 AS a FROM df) SELECT * FROM df",
        "WITH df AS (WITH df AS (SELECT a + 1 AS a FROM df) FROM df) SELECT * FROM df",
        "SELECT * FROM (WITH df AS (SELECT a + 1 AS a FROM df) SELECT * FROM df)",
    ],
)
def test_a_common_table_expression_reads_the_variable_of_its_name(query: str) -> None:
    df = pd.DataFrame({"a": [1, 2]})
    assert rows(query) == [{"a": 2}, {"a": 3}] == rows(query, df=df)


def test_a_common_table_expression_that_reads_itself_is_an_error() -> None:
    with pytest.raises(ProgrammingError, match='Circular reference to CTE "of_nothing"'):
        rows("WITH of_nothing AS (FROM of_nothing) FROM of_nothing")


def test_a_hint_names_tables_alone() -> None:
    import os

    ox, osa = 1, {"x": [1]}
    assert os.name
    assert ox
    assert osa
    with pytest.raises(ProgrammingError, match="did you mean 'osa'"):
        longshore.sql("FROM os_")
    del osa
    with pytest.raises(ProgrammingError) as caught:
        longshore.sql("FROM oss")
    assert caught.value.hint == "give it as a keyword: sql(..., oss=frame)"


@pytest.mark.parametrize("name", ["a.foo", "boats/june.dat", "*.foo"])
def test_a_file_of_an_unknown_kind_is_told_what_reads_it(name: str) -> None:
    with pytest.raises(ProgrammingError, match="does not tell what kind of file") as caught:
        rows(f"FROM '{name}'")
    assert caught.value.hint is not None
    assert f"read_csv('{name}')" in caught.value.hint


def _ipc(make: Callable[..., Any], read: Callable[[Any], Any]) -> Any:
    file = io.BytesIO()
    with make(file, TABLE.schema) as writer:
        writer.write_table(TABLE)
    return read(file.getvalue())


@pytest.mark.parametrize(
    "make",
    [
        Producer,
        TABLE.__arrow_c_stream__,
        lambda: pyarrow.dataset.dataset(TABLE).scanner(),
        lambda: _ipc(pa.ipc.new_stream, pa.ipc.open_stream),
        lambda: _ipc(pa.ipc.new_file, pa.ipc.open_file),
        lambda: {"x": [1, 2]},
        lambda: [{"x": 1}, {"x": 2}],
    ],
    ids=["producer", "capsule", "scanner", "stream", "file", "dict", "rows"],
)
def test_what_can_be_a_table_is_found_behind_a_helper(make: Callable[[], Any]) -> None:
    def helper(query: str) -> Any:
        return rows(query)

    def caller() -> Any:
        behind_it = make()
        found = helper("SELECT x FROM behind_it ORDER BY x")
        del behind_it
        return found

    assert caller() == [{"x": 1}, {"x": 2}]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(*) AS n FROM data a, data b",
        "WITH c AS NOT MATERIALIZED (FROM data) SELECT count(*) AS n FROM c a, c b",
        "CREATE TABLE t AS FROM data UNION ALL FROM data UNION ALL FROM data; SELECT count(*) - 2 AS n FROM t",
    ],
)
def test_a_producer_is_read_as_often_as_it_is_named(query: str) -> None:
    assert rows(query, data=Producer()) == [{"n": 4}]


def test_a_reader_that_is_named_twice_is_an_error() -> None:
    with pytest.raises(ProgrammingError, match="can be read only once"):
        rows("FROM data a, data b", data=TABLE.to_reader())


def test_parameters_of_places_may_be_numbered() -> None:
    assert rows("SELECT $2 AS b, $1 AS a", params={1: "x", 2: 5}) == [{"b": 5, "a": "x"}]
    with pytest.raises(InterfaceError, match="by texts"):
        rows("SELECT $1 AS a", params={1.5: "x"})


@pytest.mark.parametrize(
    ("query", "params", "hint"),
    [
        ("SELECT :n", None, 'params={"name": value}'),
        ("SELECT $n, $m", None, '{"m": ..., "n": ...}'),
        ("SELECT ?", None, "params=[...]"),
        ("SELECT $n, $m", {"n": 1}, '{"m": ...}'),
    ],
)
def test_a_parameter_without_a_value_is_told_where_values_go(query: str, params: Any, hint: str) -> None:
    with pytest.raises(ProgrammingError) as caught:
        rows(query, params=params)
    assert hint in str(caught.value.hint)


def test_keys_of_a_map_are_the_datas() -> None:
    twice = pa.MapArray.from_arrays([0, 2], ["k", "k"], [1, 2])
    with pytest.raises(DataError, match="duplicate key"):
        rows("FROM data", data=pa.table({"m": twice}))
    with pytest.raises(DataError, match="must be unique"):
        rows("SELECT MAP([1, 1], [2, 3]) AS m")


def _runs(array: Any) -> Any:
    # pyarrow 16 takes no array of them.
    return pa.RunEndEncodedArray.from_arrays([2, 3], array)


DAY = 86_400_000
ENCODED = [
    pa.array([1, None], pa.int32()).view(pa.time32("s")),
    pa.array([1, None], pa.int32()).view(pa.time32("ms")),
    pa.array([1, None]).view(pa.time64("us")),
    pa.array([DAY, None]).view(pa.date64()),
    pa.array([np.float16(1.5), None], pa.float16()),
]


@pytest.mark.parametrize("shape", ["plain", "sliced", "struct"])
@pytest.mark.parametrize("give", [lambda table: table, pa.Table.to_reader, lambda table: table.to_batches()[0]])
@pytest.mark.parametrize("array", ENCODED, ids=lambda each: str(each.type))
def test_runs_of_values_that_are_looked_at_are_refused(array: Any, give: Callable[[Any], Any], shape: str) -> None:
    encoded = _runs(array)
    if shape == "sliced":
        encoded = encoded[1:]
    if shape == "struct":
        encoded = pa.StructArray.from_arrays([encoded], ["f"])
    with pytest.raises(DataError, match=r"^column 'x' of 'data', .*the engine does not have the type"):
        rows("SELECT x FROM data", data=give(pa.table({"x": encoded})))


def test_runs_of_others_enter() -> None:
    data = pa.table({"x": _runs(pa.array([1, None])), "y": _runs(ENCODED[0])})
    assert rows("SELECT x FROM data", data=data) == [{"x": 1}, {"x": 1}, {"x": None}]


@pytest.mark.parametrize("shape", ["plain", "struct"])
def test_dictionaries_of_half_floats_are_refused(shape: str) -> None:
    indices, values = pa.array([1, 0, None], pa.int8()), pa.array([np.float16(0.5), np.float16(2)], pa.float16())
    array = pa.DictionaryArray.from_arrays(indices, values)
    if shape == "struct":
        array = pa.StructArray.from_arrays([array], ["f"])
    with pytest.raises(DataError, match="the engine does not have the type"):
        rows("SELECT x FROM data", data=pa.table({"x": array}))


def _interval(nanoseconds: int) -> Any:
    return pa.array([None, pa.MonthDayNano([1, 2, nanoseconds])], pa.month_day_nano_interval())


def _span(nanoseconds: int) -> Any:
    return pa.array([None, nanoseconds]).view(pa.duration("ns"))


WITHIN: dict[str, Callable[[Any], Any]] = {
    "plain": lambda array: array,
    "struct": lambda array: pa.StructArray.from_arrays([array], ["a"]),
    "list": lambda array: pa.ListArray.from_arrays([0, 1, 2], array),
    "fixed list": lambda array: pa.FixedSizeListArray.from_arrays(array, 1),
    "map": lambda array: pa.MapArray.from_arrays([0, 1, 2], pa.array(["a", "b"]), array),
    "dictionary": lambda array: pa.DictionaryArray.from_arrays([0, 1], array),
    "list of structs": lambda array: pa.ListArray.from_arrays([0, 1, 2], pa.StructArray.from_arrays([array], ["a"])),
}


@pytest.mark.parametrize("give", [lambda table: table, pa.Table.to_reader])
@pytest.mark.parametrize("make", [_interval, _span])
@pytest.mark.parametrize("shape", WITHIN)
def test_spans_within_others_are_taken_to_the_microsecond(
    shape: str, make: Callable[[int], Any], give: Callable[[Any], Any]
) -> None:
    data = give(pa.table({"x": WITHIN[shape](make(5_000))}))
    found = longshore.sql("SELECT x::VARCHAR AS x FROM data", data=data, return_type="arrow").to_pylist()
    assert "00:00:00.000005" in found[1]["x"]
    data = give(pa.table({"x": WITHIN[shape](make(5_001))}))
    with pytest.raises(DataError, match=r"row 1, .*no nanoseconds") as caught:
        rows("SELECT x FROM data", data=data)
    assert (caught.value.column, caught.value.row) == ("x", 1)
