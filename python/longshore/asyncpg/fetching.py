"""One result, from asyncpg's statement to the arrays."""

import asyncio
import contextlib
import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import asyncpg

from longshore import _core
from longshore.asyncpg.dtypes import DTypeError, Layout, Query, Result, layout_of, result
from longshore.errors import InternalError, MemoryLimitError, OperationalError

if TYPE_CHECKING:
    from longshore.asyncpg.connection import Connection

# What runs a statement, given a time-out: rows, status, and whether all have come.
Execute = Callable[[float | None], Awaitable[tuple[Sequence[Any], bytes | None, bool]]]

# How long a server may take to end an exchange without a statement.
_RELEASE_SECONDS = 5

# PG_FORMAT_BINARY of asyncpg.
_BINARY = 1

_TEXT = 25

# Spaces, comments and semicolons.
_NOTHING = re.compile(r"(?:[\s;]|--[^\n]*|/\*.*?\*/)*", re.DOTALL)

# bytea, bit, varbit and uuid, whose S is not a text.
_BYTES = {17, 1560, 1562, 2950}


class Plan:
    """How the columns of a statement go into the fields of a dtype."""

    __slots__ = ("bytes", "core", "layout", "rows", "text", "types")

    rows: int
    """How many the last result had: the next is expected to be like it."""
    bytes: int
    """Likewise."""

    text: int | None
    """The first field of text, if one is."""

    def __init__(self, core: _core.Plan, layout: Layout, types: Sequence[str], text: int | None) -> None:
        """Keep the core's plan and what errors name."""
        self.core = core
        self.text = text
        self.layout = layout
        self.types = types
        self.rows = self.bytes = 0

    def refusal(self, column: int, row: int, what: str, hint: str) -> DTypeError:
        """Give the error of a value."""
        text = (
            f"{_place(self.layout, column)} does not match PostgreSQL {self.types[column]} in row {row}: {what}; {hint}"
        )
        return DTypeError(text, hint=hint, column=self.layout.names[column], row=row, native_type=self.types[column])


def plan(settings: Any, statement: Any, query: Query) -> Plan:
    """Pair the columns of ``statement`` with the fields of a dtype; raises ``DTypeError`` where one does not fit."""
    attributes = statement._get_attributes()
    layout = query.layout or layout_of(attributes, block=query.block)
    columns = [(attribute.type.oid, is_binary(settings, attribute.type.oid)) for attribute in attributes]
    types = [attribute.type.name for attribute in attributes]
    if not columns and _NOTHING.fullmatch(query.text):
        # A query of no statement has no columns, and no row that would need them.
        columns, types = [(_TEXT, True)] * len(layout.names), ["text"] * len(layout.names)
    if len(types) != len(layout.names):
        message = f"the dtype has {len(layout.names)} fields, and the query {len(types)} columns: name one for each"
        raise DTypeError(message)
    core = _core.Plan.of(columns, layout.fields, layout.groups or layout.dtype.itemsize)
    if isinstance(core, int):
        name, native = layout.names[core], types[core]
        hint = "see the guide for the dtypes of each type, or ask for a field of dtype O"
        message = f"{_place(layout, core)} does not match PostgreSQL {native}: {hint}"
        raise DTypeError(message, hint=hint, column=name, native_type=native)
    texts = (index for index, (oid, _) in enumerate(columns) if _is_text(layout.dtypes[index].kind, oid))
    return Plan(core, layout, types, next(texts, None))


def _is_text(kind: str, oid: int) -> bool:
    return kind == "U" or (kind == "S" and oid not in _BYTES)


def _place(layout: Layout, column: int) -> str:
    return f"dtype[{column}] {layout.names[column]!r} = {layout.dtypes[column]}"


def is_binary(settings: Any, oid: int) -> bool:
    """Tell whether asyncpg asks for a type in binary: it does where it has a codec of that format."""
    return settings.get_data_codec(oid, _BINARY) is not None


async def fetch(
    connection: "Connection", plan: Plan, execute: Execute, timeout: float | None
) -> tuple[Result, Any, int]:
    """Run a statement and give its arrays, its status, and the number of rows."""
    protocol = connection._protocol
    if plan.text is not None and protocol.get_settings().get_text_codec().name != "utf-8":
        raise _foreign_text(plan.layout, plan.text)
    if protocol._is_cancelling():
        timeout = await after_cancellation(protocol, timeout)
    rows = plan.core.rows(plan.rows)
    port = connection._port.core
    if not port.keep(rows, plan.bytes):
        message = "cannot perform operation: another operation is in progress"
        raise asyncpg.InterfaceError(message)
    try:
        records, status, _ = await execute(timeout)
    finally:
        port.keep_none()
    count = rows.count
    _check(connection, plan, rows, status, len(records))
    plan.rows, plan.bytes = count, port.received
    return result(plan.layout, rows, records), status, count


def _foreign_text(layout: Layout, column: int) -> DTypeError:
    hint = "SET client_encoding TO 'UTF8', or ask for a field of dtype O"
    text = f"{_place(layout, column)} takes text in UTF-8, and the session's client_encoding is another; {hint}"
    return DTypeError(text, hint=hint, column=layout.names[column])


@contextlib.contextmanager
def memory_told() -> Iterator[None]:
    """Raise ``MemoryLimitError`` where asyncpg says no more than that the connection was closed."""
    try:
        yield
    except asyncpg.ConnectionDoesNotExistError as error:
        if not isinstance(error.__cause__, MemoryError):
            raise
        hint = (
            "fetch fewer rows, use fetch_batches or a cursor, or set_query_dtype for NumPy's arrays, which take less "
            'than objects; of frames, options={"memory_limit": ...} bounds the size'
        )
        message = f"there is not enough memory for the result, and the connection is closed\nHint: {hint}"
        raise MemoryLimitError(message, hint=hint) from error


async def after_cancellation(protocol: Any, timeout: float | None) -> float | None:
    """Wait for a statement that is being cancelled, and give what is left of ``timeout``.

    What still comes for that statement must not look like rows of the next.
    """
    if not protocol._is_cancelling():
        return timeout
    loop = asyncio.get_running_loop()
    started = loop.time()
    budget = protocol._get_timeout(timeout)
    async with asyncio.timeout(budget):
        await protocol._wait_for_cancellation()
    return None if budget is None else max(budget - (loop.time() - started), 0)


async def release(protocol: Any) -> None:
    """End the exchange of a statement that was prepared and is not run: the server would keep its locks.

    asyncpg prepares without a Sync, and has no method that sends one alone: it ends what closes a statement.
    """
    if protocol._is_cancelling():
        # asyncpg has sent one.
        return
    with contextlib.suppress(asyncpg.PostgresError, asyncpg.InterfaceError, TimeoutError, OSError):
        nothing = await protocol.prepare("", "", _RELEASE_SECONDS, record_class=asyncpg.Record)
        await protocol.close_statement(nothing, _RELEASE_SECONDS)


def _check(connection: "Connection", plan: Plan, rows: _core.Rows, status: bytes | None, decoded: int) -> None:
    failure = rows.failure()
    if failure is not None:
        column, row, what, hint = failure
        if column is not None:
            raise plan.refusal(column, row, what, hint)
        connection.terminate()
        message = f"row {row}: {what}; {hint}"
        raise OperationalError(message, hint=hint, row=row)
    count = rows.count
    told = (status or b"").removeprefix(b"SELECT ")
    if (told.isdigit() and int(told) != count) or (plan.layout.objects and decoded != count):
        connection.terminate()
        message = f"the server told of {told.decode()} rows, {count} came, and {decoded} of them were decoded"
        raise InternalError(message)
