"""The type that all texts of a column have in common, none of them changed by it.

What has several readings keeps its text: ``007`` is no number, and ``1e5`` no decimal. A type is given only if every
value of the whole column says the same in it.
"""

from enum import Enum
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["ALL", "Class", "Guess"]

#: As many digits as any two doubles can be told apart by.
_DOUBLE_DIGITS = 17
_WIDEST = 76
_NARROW = 38
_MOMENT = r"\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}:\d{2}(\.\d{1,6})?"


class Class(Enum):
    """What a format tells of a value before its text is looked at."""

    NUMBER = "number"
    WORD = "word"
    """True or false."""
    TEXT = "text"
    NESTED = "nested"


ALL = frozenset(Class)


class _Kind(NamedTuple):
    pattern: str
    type: pa.DataType | None
    of: frozenset[Class]


#: In the order of preference.
_KINDS = {
    "bool": _Kind(r"^(true|false)$", pa.bool_(), frozenset({Class.WORD})),
    "int": _Kind(r"^(0|-?[1-9]\d{0,18})$", pa.int64(), frozenset({Class.NUMBER})),
    "decimal": _Kind(r"^(0|-?[1-9]\d*|-?(0|[1-9]\d*)\.\d+)$", None, frozenset({Class.NUMBER})),
    "float": _Kind(r"^(-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d{1,3})?|nan|-?inf)$", pa.float64(), frozenset({Class.NUMBER})),
    "date": _Kind(r"^\d{4}-\d{2}-\d{2}$", pa.date32(), frozenset({Class.TEXT})),
    "timestamp": _Kind(f"^{_MOMENT}$", pa.timestamp("us"), frozenset({Class.TEXT})),
    "instant": _Kind(f"^{_MOMENT}Z$", pa.timestamp("us", "UTC"), frozenset({Class.TEXT})),
}


class Guess:
    """What the texts of one column may be, after those that have been looked at."""

    def __init__(self) -> None:
        """Have seen nothing yet."""
        self._left = dict(_KINDS)
        self._digits = 0
        self._scale = 0
        self._is_number = False
        self._is_empty = True

    def look(self, texts: pa.Array, classes: frozenset[Class] = ALL) -> None:
        """Take another piece of the column into account; NULL may be anything."""
        texts = texts.drop_null()
        if not len(texts):
            return
        self._is_empty = False
        self._is_number = self._is_number or bool(pc.any(pc.match_substring_regex(texts, r"\d")).as_py())
        for name, kind in list(self._left.items()):
            if not (kind.of & classes and _all(texts, kind.pattern) and self._holds(name, kind, texts)):
                del self._left[name]

    @property
    def type(self) -> pa.DataType:
        """The type for all of them."""
        if self._is_empty or not self._left:
            return pa.string()
        name = next(iter(self._left))
        if name == "decimal":
            width = pa.decimal128 if self._digits + self._scale <= _NARROW else pa.decimal256
            return width(self._digits + self._scale, self._scale)
        if name == "float" and not self._is_number:
            return pa.string()
        return _KINDS[name].type

    def _holds(self, name: str, kind: _Kind, texts: pa.Array) -> bool:
        if name == "decimal":
            self._digits = max(self._digits, _longest(texts, r"^-|\..*$"))
            self._scale = max(self._scale, _longest(texts, r"^[^.]*\.?"))
            return self._digits + self._scale <= _WIDEST
        try:
            cast = texts.cast(kind.type)
        except pa.ArrowInvalid:
            return False
        return name != "float" or _are_doubles(texts, cast)


def _are_doubles(texts: pa.Array, numbers: pa.Array) -> bool:
    """Whether each text has no more digits than a double, and is within its range."""
    if _longest(texts, r"^-?[0.]*|[eE].*$|\.") > _DOUBLE_DIGITS:
        return False
    is_over = pc.and_not(pc.is_inf(numbers), _matches(texts, "inf"))
    is_under = pc.and_(pc.equal(numbers, 0.0), _matches(texts, r"^[^eE]*[1-9]"))
    return not pc.any(pc.or_(is_over, is_under)).as_py()


def _matches(texts: pa.Array, pattern: str) -> pa.Array:
    return pc.match_substring_regex(texts, pattern)


def _all(texts: pa.Array, pattern: str) -> bool:
    return bool(pc.all(_matches(texts, pattern)).as_py())


def _longest(texts: pa.Array, left_out: str) -> int:
    """Give the length of the longest text without what the pattern matches."""
    return int(pc.max(pc.utf8_length(pc.replace_substring_regex(texts, left_out, ""))).as_py())
