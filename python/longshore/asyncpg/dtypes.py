"""NumPy's dtypes in the words of the core, and the error of those that do not fit."""

import functools
import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from longshore.errors import DataError, InterfaceError

__all__ = ["DTypeError", "DTypeSpecificationError", "DTypeValueError", "Layout", "layout", "mark"]

# Kind, offset, size; the unit of a time; kind, size and offset of each number in a void.
Field = tuple[str, int, int, tuple[str, int] | None, list[tuple[str, int, int]]]

_TIMES = "mM"
_OBJECT = np.dtype(object)


class DTypeError(DataError):
    """A dtype does not fit the columns of a query, or one of its fields a value."""


class DTypeValueError(InterfaceError, ValueError):
    """A dtype from which no result can be made."""


class DTypeSpecificationError(InterfaceError, TypeError):
    """What was given for a dtype is not one."""


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
    parts = [dtype.fields[name][:2] for name in dtype.names]
    dtypes = tuple(part for part, _ in parts)
    for name, part in zip(dtype.names, dtypes, strict=True):
        if not part.isnative:
            message = f"the field {name!r} is {part.str}, whose byte order is not this machine's"
            raise DTypeValueError(message)
    objects = tuple(index for index, part in enumerate(dtypes) if part == _OBJECT)
    image = np.dtype(
        {
            "names": list(dtype.names),
            "formats": [f"V{part.itemsize}" if part.hasobject else part for part in dtypes],
            "offsets": [offset for _, offset in parts],
            "itemsize": dtype.itemsize,
        }
    )
    return Layout(
        dtype=dtype,
        names=dtype.names,
        dtypes=dtypes,
        fields=tuple(_field(part, offset) for part, offset in parts),
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
