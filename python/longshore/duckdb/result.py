"""The engine's result as the frame that was asked for."""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from longshore import _core
from longshore.duckdb.failures import translate_errors
from longshore.duckdb.waiting import Task
from longshore.errors import Error
from longshore.frames import ColumnsTarget, Target
from longshore.options import Options
from longshore.read import frame_for, policy, whole
from longshore.stream import Stream

#: The rows of the engine's batches by default, and those that it works on at once.
_BATCH_ROWS = 122_880
_VECTOR = 2_048

#: The bytes from which a batch is too large, and those of one that is not.
_LARGE = 64 << 20
_FITTING = 32 << 20

#: The bytes of a value by its type; texts, lists and the like are estimated.
_BYTES = {"BOOLEAN": 1, "TINYINT": 1, "UTINYINT": 1, "SMALLINT": 2, "USMALLINT": 2, "INTEGER": 4, "UINTEGER": 4}
_BYTES |= dict.fromkeys(("FLOAT", "DATE"), 4) | dict.fromkeys(("BIGINT", "UBIGINT", "DOUBLE", "TIME", "TIMESTAMP"), 8)
_LONG = 32

#: Types with others inside.
_NESTED = {"list", "array", "struct", "tuple", "map", "union"}


class ArrowStreamable(Protocol):
    """A result of the engine, which runs its query when its stream is requested."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Run the query and give its rows."""


class ClosedByResult:
    """An object that a result closes at its end."""

    #: Whether a result is certain to close it.
    is_closed_by_result = False


class Rebatched:
    """A relation in batches of a number of rows."""

    def __init__(self, relation: Any, rows: int) -> None:
        """Take the relation, which runs when its stream is requested."""
        self._relation = relation
        self._rows = rows

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Run the query and give its rows."""
        del requested_schema
        # Nothing above it hears of an error of the first rows.
        with translate_errors():
            return self._relation.to_arrow_reader(self._rows).__arrow_c_stream__()


def with_bounded_batches(relation: Any, types: Iterable[object]) -> ArrowStreamable:
    """Give a relation of columns of these ``types`` with fewer rows in a batch if its rows are wide."""
    rows = bounded_rows(types)
    if rows is None:
        same: ArrowStreamable = relation
        return same
    return Rebatched(relation, rows)


def bounded_rows(types: Iterable[object]) -> int | None:
    """Give the rows of a batch of columns of these ``types`` where the engine's own would be too large."""
    width = sum(_BYTES.get(str(kind), _LONG) for kind in types)
    return None if width * _BATCH_ROWS <= _LARGE else max(_FITTING // width // _VECTOR, 1) * _VECTOR


def labels(kind: Any) -> Iterator[list[str]]:
    """Give the labels of each ENUM within a type of the engine, from outside in."""
    if kind.id == "enum":
        yield dict(kind.children)["values"]
    elif kind.id in _NESTED:
        for _, child in kind.children:
            # An array's size is among its children.
            if not isinstance(child, int):
                yield from labels(child)


@dataclass(frozen=True)
class Form:
    """The frame that a result becomes, and its type policy."""

    #: None for a ``Stream``.
    frame: Target | None
    policy: Mapping[str, str]
    json_objects: bool
    #: The frame's memory limit; the engine has its own.
    memory_limit: Literal["auto"] | None

    @classmethod
    def of(cls, return_type: str, dtype_backend: str | None, options: Options) -> "Form":
        """Give the form of the caller's arguments; raises ``InterfaceError`` for unknown ones."""
        frame = frame_for(return_type, dtype_backend)
        json_objects = options.json == "object"
        return cls(frame, policy(return_type, dtype_backend, options), json_objects, options.stream_budget)

    @property
    def keeps_texts(self) -> bool:
        """Whether it takes the memory of texts over, if they have offsets of 64 bits."""
        frame = self.frame
        return isinstance(frame, ColumnsTarget) and frame.arrow_strings and frame.backend != "pyarrow"


def deliver(
    stream: ArrowStreamable,
    form: Form,
    *,
    types: Iterable[Any] = (),
    cancel: Callable[[], object],
    close: Callable[[], object] | None = None,
    failed: Callable[[], BaseException | None] | None = None,
    owner: ClosedByResult | None = None,
) -> Any:
    """Run the query behind ``stream``, whose engine has the ``SETTINGS``, and make the frame or the ``Stream``.

    ``types`` are those of the columns, with the labels of ENUMs. ``cancel`` stops the engine from any thread: Ctrl-C
    calls it, and a stream that is dropped early. ``close`` is called once, when the result is not needed any more,
    whatever became of it. ``failed`` is called after a failure of the engine, and gives the exception behind it, if
    there is one. ``owner`` is marked when ``close`` is certain to be called.

    Raises the exceptions of ``longshore.errors``, those of the engine among them.
    """
    owner = owner or ClosedByResult()
    policy, cancel_handle = form.policy, _core.CancelHandle()
    names = [each for kind in types for each in labels(kind)]
    started: list[_core.EngineStream] = []
    task = Task(lambda: started.append(_start(stream, failed)), cancel)
    try:
        task.run()
        first = started.pop()
        # Between these two no signal's handler runs.
        owner.is_closed_by_result = True
        reading = _core.open_result(
            first,
            policy=policy,
            labels=names,
            memory_limit=form.memory_limit,
            cancel=cancel,
            close=close,
            failed=failed,
            cancel_handle=cancel_handle,
        )
    except BaseException:
        started.clear()
        if not owner.is_closed_by_result and close is not None:
            owner.is_closed_by_result = True
            task.after(close)
        raise
    if form.frame is None:
        return Stream(reading.stream(), exact=(), json_objects=form.json_objects)
    with contextlib.closing(reading):
        return whole(reading, form.frame, json_objects=form.json_objects)


def _start(stream: ArrowStreamable, failed: Callable[[], BaseException | None] | None) -> _core.EngineStream:
    """Run the engine until its first rows."""
    try:
        with translate_errors():
            return _core.EngineStream(stream.__arrow_c_stream__())
    except Error:
        error = None if failed is None else failed()
        if error is None:
            raise
        raise error from None
