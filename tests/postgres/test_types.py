"""Every type of the table of cases, in every form and both protocols, exactly."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from typing import Any

import pyarrow as pa
import pytest

import longshore
from tests.conformance import plain, postgresql
from tests.conformance.case import Case, Misfit
from tests.conformance.cases import CASES
from tests.fixtures import Place


def named(cases: list[Any]) -> list[Any]:
    return [pytest.param(*case, id=f"{case[0].type}-{number}") for number, case in enumerate(cases)]


def read(case: Case, url: str, cells: list[str], protocol: str, **options: Any) -> Any:
    return longshore.read_sql(
        postgresql.query(case),
        url,
        return_type="arrow",
        pre_execution_query=postgresql.setup(case, cells),
        options={"protocol": protocol, **options},
    )


def derived(case: Case, type_: str, cells: dict[str, Any], arrow: pa.DataType, *setup: str) -> Case:
    return Case(type=type_, arrow=arrow, cells=cells, setup=(*case.setup, *setup), needs=case.needs, since=case.since)


def check(case: Case, session: longshore.Connection) -> list[pa.Schema]:
    """See that both protocols give the values and their type, and return their schemas."""
    cells = case.cells if case.query else {"NULL": None, **case.cells, "CASE WHEN true THEN NULL END": None}
    for statement in postgresql.setup(case, list(cells)):
        session.execute(statement)
    schemas = []
    for protocol in postgresql.PROTOCOLS:
        options: Any = {"protocol": protocol}
        table: Any = longshore.read_sql(postgresql.query(case), session, return_type="arrow", options=options)
        assert table.column_names == ["value"]
        assert plain.values(table["value"]) == plain.expected(list(cells.values()), case.arrow), protocol
        assert plain.storage(table.schema.field(0).type) == case.arrow, protocol
        schemas.append(table.schema)
    return schemas


Sessions = Callable[[str], longshore.Connection]


@pytest.fixture(scope="module")
def sessions() -> Iterator[Sessions]:
    """Give a connection to each server, which all cases share."""
    with ExitStack() as stack:
        yield cache(lambda url: stack.enter_context(longshore.connect(url)))


@pytest.fixture
def session(case: Case, place: Place, sessions: Sessions) -> Iterator[longshore.Connection]:
    """Give a connection to a server that has what the case needs; what the test makes is undone."""
    session = sessions(place(case))
    yield session
    session.rollback()


@pytest.mark.packages
@pytest.mark.server
@pytest.mark.parametrize("case", named([(case,) for case in CASES]))
def test_values(case: Case, session: longshore.Connection) -> None:
    schemas = check(case, session)
    for schema in schemas:
        assert schema.field(0).nullable
        assert schema.field(0).metadata[b"native_type"].decode() == (case.native or case.type)
    empty: Any = longshore.read_sql(postgresql.query(case, "false"), session, return_type="arrow")
    assert empty.num_rows == 0
    # Decimals without a declared scale have that of the values.
    if "numeric" not in case.type and case.type != "free":
        assert all(empty.schema.equals(schema, check_metadata=True) for schema in schemas)


@pytest.mark.packages
@pytest.mark.server
@pytest.mark.parametrize("case", named([(case,) for case in CASES if case.extension]))
def test_extension_names(case: Case, place: Place) -> None:
    stream = longshore.read_sql(
        postgresql.query(case),
        place(case),
        return_type="arrow_stream",
        pre_execution_query=postgresql.setup(case, list(case.cells)),
    )
    field = pa.schema(stream).field(0)
    name = getattr(field.type, "extension_name", None) or field.metadata[b"ARROW:extension:name"].decode()
    assert name == case.extension


# An array of a domain over arrays is a case of its own.
@pytest.mark.parametrize(
    "case",
    named(
        [
            (case,)
            for case in CASES
            if not case.query
            and "[]" not in case.type
            and case.cells
            and not (pa.types.is_list(case.arrow) and case.setup)
        ]
    ),
)
@pytest.mark.parametrize("dimensions", [1, 2])
def test_arrays_of_every_type(case: Case, dimensions: int, session: longshore.Connection) -> None:
    sql = [f"CAST({cell} AS {case.type})" for cell in case.cells]
    values = list(case.cells.values())
    one = ", ".join([*sql, "NULL"])
    if dimensions == 1:
        cells = {f"ARRAY[{one}]::{case.type}[]": [*values, None], "'{}'": [], "'{NULL}'": [None]}
        arrow = pa.list_(case.arrow)
    else:
        other = ", ".join(["NULL", *reversed(sql)])
        cells = {
            f"ARRAY[[{one}], [{other}]]::{case.type}[][]": [[*values, None], [None, *reversed(values)]],
            "'{}'": [],
        }
        arrow = pa.list_(pa.list_(case.arrow))
    check(derived(case, case.type + "[]" * dimensions, cells, arrow), session)


# No column of a composite declares its dimensions.
@pytest.mark.parametrize(
    "case", named([(case,) for case in CASES if not case.query and case.cells and not case.type.endswith("[][]")])
)
def test_composites_of_every_type(case: Case, session: longshore.Connection) -> None:
    cells: dict[str, Any] = {
        f"ROW(1, CAST({sql} AS {case.type}), 'end')": [1, value, "end"] for sql, value in case.cells.items()
    }
    cells["ROW(NULL, NULL, NULL)"] = [None, None, None]
    arrow = pa.struct([("first", pa.int32()), ("Second", case.arrow), ("third", pa.string())])
    make = f'CREATE TYPE pg_temp.around AS (first int, "Second" {case.type}, third text)'
    check(derived(case, "around", cells, arrow, make), session)


MISFITS = [(case, misfit) for case in CASES for misfit in case.misfits]


@pytest.mark.server
@pytest.mark.parametrize("protocol", postgresql.PROTOCOLS)
@pytest.mark.parametrize(("case", "misfit"), named(MISFITS))
def test_what_arrow_cannot_hold_is_an_error(case: Case, misfit: Misfit, protocol: str, place: Place) -> None:
    cells = [*case.cells, misfit.sql]
    with pytest.raises(longshore.DataError) as caught:
        read(case, place(case), cells, protocol)
    error = caught.value
    assert misfit.says in str(error)
    assert error.hint
    assert "value" in (error.column or "") or '"item"' in str(error)
    if "digits" not in str(error):
        assert (error.row, f"row {len(case.cells)}" in str(error)) == (len(case.cells), True)


@pytest.mark.server
@pytest.mark.parametrize("protocol", postgresql.PROTOCOLS)
@pytest.mark.parametrize(("case", "misfit"), named([pair for pair in MISFITS if pair[1].option]))
def test_what_arrow_cannot_hold_is_null_by_option(case: Case, misfit: Misfit, protocol: str, place: Place) -> None:
    table = read(case, place(case), [*case.cells, misfit.sql], protocol, **{str(misfit.option): "null"})
    assert plain.values(table["value"]) == plain.expected([*case.cells.values(), None], case.arrow)


@pytest.mark.server
@pytest.mark.parametrize(("case", "misfit"), named(MISFITS))
def test_what_arrow_cannot_hold_can_be_read_as_text(case: Case, misfit: Misfit, place: Place) -> None:
    table = longshore.read_sql(
        postgresql.query(case),
        place(case),
        return_type="arrow",
        pre_execution_query=postgresql.setup(case, [misfit.sql]),
        schema={"value": "string"},
    )
    (text,) = table["value"].to_pylist()
    assert isinstance(text, str)
    assert text
