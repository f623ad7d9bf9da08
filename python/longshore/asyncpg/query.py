"""Queries that know the dtype of their result."""

import re
from typing import Any, Literal, NoReturn, Self

import numpy as np

from longshore.asyncpg.dtypes import DTypeSpecificationError, DTypeValueError, Layout, layout, mark

__all__ = ["Query", "plain", "set_query_dtype", "with_dtype"]

#: What stands for a dtype in a query's text, and how it begins. Digits alone: no method of a text changes them.
_MARK = re.compile(r"/\*#(\d{20})#\*/")
_BEGIN = "/*#"

#: The dtypes of this process by their marks; None is told by the statement.
_KNOWN: dict[str, tuple[Layout | None, bool]] = {}


class Query(str):
    """A query's text, and the dtype that ``fetch`` gives its result in; made by ``set_query_dtype``.

    The text begins with a comment that stands for the dtype, so that whatever text is composed of it has the dtype.
    """

    __slots__ = ("block", "layout", "text")

    layout: Layout | None
    """None where the statement tells the dtype."""
    block: bool
    text: str
    """The text alone, which is what the server gets."""

    def __new__(cls, text: str, layout: Layout | None, *, block: bool) -> Self:
        """Keep the dtype with the text."""
        digits = mark(None, block=block) if layout is None else layout.mark
        _KNOWN[digits] = layout, block
        query = super().__new__(cls, f"{_BEGIN}{digits}#*/{text}")
        query.text = str(text)
        query.layout = layout
        query.block = block
        return query

    def __reduce__(self) -> tuple[Any, ...]:
        """Be made again by ``set_query_dtype``."""
        return set_query_dtype, (self.text, "auto" if self.layout is None else self.layout.dtype, self.block)


def set_query_dtype(query: str, dtype: "np.typing.DTypeLike | Literal['auto']", block: bool = False) -> Query:  # noqa: FBT001, FBT002  asyncpg-rkt's users know the signature
    """Say which dtype ``fetch`` gives the result of ``query`` in.

    ``dtype`` has a field for each column, in their order; its names are free. ``"auto"`` takes one from the description
    of the statement. ``fetch`` then returns ``(array, nulls)``: a structured array, and a list of the NULLs' indexes,
    row times columns plus column, ascending. With ``block``, or with the key ``blocks`` in the dtype's metadata, the
    array is a record of one array for each column instead, and columns of one dtype are rows of one block.

    >>> set_query_dtype("SELECT 1", [("one", "i4")]).text
    'SELECT 1'

    A text that is composed of the query, such as ``query + " LIMIT 1"``, has the same dtype. Raises ``InterfaceError``,
    which is also a ``ValueError`` for a dtype without fields and a ``TypeError`` for what is not a dtype.
    """
    text = _MARK.sub("", query)
    if isinstance(dtype, str) and dtype == "auto":
        return Query(text, None, block=block)
    if isinstance(dtype, bytes):
        message = "a dtype is a NumPy dtype, not bytes: what is pickled may run as a program"
        raise DTypeSpecificationError(message)
    try:
        wanted = np.dtype(dtype)
    except (TypeError, ValueError) as error:
        message = f"{dtype!r} is not a NumPy dtype, such as [('id', 'i8')]"
        raise DTypeSpecificationError(message) from error
    block = block or "blocks" in (wanted.metadata or ())
    return Query(text, layout(wanted, block=block), block=block)


def with_dtype(query: Any) -> Any:
    """Give a query with its dtype for a text that was composed of one, and anything else as it is.

    Raises ``InterfaceError`` where the dtype is not known here, or was one of several.
    """
    if isinstance(query, Query) or not isinstance(query, str) or _BEGIN not in query:
        return query
    marks = set(_MARK.findall(query))
    if not marks:
        return query
    if len(marks) > 1:
        _refuse("the query is composed of queries of several dtypes")
    found = _KNOWN.get(marks.pop())
    if found is None:
        _refuse("the query has a dtype that is not known in this process, or its comment has been altered")
    wanted, block = found
    return Query(_MARK.sub("", query), wanted, block=block)


def plain(query: Any) -> Any:
    """Give the text alone of a query that knows a dtype, and anything else as it is."""
    query = with_dtype(query)
    return query.text if isinstance(query, Query) else query


def _refuse(problem: str) -> NoReturn:
    hint = "give set_query_dtype the whole query"
    message = f"{problem}\nHint: {hint}"
    raise DTypeValueError(message, hint=hint)
