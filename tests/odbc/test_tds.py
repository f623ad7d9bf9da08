"""FreeTDS's driver, over the server that speaks TDS: SQL Server through ODBC."""

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import longshore
from tests.conformance.mssql_cases import CASES
from tests.conformance.mssql_cases.case import MSSQLCase
from tests.mssql import others
from tests.quirks.odbc import address
from tests.servers import MSSQL
from tests.tds.tokens import Column, Rows, ServerError, Wait
from tests.tds.types import MAX, datetime2, fixed, nvarchar, varbinary, varchar

ONE = Rows([Column("one", fixed("int"))], [(1,)])
#: The driver does not know them, or writes texts of its own; the last has years without nanoseconds in 64 bits.
_LEFT_OUT = {"json", "vector(3)", "vector(1998)", "sql_variant", "datetime2(7)"}
_READ = [case for case in CASES if case.type.name not in _LEFT_OUT]


def through(server: MSSQL, **settings: object) -> str:
    """Return the address of the server through FreeTDS's driver."""
    told = {"Server": server.host, "Port": server.port, "Database": server.database, "UID": server.user}
    told |= {"PWD": server.password, "TDS_Version": "7.4", "ClientCharset": "UTF-8"}
    return address("libtdsodbc.so", "tdsodbc", **told, **settings)


@pytest.fixture(scope="module")
def connection(tds: MSSQL) -> Iterator[Any]:
    """Give a connection to the server, which answers each case."""
    tds.clear()
    for at, case in enumerate(CASES):
        nulls = [(None,)] if case.nullable else []
        tds.answer(f"SELECT {at}", Rows([Column("value", case.type)], [*((value,) for value in case.values), *nulls]))
    with longshore.connect(through(tds, max_text_size=100_000), autocommit=True) as connection:
        yield connection


@pytest.mark.parametrize("case", _READ, ids=lambda case: case.name)
def test_each_type(connection: Any, case: MSSQLCase) -> None:
    """As it was: times and timestamps with an offset are texts, as the driver hands them over."""
    found = longshore.read_sql(f"SELECT {CASES.index(case)}", connection, return_type="arrow").column(0).to_pylist()
    wanted = [_shown(case, value) for value in case.values] + [None] * case.nullable
    assert [*map(repr, found)] == [*map(repr, wanted)]


def _shown(case: MSSQLCase, value: Any) -> Any:
    if case.type.name.startswith(("time", "datetimeoffset")):
        # The driver's years have no zeros before them.
        return value.lstrip("0") if value.startswith("000") else value
    return others.shown("odbc", case.type, value)


def test_seven_digits(mssql: MSSQL) -> None:
    """Nanoseconds, where the years have them."""
    kind = datetime2(7)
    mssql.answer("SELECT 1", Rows([Column("value", kind)], [("2024-02-29 12:34:56.1234567",)]))
    mssql.answer("SELECT 2", Rows([Column("value", kind)], [("0001-01-01 00:00:00.0000000",)]))
    found = longshore.read_sql("SELECT 1", through(mssql), return_type="arrow").column(0)
    assert found.type == pa.timestamp("ns")
    assert found.cast(pa.int64()).to_pylist() == [1_709_210_096_123_456_700]
    with pytest.raises(longshore.DataError, match=r'column "value", row 0 .*the year 1 does not fit'):
        longshore.read_sql("SELECT 2", through(mssql), return_type="arrow")


@pytest.mark.parametrize(("kind", "value"), [(varchar(MAX), "x" * 101), (varbinary(MAX), b"x" * 101)])
def test_a_value_that_is_longer_than_the_buffer(mssql: MSSQL, kind: Any, value: Any) -> None:
    """An error that names column, row and option, and the whole value once that is larger."""
    mssql.answer("SELECT 1", Rows([Column("long", kind)], [(value[:1],), (value,)]))
    said = 'column "long", row 1 .*the value is longer than max_text_size=100'
    with pytest.raises(longshore.DataError, match=said):
        longshore.read_sql("SELECT 1", through(mssql, max_text_size=100), return_type="arrow")
    found = longshore.read_sql("SELECT 1", through(mssql, max_text_size=101), return_type="arrow")
    assert found.column(0).to_pylist() == [value[:1], value]


def test_a_zero_within_a_text(mssql: MSSQL) -> None:
    """It is not the end."""
    mssql.answer("SELECT 1", Rows([Column("t", nvarchar(10)), Column("u", varchar(10))], [("a\0b", "c\0d")]))
    found = longshore.read_sql("SELECT 1", through(mssql), return_type="arrow").to_pylist()
    assert found == [{"t": "a\0b", "u": "c\0d"}]


def test_an_error_of_the_server(mssql: MSSQL) -> None:
    """Its own text, and its SQLSTATE."""
    mssql.answer("SELECT 1", ServerError(208, "Invalid object name 'nothing'."))
    with pytest.raises(longshore.ProgrammingError, match="Invalid object name 'nothing'") as raised:
        longshore.read_sql("SELECT 1", through(mssql))
    assert raised.value.sqlstate == "42S02"


def test_an_error_after_rows(mssql: MSSQL) -> None:
    """No shorter result."""
    mssql.answer("SELECT 1", ONE, ServerError(8134, "Divide by zero error encountered."))
    with pytest.raises(longshore.Error):
        longshore.read_sql("SELECT 1", through(mssql))


def test_a_wrong_password(mssql: MSSQL) -> None:
    """The server's own text."""
    mssql.refuse(18456, "Login failed for user 'sa'.")
    with pytest.raises(longshore.Error, match="Login failed for user 'sa'"):
        longshore.read_sql("SELECT 1", through(mssql))


def test_a_deadline(mssql: MSSQL) -> None:
    """It cancels by an attention."""
    mssql.answer("SELECT 1", Wait())
    with pytest.raises(longshore.OperationalError, match=r"timeout|time-out|timed out"):
        longshore.read_sql("SELECT 1", through(mssql), timeout=0.5)
    mssql.wait_for("attention")


def test_parameters(mssql: MSSQL) -> None:
    """As the server gets them."""
    values = [1, -(2**40), 0.5, Decimal("-12.345"), "é漢😀", b"\0\xff", dt.date(2024, 2, 29)]
    mssql.answer("", ONE, kind="rpc")
    query = f"SELECT {', '.join('?' * len(values))}"
    longshore.read_sql(query, through(mssql), params=values)
    calls = [call for request in mssql.requests("rpc") for call in request.calls()]
    sent = [parameter.value for parameter in calls[0].parameters[-len(values) :]]
    assert sent == [*values[:-1], "2024-02-29"]


def test_a_table_by_its_name_in_sql(mssql: MSSQL) -> None:
    """With quotes that are those of names, as the driver has it."""
    columns = [Column("id", fixed("int")), Column("ship", varchar(10))]
    mssql.answer('SELECT * FROM "dbo"."boats" WHERE 1 = 0', Rows(columns, []))
    read = """SELECT "id", "ship" FROM "dbo"."boats" WHERE ("id" > 1) AND ("ship" = 'Ada')"""
    mssql.answer(read, Rows(columns, [(2, "Ada"), (3, "ADA")]))
    query = "SELECT id FROM harbour.dbo.boats WHERE id > 1 AND ship = 'Ada'"
    found = longshore.sql(query, attach={"harbour": through(mssql)}, return_type="arrow")
    assert found.to_pylist() == [{"id": 2}]
