"""Queries that know the dtype of their result: NumPy's dtypes in the core's words, and the arrays that they make."""

import functools
import hashlib
import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, Self

import numpy as np

from longshore import _core
from longshore.errors import DataError, InterfaceError

# Kind, offset, size; the unit of a time; kind, size and offset of each number in a void.
Field = tuple[str, int, int, tuple[str, int] | None, list[tuple[str, int, int]]]

_TIMES = "mM"
_OBJECT = np.dtype(object)


class DTypeError(DataError):
    """A dtype does not fit the columns of a query, or one of its fields a value."""


class DTypeValueError(InterfaceError, ValueError):
    """A dtype from which no result can be made."""


class DTypeSpecificationError(InterfaceError, TypeError):
    """The error of a value given for a dtype that is not one."""


@dataclass(frozen=True, eq=False)
class Layout:
    """Where the values of a result go."""

    dtype: np.dtype[Any]
    names: tuple[str, ...]
    dtypes: tuple[np.dtype[Any], ...]
    """Of each field."""
    fields: tuple[Field, ...]
    objects: tuple[int, ...]
    """The fields that asyncpg decodes."""
    image: np.dtype[Any]
    """The same records with plain memory instead of objects."""
    groups: tuple[tuple[int, ...], ...] | None
    """The fields of each block; None for records."""
    columns: np.dtype[Any]
    """A record of one array for each field."""
    mark: str
    """Twenty digits that stand for it."""


@functools.lru_cache(maxsize=256)
def layout(dtype: np.dtype[Any], *, block: bool) -> Layout:
    """Lay ``dtype`` out; raises ``DTypeValueError`` for a dtype without fields and for foreign byte orders."""
    if dtype.names is None or dtype.fields is None:
        message = f"a query's dtype has a field for each column, such as [('id', 'i8')], and {dtype!r} has none"
        raise DTypeValueError(message)
    dtypes = tuple(dtype.fields[name][0] for name in dtype.names)
    for name, part in zip(dtype.names, dtypes, strict=True):
        if not part.isnative:
            raise DTypeValueError(f"the field {name!r} is {part.str}, whose byte order is not this machine's")
    ends = list(itertools.accumulate((part.itemsize for part in dtypes), initial=0))
    # Blocks are taken out of records without gaps.
    offsets = ends[:-1] if block else [dtype.fields[name][1] for name in dtype.names]
    objects = tuple(index for index, part in enumerate(dtypes) if part == _OBJECT)
    image = np.dtype(
        {
            "names": list(dtype.names),
            "formats": [f"V{part.itemsize}" if part.hasobject else part for part in dtypes],
            "offsets": offsets,
            "itemsize": ends[-1] if block else dtype.itemsize,
        }
    )
    return Layout(
        dtype=dtype,
        names=dtype.names,
        dtypes=dtypes,
        fields=tuple(map(_field, dtypes, offsets)),
        objects=objects,
        image=image,
        groups=_groups(dtypes) if block else None,
        columns=np.dtype([(name, object) for name in dtype.names]),
        mark=mark(dtype, block=block),
    )


def mark(dtype: np.dtype[Any] | None, *, block: bool) -> str:
    """Give twenty digits that stand for a dtype, the same in every process; None is that of the statement."""
    digest = hashlib.sha256(f"{block} {dtype!r}".encode()).digest()
    return f"{int.from_bytes(digest[:8], 'big'):020}"


def _field(dtype: np.dtype[Any], offset: int) -> Field:
    kind: str = dtype.kind
    if dtype.hasobject and dtype != _OBJECT:
        # An object within a void is no one's to fill.
        kind = "?"
    unit = np.datetime_data(dtype) if kind in _TIMES else None
    return kind, offset, dtype.itemsize, unit, _leaves(dtype, 0)


def _leaves(dtype: np.dtype[Any], offset: int) -> list[tuple[str, int, int]]:
    if dtype.fields is not None:
        parts = [dtype.fields[name][:2] for name in dtype.names or ()]
        return [leaf for part, start in parts for leaf in _leaves_of(part, offset + start)]
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        count = int(np.prod(shape))
        return [leaf for index in range(count) for leaf in _leaves_of(base, offset + index * base.itemsize)]
    return []


def _leaves_of(dtype: np.dtype[Any], offset: int) -> list[tuple[str, int, int]]:
    if dtype.kind == "V":
        return _leaves(dtype, offset)
    return [(dtype.kind, dtype.itemsize, offset)]


def _groups(dtypes: tuple[np.dtype[Any], ...]) -> tuple[tuple[int, ...], ...]:
    groups: dict[np.dtype[Any], list[int]] = {}
    for index, dtype in enumerate(dtypes):
        groups.setdefault(dtype, []).append(index)
    return tuple(map(tuple, groups.values()))


# By OID. What has no exact dtype of one width, text above all, is an object.
_DTYPES = {
    16: "?",
    20: "i8",
    21: "i2",
    23: "i4",
    26: "u4",
    700: "f4",
    701: "f8",
    1082: "M8[D]",
    1083: "m8[us]",
    1114: "M8[us]",
    1184: "M8[us]",
    2950: "V16",
    3220: "u8",
    5069: "u8",
}


def layout_of(attributes: Sequence[Any], *, block: bool) -> Layout:
    """Lay out the dtype that holds every value of the statement's columns exactly."""
    names = _distinct([attribute.name for attribute in attributes])
    kinds = [_DTYPES.get(attribute.type.oid, "O") for attribute in attributes]
    return layout(np.dtype(list(zip(names, kinds, strict=True))), block=block)


def _distinct(names: Sequence[str]) -> list[str]:
    """Add ``_1``, ``_2``, ... to every repetition, as ``read_sql`` does; NumPy has no empty name."""
    named = [name or "f" for name in names]
    taken = set(named)
    distinct: list[str] = []
    for name in named:
        candidate, number = name, 0
        while candidate in distinct or (number and candidate in taken):
            number += 1
            candidate = f"{name}_{number}"
        taken.add(candidate)
        distinct.append(candidate)
    return distinct


#: The mark of a dtype in a query's text, and how it begins. Digits alone: no method of a text changes them.
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
        raise DTypeSpecificationError("a dtype is a NumPy dtype, not bytes: what is pickled may run as a program")
    try:
        wanted = np.dtype(dtype)
    except (TypeError, ValueError) as error:
        raise DTypeSpecificationError(f"{dtype!r} is not a NumPy dtype, such as [('id', 'i8')]") from error
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
    raise DTypeValueError(problem, hint="give set_query_dtype the whole query")


Result = tuple[Any, list[int]]


def result(layout: Layout, rows: _core.Rows, records: Sequence[Any]) -> Result:
    """Give the array and the NULLs of what ``rows`` hold; ``records`` have what asyncpg decoded."""
    count = rows.count
    memory, nulls = rows.finish()
    if layout.groups is None:
        return _records(layout, memory, count, records), nulls
    image = np.ndarray(count, layout.image, memory)
    columns: list[Any] = [None] * len(layout.names)
    for group in layout.groups:
        block = np.empty((len(group), count), layout.dtypes[group[0]])
        for row, index in enumerate(group):
            block[row] = _objects(records, index) if index in layout.objects else image[layout.names[index]]
            columns[index] = block[row]
    holder = np.empty(1, layout.columns)
    holder[0] = tuple(columns)
    return holder[0], nulls


def _records(layout: Layout, memory: Any, count: int, records: Sequence[Any]) -> Any:
    # Not a view: NumPy would ask itself whether the memory has objects, for longer than all else here takes.
    if not layout.objects:
        return np.ndarray(count, layout.dtype, memory)
    image = np.ndarray(count, layout.image, memory)
    array = np.empty(count, layout.dtype)
    for index, name in enumerate(layout.names):
        array[name] = _objects(records, index) if index in layout.objects else image[name]
    return array


def _objects(records: Sequence[Any], index: int) -> Any:
    return np.fromiter((record[index] for record in records), dtype=object, count=len(records))
