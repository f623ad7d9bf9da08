"""Queries that know the dtype of their result."""

from typing import Any, Literal, Self

import numpy as np

from longshore.asyncpg.dtypes import Layout, layout
from longshore.errors import InterfaceError

__all__ = ["Query", "plain", "set_query_dtype"]


class Query(str):
    """A query's text, and the dtype that ``fetch`` gives its result in; made by ``set_query_dtype``."""

    __slots__ = ("block", "layout", "text")

    layout: Layout | None
    """None where the statement tells the dtype."""
    block: bool
    text: str
    """The text alone: asyncpg takes no subclass."""

    def __new__(cls, text: str, layout: Layout | None, *, block: bool) -> Self:
        """Keep the dtype beside the text."""
        query = super().__new__(cls, text)
        query.text = str(text)
        query.layout = layout
        query.block = block
        return query


def set_query_dtype(query: str, dtype: "np.typing.DTypeLike | Literal['auto']", block: bool = False) -> Query:  # noqa: FBT001, FBT002  asyncpg-rkt's users know the signature
    """Say which dtype ``fetch`` gives the result of ``query`` in.

    ``dtype`` has a field for each column, in their order; its names are free. ``"auto"`` takes one from the description
    of the statement. ``fetch`` then returns ``(array, nulls)``: a structured array, and a list of the NULLs' indexes,
    row times columns plus column, ascending. With ``block``, or with the key ``blocks`` in the dtype's metadata, the
    array is a record of one array for each column instead, and columns of one dtype are rows of one block.

    >>> set_query_dtype("SELECT 1", [("one", "i4")])
    'SELECT 1'

    Raises ``InterfaceError`` for a dtype without fields.
    """
    if isinstance(dtype, str) and dtype == "auto":
        return Query(query, None, block=block)
    if isinstance(dtype, bytes):
        message = "a dtype is a NumPy dtype, not bytes: what is pickled may run as a program"
        raise InterfaceError(message)
    wanted = np.dtype(dtype)
    block = block or "blocks" in (wanted.metadata or ())
    return Query(query, layout(wanted, block=block), block=block)


def plain(query: Any) -> Any:
    """Give the text alone of a query that knows a dtype, and anything else as it is."""
    return query.text if isinstance(query, Query) else query
