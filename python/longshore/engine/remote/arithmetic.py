"""The types of sums and products, and where the engine fails on one that its source would give.

The engine computes integers in the wider of both types, of which a small constant is none. PostgreSQL and MySQL compute
some of them in more. What comes out is read as the engine's type, or fails; but nothing may be made of it in the
source, which would hide that.

It computes products of decimals in 18 digits, if both have no more, and fails beyond. Those go to the source all the
same: its sums of them are exact, and are what remote tables are asked for most.
"""

import dataclasses

from longshore.engine.remote.types import Kind, Trust, Type, Unsafe, decimal

__all__ = ["MOST_DIGITS", "of_constant", "result"]

MOST_DIGITS = 38
_DIGITS = {"TINYINT": 3, "UTINYINT": 3, "SMALLINT": 5, "USMALLINT": 5, "INTEGER": 10, "UINTEGER": 10, "BIGINT": 19}
#: Of the longest integer without a sign.
_MOST_DIGITS_OF_INTEGER = 20
#: MySQL rounds to so many.
_MOST_SCALE = 30
_WIDTHS = ("SMALLINT", "INTEGER", "BIGINT")


def of_constant(number: int) -> Type:
    """Give the type of a whole number in a query's text, of 32 bits: no other INTEGER has a precision."""
    return Type(Kind.INTEGER, "INTEGER", sums=True, precision=len(str(abs(number))))


def result(left: Type, right: Type, *, multiplied: bool, always_wide: bool) -> Type:
    """Give the type of a sum or a product; raises ``Unsafe`` where the engine may turn to floating point.

    An integer is trusted with nothing where the source may have a result and the engine none. ``always_wide`` tells
    that the source computes integers in 64 bits, whatever their types.
    """
    if left.kind is right.kind is Kind.INTEGER:
        return _integer(left, right, always_wide=always_wide)
    left_digits, right_digits = _precision(left), _precision(right)
    if multiplied:
        digits, scale = left_digits + right_digits, left.scale + right.scale
    else:
        scale = max(left.scale, right.scale)
        digits = max(left_digits - left.scale, right_digits - right.scale) + scale + 1
    if digits > MOST_DIGITS or scale > _MOST_SCALE:
        raise Unsafe
    # The engine's precision depends on more than the two types.
    return dataclasses.replace(decimal(digits, scale), engine=None, equal=Trust.NONE, groups=False)


def _integer(left: Type, right: Type, *, always_wide: bool) -> Type:
    names = [of.engine or "" for of in (left, right) if not (of.engine == "INTEGER" and of.precision)]
    if not set(names) <= set(_WIDTHS):
        return Type(Kind.INTEGER)
    widest = max(names, key=_WIDTHS.index, default="INTEGER")
    # In PostgreSQL, a constant is an INTEGER beside a SMALLINT, too.
    is_wider = always_wide or (widest == "SMALLINT" and len(names) == 1)
    if is_wider and widest != "BIGINT":
        return Type(Kind.INTEGER)
    return Type(Kind.INTEGER, widest, nulls=True, sums=True, order=Trust.EXACT)


def _precision(of: Type) -> int:
    return of.precision or _DIGITS.get(of.engine or "", _MOST_DIGITS_OF_INTEGER)
