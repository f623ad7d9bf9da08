"""Frames of many rows, and what a query needs of them as frames of the same kind."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from longshore.frames.scanned import is_of
from longshore.frames.selected import are_clear, folded
from longshore.frames.use import MANY, Span, Use
from longshore.options import Options

__all__ = ["Chosen", "chosen", "is_long"]


@dataclass(frozen=True)
class Chosen:
    """A frame, or the part of it that matters."""

    data: Any
    #: The folded names of the columns that the query reads; None for all.
    columns: frozenset[str] | None
    #: What the query need not be asked any more.
    spans: tuple[Span, ...] = ()


def is_long(data: Any) -> bool:
    """Whether it is a frame of so many rows that it pays to look what a query does with them."""
    return _room(data) is not None and len(data) >= MANY


def chosen(data: Any, use: Use, name: str, options: Options) -> Chosen:
    """Give the rows of a long frame that a query's predicates leave, where the engine would take longer to."""
    whole = Chosen(data, use.columns)
    room = _room(data)
    names = room.names(data)
    if not use.predicates or not are_clear(names):
        return whole
    import pyarrow as pa

    from longshore.frames.from_arrow import of_columns
    from longshore.frames.rows import Rows
    from longshore.frames.selection import selection

    columns = use.rest.columns if use.rest else use.columns
    tried = {folded(names[at]): room.values(data, at) for at in _places(names, frozenset(_tried(use)))}
    left = selection(use.predicates, tried, takes_any=bool(_places(names, columns)), threads=options.threads)
    if left is None:
        return whole
    spans = use.rest.spans if use.rest and left.texts else ()
    if not spans:
        columns = use.columns
    places = _places(names, columns)
    if not places:
        return Chosen(of_columns([], [], range(left.count), name), columns, spans)
    try:
        data = room.taken(data, places, Rows(left.numbers(), options.threads), options)
    except pa.ArrowException:
        return whole
    return Chosen(data, columns, spans)


def _tried(use: Use) -> set[str]:
    return {each.column for each in use.predicates}


def _places(names: Sequence[str], columns: frozenset[str] | None) -> list[int]:
    return [at for at, name in enumerate(names) if columns is None or folded(name) in columns]


def _room(data: object) -> Any:
    """Give the module of a frame's kind; None for what is no frame in memory."""
    if is_of(data, "pandas", "DataFrame"):
        from longshore.frames import from_pandas

        return from_pandas
    if is_of(data, "polars", "DataFrame"):
        from longshore.frames import from_polars

        return from_polars
    if is_of(data, "pyarrow", "Table"):
        from longshore.frames import from_arrow

        return from_arrow
    return None
