"""Every type of the table of cases on both servers, in both protocols, exactly."""

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import longshore
from tests.conformance import mysql as quirks
from tests.conformance import plain
from tests.conformance.mysql_cases import CASES
from tests.conformance.mysql_cases.case import MySQLCase
from tests.mysql.reading import table

REFUSED = "rounds FLOAT"


def hold(session: longshore.Connection, case: MySQLCase, cells: list[str]) -> None:
    """Make the table of a case's cells, which goes with the session."""
    for statement in quirks.setup(case, cells):
        session.execute(statement)


def on_servers(cases: list[MySQLCase]) -> pytest.MarkDecorator:
    """Run a test for each case, on the servers that have its type."""
    pairs = [
        pytest.param(kind, case, id=f"{kind}-{case.type.partition('(')[0]}-{number}")
        for kind, name in (("mariadb", "MariaDB"), ("mysql", "MySQL"))
        for number, case in enumerate(cases)
        if case.only in {None, name}
    ]
    return pytest.mark.parametrize(("server", "case"), pairs, indirect=["server"])


@on_servers([*CASES])
def test_values(case: MySQLCase, url: str) -> None:
    cells = case.cells if case.query else {"NULL": None, **case.cells, "nullif(1, 1)": None}
    with longshore.connect(url, autocommit=True) as session:
        hold(session, case, list(cells))
        for protocol in quirks.PROTOCOLS:
            options: Any = {"protocol": protocol}
            if case.rounded_in_text and protocol == "text":
                for query in (quirks.query(case), quirks.query(case, "false")):
                    with pytest.raises(longshore.NotSupportedError, match=REFUSED) as caught:
                        table(query, session, options=options)
                    assert (caught.value.column, caught.value.native_type) == ("value", case.native or case.type)
                continue
            result = table(quirks.query(case), session, options=options)
            assert result.column_names == ["value"]
            field = result.schema.field(0)
            assert plain.storage(field.type) == case.arrow, protocol
            assert plain.values(result["value"]) == plain.expected(list(cells.values()), case.arrow), protocol
            empty = table(quirks.query(case, "false"), session, options=options)
            assert empty.num_rows == 0
            assert empty.schema.equals(result.schema, check_metadata=True)
            if case.query is None:
                assert field.nullable
                assert field.metadata[b"native_type"].decode() == (case.native or case.type)


@on_servers([case for case in CASES if case.query is None])
def test_no_value_but_null_has_the_same_schema(case: MySQLCase, url: str) -> None:
    with longshore.connect(url, autocommit=True) as session:
        hold(session, case, ["NULL"] * 3)
        for protocol in quirks.PROTOCOLS[: 1 if case.rounded_in_text else None]:
            options: Any = {"protocol": protocol}
            nulls = table(quirks.query(case), session, options=options)
            assert nulls["value"].to_pylist() == [None] * 3
            empty = table(quirks.query(case, "false"), session, options=options)
            assert nulls.schema.equals(empty.schema, check_metadata=True)


@on_servers([case for case in CASES if case.extension])
def test_extension_names(case: MySQLCase, url: str) -> None:
    before = quirks.setup(case, case.cells)
    stream = longshore.read_sql(quirks.query(case), url, return_type="arrow_stream", pre_execution_query=before)
    field = pa.schema(stream).field(0)
    name = getattr(field.type, "extension_name", None) or field.metadata[b"ARROW:extension:name"].decode()
    assert name == case.extension


@on_servers([case for case in CASES if case.query is None and (case.extension or not pa.types.is_binary(case.arrow))])
def test_as_text(case: MySQLCase, url: str) -> None:
    before = quirks.setup(case, ["NULL", *case.cells])
    values = table(quirks.query(case), url, pre_execution_query=before, schema={"value": "string"})["value"].to_pylist()
    assert values[0] is None
    assert all(isinstance(value, str) for value in values[1:])
    if pa.types.is_integer(case.arrow) or pa.types.is_decimal(case.arrow):
        assert [Decimal(text) for text in values[1:]] == [Decimal(cell) for cell in case.cells.values()]
        assert not any("e" in text.lower() for text in values[1:])


def test_a_case_of_each_kind_is_run(is_mariadb: bool) -> None:  # noqa: FBT001
    name = "MariaDB" if is_mariadb else "MySQL"
    assert {"json", "bigint unsigned", "time(6)"} <= {case.type for case in CASES if case.only in {None, name}}
