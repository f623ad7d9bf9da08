"""The engine's result as the frame that was asked for."""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from longshore import _core
from longshore.engine.failures import translated
from longshore.engine.waiting import Task
from longshore.errors import Error
from longshore.frames import ColumnsTarget, Target
from longshore.options import Options
from longshore.reading import frame_for, policy, whole
from longshore.stream import Stream

__all__ = ["ArrowStreamable", "Form", "Lender", "bounded", "deliver"]

#: The rows of the engine's batches if nobody asks for others, and those that it works on at once.
_BATCH_ROWS = 122_880
_VECTOR = 2_048

#: Bytes of a batch that is too large, about, and of one that is not.
_LARGE = 64 << 20
_FITTING = 32 << 20

#: The bytes of values, and what those of texts, lists and the like are taken for.
_BYTES = {"BOOLEAN": 1, "TINYINT": 1, "UTINYINT": 1, "SMALLINT": 2, "USMALLINT": 2, "INTEGER": 4, "UINTEGER": 4}
_BYTES |= dict.fromkeys(("FLOAT", "DATE"), 4) | dict.fromkeys(("BIGINT", "UBIGINT", "DOUBLE", "TIME", "TIMESTAMP"), 8)
_LONG = 32

#: Types with others inside.
_NESTED = {"list", "array", "struct", "tuple", "map", "union"}


class ArrowStreamable(Protocol):
    """A result of the engine, which runs its query when its stream is taken."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Have the query run, and hand its rows over."""


class Lender:
    """What a result may be given to close."""

    #: Whether it was.
    is_lent = False


class _InBatches:
    """A relation that gives batches of so many rows."""

    def __init__(self, relation: Any, rows: int) -> None:
        self._relation = relation
        self._rows = rows

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        del requested_schema
        return self._relation.to_arrow_reader(self._rows).__arrow_c_stream__()


def bounded(relation: Any, types: Iterable[object]) -> ArrowStreamable:
    """Give a relation of columns of these ``types``, whose batches are not larger for their rows' width."""
    width = sum(_BYTES.get(str(kind), _LONG) for kind in types)
    as_it_is: ArrowStreamable = relation
    if width * _BATCH_ROWS <= _LARGE:
        return as_it_is
    return _InBatches(relation, max(_FITTING // width // _VECTOR, 1) * _VECTOR)


def _labels(kind: Any) -> Iterator[list[str]]:
    """Find the labels of each ENUM within a type of the engine's, from outside in."""
    if kind.id == "enum":
        yield dict(kind.children)["values"]
    elif kind.id in _NESTED:
        for _, child in kind.children:
            # An array has its size with its type.
            if not isinstance(child, int):
                yield from _labels(child)


@dataclass(frozen=True)
class Form:
    """What a result is made into."""

    #: None for a ``Stream``.
    frame: Target | None
    policy: Mapping[str, str]
    json_objects: bool
    #: What the frame may take; the engine has a limit of its own.
    memory_limit: Literal["auto"] | None

    @classmethod
    def of(cls, return_type: str, dtype_backend: str | None, options: Options) -> "Form":
        """Take what the caller asks for; raises ``InterfaceError`` where there is no such form."""
        frame = frame_for(return_type, dtype_backend)
        json_objects = options.json == "object"
        return cls(frame, policy(return_type, dtype_backend, options), json_objects, options.stream_budget)

    @property
    def keeps_texts(self) -> bool:
        """Whether it takes texts as they lie, if they have offsets of 64 bits."""
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
    lender: Lender | None = None,
) -> Any:
    """Run the query behind ``stream``, whose engine has the ``SETTINGS``, and make the frame or the ``Stream``.

    ``types`` are of the columns and tell the labels of ENUMs. ``cancel`` stops the engine from any thread: Ctrl-C calls
    it, and a stream that is dropped before its end. ``close`` is called once, when nothing of the result is needed any
    more, whatever became of it. ``failed`` is called after a failure of the engine's, and gives the exception that made
    it fail, where there is one. ``lender`` is marked when ``close`` is certain to be called.

    Raises the exceptions of ``longshore.errors``, those of the engine among them.
    """
    lender = lender or Lender()
    policy, switch = form.policy, _core.Switch()
    labels = [found for kind in types for found in _labels(kind)]
    begun: list[_core.Begun] = []
    task = Task(lambda: begun.append(_begun(stream, failed)), cancel)
    try:
        task.run()
        first = begun.pop()
        # Between these two no signal's handler runs.
        lender.is_lent = True
        reading = _core.open_result(
            first,
            policy=policy,
            labels=labels,
            memory_limit=form.memory_limit,
            cancel=cancel,
            close=close,
            failed=failed,
            switch=switch,
        )
    except BaseException:
        begun.clear()
        if not lender.is_lent and close is not None:
            lender.is_lent = True
            task.after(close)
        raise
    if form.frame is None:
        return Stream(reading.stream(), exact=(), json_objects=form.json_objects)
    with contextlib.closing(reading):
        return whole(reading, form.frame, json_objects=form.json_objects)


def _begun(stream: ArrowStreamable, failed: Callable[[], BaseException | None] | None) -> _core.Begun:
    """Have the engine run until it has its first rows."""
    try:
        with translated():
            return _core.Begun(stream.__arrow_c_stream__())
    except Error:
        error = None if failed is None else failed()
        if error is None:
            raise
        raise error from None
