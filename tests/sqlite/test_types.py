"""Every declared type of the table of cases, by URL and by Python's own connection, exactly."""

import contextlib
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import longshore
from tests.conformance import plain
from tests.conformance import sqlite as quirks
from tests.conformance.sqlite_cases import CASES
from tests.conformance.sqlite_cases.case import SQLiteCase

TABLES = [case for case in CASES if case.query is None]
WIDENED = [(quirks.widened(case, to), case.declared) for case in CASES for to in case.widened]
WANTED = [(case, wanted) for case in CASES for wanted in case.wanted]


def named(cases: list[Any]) -> list[Any]:
    return [pytest.param(*case, id=f"{case[0].title or case[0].type}-{number}") for number, case in enumerate(cases)]


Read = Callable[..., Any]


@pytest.fixture(params=quirks.WAYS)
def read(request: pytest.FixtureRequest) -> Iterator[Read]:
    """Give a function that reads the cells of a case, in one of the two ways."""
    with contextlib.ExitStack() as stack:

        def one(case: SQLiteCase, cells: Iterable[str], where: str = "true", **more: Any) -> Any:
            conn: Any = quirks.URL
            if request.param == "connection":
                conn = stack.enter_context(contextlib.closing(sqlite3.connect(":memory:")))
            more.setdefault("return_type", "arrow")
            before = quirks.setup(case, cells)
            return longshore.read_sql(quirks.query(case, where), conn, pre_execution_query=before, **more)

        yield one


def check(read: Read, case: SQLiteCase, nulls: int, **more: Any) -> None:
    around = [None] * nulls if case.query is None else []
    cells = [*(["NULL"] * len(around)), *case.cells, *(["nullif(1, 1)"] * len(around))]
    table = read(case, cells, **more)
    assert table.column_names == ["value"]
    field = table.schema.field(0)
    assert plain.storage(field.type) == case.arrow
    assert plain.values(table["value"]) == plain.expected([*around, *case.cells.values(), *around], case.arrow)
    assert field.nullable
    assert (field.metadata or {}).get(b"native_type", b"").decode() == case.type


@pytest.mark.parametrize("nulls", [0, 1, 300])
@pytest.mark.parametrize("case", named([(case,) for case in CASES]))
def test_values(case: SQLiteCase, nulls: int, read: Read) -> None:
    for batch_size in (1, 100, None):
        check(read, case, nulls, batch_size=batch_size)


@pytest.mark.parametrize("nulls", [0, 1, 300])
@pytest.mark.parametrize(("case", "declared"), named(WIDENED))
def test_a_column_widens(case: SQLiteCase, declared: pa.DataType, nulls: int, read: Read) -> None:
    assert case.arrow != declared
    backwards = replace(case, cells=dict(reversed(case.cells.items())))
    for batch_size in (1, 100, None):
        check(read, case, nulls, batch_size=batch_size)
        check(read, backwards, nulls, batch_size=batch_size)


@pytest.mark.parametrize(("case", "declared"), named([pair for pair in WIDENED if pair[0].type]))
def test_a_column_of_a_stream_does_not_widen(case: SQLiteCase, declared: pa.DataType, read: Read) -> None:
    with pytest.raises(longshore.DataError, match=r'schema=\{"value"') as caught:
        list(read(case, ["NULL", *case.cells], return_type="arrow_stream"))
    assert caught.value.column == "value"
    assert caught.value.row in range(1, len(case.cells) + 1)
    assert declared == plain.storage(read(case, ["NULL"]).schema.field(0).type)


@pytest.mark.parametrize("case", named([(case,) for case in TABLES if case.type and case.empty is None]))
def test_a_stream_has_the_declared_type(case: SQLiteCase, read: Read) -> None:
    stream = read(case, [*case.cells], return_type="arrow_stream", batch_size=1)
    reader = pa.RecordBatchReader.from_stream(stream)
    assert reader.schema.field(0).type == case.declared
    assert plain.values(reader.read_all()["value"]) == plain.expected([*case.cells.values()], case.arrow)


@pytest.mark.parametrize("cells", [[], ["NULL"], ["NULL"] * 300], ids=["empty", "null", "nulls"])
@pytest.mark.parametrize("case", named([(case,) for case in TABLES]))
def test_without_values_the_declaration_tells(case: SQLiteCase, cells: list[str], read: Read) -> None:
    table = read(case, cells)
    assert table["value"].to_pylist() == [None] * len(cells)
    assert plain.storage(table.schema.field(0).type) == case.declared
    stream = pa.schema(read(case, cells, return_type="arrow_stream"))
    assert stream.equals(table.schema, check_metadata=True)
    assert read(case, [*case.cells], where="false").schema.equals(table.schema, check_metadata=True)


@pytest.mark.parametrize("case", named([(case,) for case in CASES if case.query is not None]))
def test_an_expression_without_values_is_text(case: SQLiteCase, read: Read) -> None:
    for return_type in ("arrow", "arrow_stream"):
        result = read(case, [], where="false", return_type=return_type)
        schema = result.schema if return_type == "arrow" else pa.schema(result)
        assert schema.types == [case.declared] == [pa.string()]


@pytest.mark.packages
@pytest.mark.filterwarnings("ignore:numeric values:longshore.DataWarning")
@pytest.mark.parametrize("return_type", ["pandas", "polars", "numpy"])
@pytest.mark.parametrize("case", named([(case,) for case in TABLES if case.empty is None]))
def test_dtypes_do_not_follow_the_rows(case: SQLiteCase, return_type: str, read: Read) -> None:
    full, empty, nulls = (
        read(case, cells, return_type=return_type)["value"] for cells in ([*case.cells], [], ["NULL"] * 3)
    )
    assert full.dtype == empty.dtype == nulls.dtype
    assert [len(full), len(empty), len(nulls)] == [len(case.cells), 0, 3]


@pytest.mark.parametrize(("case", "misfit"), named([(case, misfit) for case in CASES for misfit in case.misfits]))
def test_what_no_type_holds_is_an_error(case: SQLiteCase, misfit: Any, read: Read) -> None:
    cells = ["NULL", *case.cells, misfit.sql]
    for return_type in ("arrow", "arrow_stream"):
        with pytest.raises(longshore.DataError) as caught:
            list(read(case, cells, return_type=return_type))
        assert "value" in str(caught.value)
        assert "schema={" in (caught.value.hint or "")
        if misfit.says in str(caught.value) and caught.value.column is None:
            # Python's own module has found it, and tells no row.
            assert misfit.says == "UTF-8"
            continue
        assert (caught.value.column, caught.value.row) == ("value", len(cells) - 1)
        if return_type == "arrow":
            assert misfit.says in str(caught.value)


@pytest.mark.parametrize(("case", "wanted"), named(WANTED))
def test_schema_asks_for_another_type(case: SQLiteCase, wanted: Any, read: Read) -> None:
    schema = {"value": wanted.arrow}
    column = read(case, ["NULL", *wanted.cells], schema=schema)["value"]
    assert plain.storage(column.type) == wanted.arrow
    assert plain.values(column) == plain.expected([None, *wanted.cells.values()], wanted.arrow)
    for cell in wanted.refused:
        with pytest.raises(longshore.DataError) as caught:
            read(case, ["NULL", *wanted.cells, cell], schema=schema)
        assert (caught.value.column, caught.value.row) == ("value", len(wanted.cells) + 1), cell
        assert caught.value.hint


@pytest.mark.packages
@pytest.mark.parametrize("return_type", ["pandas", "polars", "numpy"])
@pytest.mark.parametrize("declared", ["", "INTEGER", "REAL", "DECIMAL(9,2)"])
def test_null_and_then_a_number_and_then_a_word(declared: str, return_type: str, read: Read) -> None:
    case = SQLiteCase(type=declared, arrow=pa.string(), cells={})
    column = read(case, ["NULL", "1.5", "'x'"], return_type=return_type)["value"]
    values = column.to_list() if return_type == "polars" else column.tolist()
    assert [None if pd.isna(value) else value for value in values] == [None, "1.5", "x"]
