"""Frames of many rows, and what a query needs of them as frames of the same kind."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from longshore.frames.scanned import is_of
from longshore.frames.selected import are_clear, folded
from longshore.frames.use import MANY, Span, Use
from longshore.options import Options

if TYPE_CHECKING:
    from longshore.frames.selection import Selection

__all__ = ["Chosen", "chosen", "is_long"]

#: The first rows are taken if they are no more than one of so many.
_OF = 16


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
    """Give the rows of a long frame that a query reaches, or that its predicates leave, where it is worth it."""
    from longshore.frames.selection import first

    whole = Chosen(data, use.columns)
    if not are_clear(_room(data).names(data)):
        return whole
    if use.first is not None and use.first * _OF <= len(data):
        return _taken(whole, first(use.first), name, options) or whole
    return _left(data, use, name, options) or whole


def _left(data: Any, use: Use, name: str, options: Options) -> Chosen | None:
    """Give the rows that predicates leave; None where the engine would not take longer to."""
    from longshore.frames.selection import selection

    room = _room(data)
    names = room.names(data)
    columns = use.rest.columns if use.rest else use.columns
    tried = {folded(names[at]): room.values(data, at) for at in _places(names, frozenset(_tried(use)))}
    left = selection(use.predicates, tried, takes_any=bool(_places(names, columns)), threads=options.threads)
    if left is None:
        return None
    spans = use.rest.spans if use.rest and left.texts else ()
    return _taken(Chosen(data, columns if spans else use.columns, spans), left, name, options)


def _taken(of: Chosen, rows: "Selection", name: str, options: Options) -> Chosen | None:
    """Give some rows; None where a column is of a type that rows are not taken of."""
    import pyarrow as pa

    from longshore.frames.from_arrow import of_columns
    from longshore.frames.rows import Rows

    room = _room(of.data)
    places = _places(room.names(of.data), of.columns)
    if not places:
        return replace(of, data=of_columns([], [], range(rows.count), name))
    try:
        return replace(of, data=room.taken(of.data, places, Rows(rows.numbers(), options.threads), options))
    except pa.ArrowException:
        return None


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
