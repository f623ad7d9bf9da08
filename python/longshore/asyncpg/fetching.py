"""One result, from asyncpg's statement to the arrays, or to the frames of ``read_sql``."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import asyncpg

from longshore import _core, frames
from longshore.arguments import schema_types
from longshore.asyncpg.dtypes import DTypeError, Layout, Query, Result, layout_of, result
from longshore.errors import DataError, InterfaceError, InternalError, MemoryLimitError, OperationalError
from longshore.options import Options
from longshore.read import batch_bytes, batch_rows, frame_for, policy, whole
from longshore.texts import first_word

if TYPE_CHECKING:
    from longshore.asyncpg.connection import Connection


# What runs a statement, given a time-out: rows, status, and whether all have come.
Execute = Callable[[float | None], Awaitable[tuple[Sequence[Any], bytes | None, bool]]]

# How long a server may take to end an exchange without a statement.
_RELEASE_SECONDS = 5

# PG_FORMAT_BINARY of asyncpg.
_BINARY = 1

_TEXT = 25

# bytea, bit, varbit and uuid, whose S is not a text.
_BYTES = {17, 1560, 1562, 2950}


@dataclass(slots=True, eq=False)
class Plan:
    """How the columns of a statement go into the fields of a dtype."""

    core: _core.Plan
    layout: Layout
    types: Sequence[str]
    text: int | None
    """The first field of text, if one is."""
    rows: int = 0
    """How many the last result had: the next is expected to be like it."""

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
    if not columns and not first_word(query.text):
        # A query of no statement has no columns, and no row that would need them.
        columns, types = [(_TEXT, True)] * len(layout.names), ["text"] * len(layout.names)
    if len(types) != len(layout.names):
        message = f"the dtype has {len(layout.names)} fields, and the query {len(types)} columns: name one for each"
        raise DTypeError(message)
    core = _core.Plan.of(columns, layout.fields, layout.image.itemsize)
    if isinstance(core, int):
        name, native = layout.names[core], types[core]
        hint = "see the guide for the dtypes of each type, or ask for a field of dtype O"
        message = f"{_place(layout, core)} does not match PostgreSQL {native}: {hint}"
        raise DTypeError(message, hint=hint, column=name, native_type=native)
    kinds = enumerate(zip(layout.dtypes, columns, strict=True))
    texts = (at for at, (dtype, (oid, _)) in kinds if dtype.kind == "U" or (dtype.kind == "S" and oid not in _BYTES))
    return Plan(core, layout, types, next(texts, None))


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
        hint = "SET client_encoding TO 'UTF8', or ask for a field of dtype O"
        place = _place(plan.layout, plan.text)
        message = f"{place} takes text in UTF-8, and the session's client_encoding is another; {hint}"
        raise DTypeError(message, hint=hint, column=plan.layout.names[plan.text])
    if protocol._is_cancelling():
        timeout = await after_cancellation(protocol, timeout)
    rows = plan.core.rows(plan.rows)
    port = connection._port.core
    if not port.keep(rows):
        raise asyncpg.InterfaceError("cannot perform operation: another operation is in progress")
    try:
        records, status, _ = await execute(timeout)
    finally:
        port.keep_none()
    count = rows.count
    _check(connection, plan, rows, status, len(records))
    plan.rows = count
    return result(plan.layout, rows, records), status, count


@contextlib.contextmanager
def memory_errors() -> Iterator[None]:
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
        message = "there is not enough memory for the result, and the connection is closed"
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
        raise OperationalError(f"row {row}: {what}; {hint}", hint=hint, row=row)
    count = rows.count
    told = (status or b"").removeprefix(b"SELECT ")
    if (told.isdigit() and int(told) != count) or (plan.layout.objects and decoded != count):
        connection.terminate()
        message = f"the server told of {told.decode()} rows, {count} came, and {decoded} of them were decoded"
        raise InternalError(message)


#: The core's arguments of what a caller wants of the rows.
Terms = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class FrameTerms:
    """The form in which a caller wants a whole result."""

    rows: Terms
    frame: frames.Target
    json_objects: bool

    def build(self, reading: _core.Reading) -> Any:
        """Make the frame."""
        return whole(reading, self.frame, json_objects=self.json_objects)


def frame_terms(
    return_type: str,
    *,
    schema: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | Options | None = None,
    dtype_backend: str | None = None,
    index_col: str | Sequence[str] | None = None,
) -> FrameTerms:
    """Check a caller's arguments, before anything is sent; raises as ``read_sql`` does."""
    chosen = Options.of(options)
    frame = frame_for(return_type, dtype_backend, index_col)
    if frame is None:
        raise InterfaceError(f"{return_type} is not a frame")
    rows = {
        "types": schema_types(schema),
        "policy": policy(return_type, dtype_backend, chosen),
        "batch_rows": batch_rows(None, return_type, frame),
        "batch_bytes": batch_bytes(return_type, chosen.memory_limit_bytes, None),
        "memory_limit": chosen.memory_budget,
    }
    return FrameTerms(rows, frame, json_objects=chosen.json == "object")


def batch_terms(
    *,
    batch_size: int | None = None,
    schema: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | Options | None = None,
) -> Terms:
    """Check the arguments of a caller who wants batches; raises as ``read_sql`` does."""
    chosen = Options.of(options)
    if chosen.memory_limit_bytes is not None:
        message = "options['memory_limit'] bounds a whole result, and batches come one by one: set batch_size"
        raise InterfaceError(message)
    return {
        "types": schema_types(schema),
        "policy": policy("arrow_stream", None, chosen),
        "batch_rows": batch_rows(batch_size, "arrow_stream", None),
        "batch_bytes": batch_bytes("arrow_stream", None, None),
        "memory_limit": chosen.stream_budget,
    }


# Types that asyncpg asks for in binary, and types that it asks for as text, by OID: bytea, text, int4, uuid, bool; and
# money, macaddr, tsvector, tsquery. Several, since a codec of the caller's may change one's format.
_IN_BINARY = (17, 25, 23, 2950, 16)
_AS_TEXT = (790, 829, 3614, 3615)

# How often a statement is prepared: unknown types of arguments, then the catalogue, then the formats ask for it again.
_TRIES = 8

# The SQLSTATE of a server that breaks the protocol.
_VIOLATION = "08P01"

# Classes of SQLSTATEs that say nothing of whether a statement is understood: the transaction has failed or has to be
# begun again, resources or locks cannot be had, somebody has stopped it.
_PASSING = {"25", "40", "53", "55", "57"}


class Exchange:
    """The statements of one result, under one time-out; the connection is the caller's alone meanwhile.

    asyncpg asks for each column in the format of its codec for the column's type. The core says which format it wants:
    asyncpg is told another type, which it asks for in that format.
    """

    def __init__(self, connection: "Connection", timeout: float | None) -> None:
        """Begin; raises ``InterfaceError`` where text would come in another encoding, or codecs leave no type."""
        self._connection = connection
        self._protocol: Any = connection._protocol
        self._port = connection._port.core
        self._loop = asyncio.get_running_loop()
        self._end = None if timeout is None else self._loop.time() + timeout
        settings = self._protocol.get_settings()
        if settings.get_text_codec().name != "utf-8":
            hint = "SET client_encoding TO 'UTF8'"
            message = f"the session's client_encoding is another than UTF-8, in which text is read; {hint}"
            raise InterfaceError(message, hint=hint)
        self._in_binary = _stand_in(settings, _IN_BINARY, binary=True)
        self._as_text = _stand_in(settings, _AS_TEXT, binary=False)
        self._statement: Any = None
        # Whether a statement has been prepared, and the exchange not been ended.
        self._is_open = False

    def _time_left(self) -> float | None:
        return None if self._end is None else max(self._end - self._loop.time(), 0)

    async def result(self, text: str, args: Sequence[Any], terms: Terms) -> tuple[_core.Reading, str]:
        """Give the whole result of a statement, and its status."""
        async with self._orderly():
            arrival = await self._ready(text, terms)
            run = self._bind(args, "", 0)
            tag, _ = await self.run(arrival, run)
            return arrival.finish(tag), tag

    async def first_page(self, text: str, args: Sequence[Any], terms: Terms, portal: str) -> "Pages":
        """Give the first page of a statement's rows; further ones come from the portal."""
        async with self._orderly():
            arrival = await self._ready(text, terms)
            pages = Pages(self._statement, portal, arrival)
            await self._page(pages, self._bind(args, portal, arrival.page_rows()))
            return pages

    async def next_page(self, pages: "Pages") -> None:
        """Take a further page."""
        async with self._orderly():
            rows = pages.arrival.page_rows()
            run = partial(self._protocol.execute, pages.statement, pages.portal, rows, True)  # noqa: FBT003
            await self._page(pages, run)

    async def _page(self, pages: "Pages", run: Execute) -> None:
        asked = pages.arrival.page_rows()
        tag, pages.done = await self.run(pages.arrival, run)
        pages.batches = pages.arrival.page(asked, tag if pages.done else None)

    @contextlib.asynccontextmanager
    async def _orderly(self) -> AsyncIterator[None]:
        """Leave the connection usable whatever happens."""
        try:
            with memory_errors():
                yield
        except BaseException as error:
            if isinstance(error, OperationalError) and error.sqlstate == _VIOLATION:
                self._connection.terminate()
            if isinstance(error, DataError):
                # What the catalogue has told may be no longer so.
                self._connection._type_cache.forget()
            if self._is_open:
                # Perhaps in vain: what asyncpg raises does not tell whether the server has.
                await release(self._protocol)
            raise

    async def _ready(self, text: str, terms: Terms) -> _core.Arrival:
        """Prepare a statement whose columns come as they are wanted, and give what takes its rows.

        The server keeps the tables locked from then on until the statement has run: no one alters them in between.
        """
        forms = getattr(self._connection.get_settings(), "integer_datetimes", None) == "on"
        lookup = _core.TypeLookup(statement=text, type_cache=self._connection._type_cache, binary_forms=forms, **terms)
        columns: list[int] = []
        for _ in range(_TRIES):
            lookup.describe(await self.prepare(text, columns, self._in_binary))
            asked = await self.answer(lookup)
            wanted = [self._in_binary if binary else self._as_text for binary in lookup.binary()]
            if not asked and (columns or [self._in_binary] * len(wanted)) == wanted:
                return lookup.arrival()
            columns = wanted
        message = "the types of the statement's columns change all the time"
        raise OperationalError(message, hint="run the query again when no one alters its tables")

    async def answer(self, lookup: _core.TypeLookup) -> bool:
        """Run what the core asks for; tell whether that was anything."""
        asked = False
        while (question := lookup.question()) is not None:
            asked = True
            answers = _core.Answers()
            try:
                await self.prepare(question, [], self._as_text)
                await self.run(answers, self._bind((), "", 0))
            except asyncpg.PostgresError as error:
                if (error.sqlstate or "")[:2] in _PASSING:
                    raise
                lookup.give_up()
            else:
                lookup.answer(answers)
        return asked

    async def prepare(self, text: str, columns: list[int], otherwise: int) -> bytes | None:
        """Prepare a statement whose columns asyncpg sees with other types; give the server's own description.

        It has no name: nothing is left of it, and whichever server a pooler picks next knows no less of it.
        """
        for _ in range(_TRIES):
            await after_cancellation(self._protocol, self._time_left())
            description = _core.Description(columns, otherwise)
            self._port.describe(description)
            self._is_open = True
            try:
                self._statement = statement = await self._protocol.prepare(
                    "", text, self._time_left(), record_class=asyncpg.Record
                )
            finally:
                self._port.keep_none()
            if not statement._init_types():
                statement._init_codecs()
                if not self._connection._config.statement_cache_size and hasattr(statement, "mark_unprepared"):
                    # As asyncpg does, for poolers, in its later versions: it is parsed once more with its arguments.
                    statement.mark_unprepared()
                return description.message()
            # asyncpg looks up the types of arguments.
            await self._connection._get_statement(text, self._time_left(), use_cache=False)
        message = "the types of the statement's arguments cannot be looked up"
        raise OperationalError(message, hint="name builtin types with casts, as in $1::text")

    def _bind(self, args: Sequence[Any], portal: str, limit: int) -> Execute:
        return partial(self._protocol.bind_execute, self._statement, args, portal, limit, True)  # noqa: FBT003

    async def run(self, rows: _core.Arrival | _core.Answers, run: Execute) -> tuple[str, bool]:
        """Execute a statement; give what the server tells at its end, and whether it is the end."""
        await after_cancellation(self._protocol, self._time_left())
        if not self._port.keep(rows):
            raise asyncpg.InterfaceError("cannot perform operation: another operation is in progress")
        try:
            _, status, done = await run(self._time_left())
        finally:
            self._port.keep_none()
        self._is_open = False
        return (status or b"").decode(), done


@dataclass(slots=True, eq=False)
class Pages:
    """A result that comes page by page."""

    statement: Any
    portal: str
    arrival: _core.Arrival
    batches: Sequence[_core.Batch] = ()
    done: bool = False


def _stand_in(settings: Any, oids: Sequence[int], *, binary: bool) -> int:
    """Find a type that asyncpg asks for in binary, or one that it asks for as text."""
    for oid in oids:
        if is_binary(settings, oid) == binary:
            return oid
    message = f"codecs of yours have changed the format of each of the types {list(oids)}; reset_type_codec for one"
    raise InterfaceError(message)
