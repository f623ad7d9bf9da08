"""The test server as other clients see it: they read what it was told, so its bytes are not our reading alone."""

import contextlib
import datetime as dt
from collections.abc import Iterator
from decimal import Context, Decimal
from typing import Any

import pytest

from tests.conformance.mssql_cases import CASES
from tests.conformance.mssql_cases.case import MSSQLCase
from tests.mssql import jdbc, others
from tests.servers import MSSQL
from tests.tds.tokens import NULLABLE, UPDATABLE, Column, Count, Rows
from tests.tds.types import SQL_VARIANT, Type

_EXACT = Context(prec=80)
_READ = [(client, case) for client in others.CLIENTS for case in CASES if others.reads(client, case)]


def _query(case: MSSQLCase) -> str:
    return f"SELECT {CASES.index(case)}"


def _sent(case: MSSQLCase) -> list[Any]:
    return [*case.values, *([None] if case.nullable else [])]


@pytest.fixture(scope="module")
def told(tds: MSSQL) -> MSSQL:
    """Give the server, with an answer for each case."""
    tds.clear()
    tds.answer("use ", Count(), kind="batch", match="starts")
    for case in CASES:
        column = Column("value", case.type, flags=UPDATABLE | (NULLABLE if case.nullable else 0))
        tds.answer(_query(case), Rows([column], [(value,) for value in _sent(case)]), kind="batch")
    return tds


@pytest.fixture(scope="module")
def connections(told: MSSQL) -> Iterator[dict[str, Any]]:
    """Give a connection of each client."""
    with contextlib.ExitStack() as stack:
        yield {name: stack.enter_context(contextlib.closing(connect(told))) for name, connect in others.CLIENTS.items()}


@pytest.mark.parametrize(("client", "case"), _READ, ids=lambda part: part if isinstance(part, str) else part.name)
def test_a_client_reads_what_the_server_was_told(connections: dict[str, Any], client: str, case: MSSQLCase) -> None:
    """Every type, each of its values, and NULL."""
    with contextlib.closing(connections[client].cursor()) as cursor:
        cursor.execute(_query(case))
        found = [value for (value,) in cursor.fetchall()]
    wanted = [None if value is None else others.shown(client, case.type, value) for value in _sent(case)]
    assert _plain(found) == _plain(wanted)


@pytest.fixture(scope="module")
def read_by_jdbc(told: MSSQL) -> list[list[str | None]]:
    """Give what Microsoft's JDBC driver reads of all cases."""
    url = f"jdbc:sqlserver://{told.host}:{told.port};encrypt=false;user={told.user};password={{{told.password}}}"
    return jdbc.read(url, map(_query, CASES))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_jdbc_reads_what_the_server_was_told(read_by_jdbc: list[list[str | None]], case: MSSQLCase) -> None:
    """Every type, with all its digits: times have seven."""
    found = read_by_jdbc[CASES.index(case)]
    kinds = [kind if case.type is SQL_VARIANT else case.type for kind, _ in map(_kind_and_value, _sent(case))]
    wanted = [value for _, value in map(_kind_and_value, _sent(case))]
    shown = [jdbc.value(kind, text) for kind, text in zip(kinds, found, strict=True)]
    assert _plain(shown) == _plain([jdbc.shown(kind, value) for kind, value in zip(kinds, wanted, strict=True)])


def _kind_and_value(value: Any) -> tuple[Type, Any]:
    return value if isinstance(value, tuple) else (SQL_VARIANT, value)


def _plain(values: list[Any]) -> list[str]:
    """Return the values as text, for -0.0 equals 0.0, and True 1."""
    return [_plain_one(value) for value in values]


def _plain_one(value: Any) -> str:
    if isinstance(value, Decimal):
        # A client may show zeros behind it.
        return repr(value.normalize(_EXACT))
    # Each client has a time zone of its own.
    return value.isoformat() if isinstance(value, dt.datetime) else repr(value)
