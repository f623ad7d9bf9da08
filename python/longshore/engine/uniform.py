"""Lists in a query's parameters: the engine gives all of their values one type, and changes those of others.

It makes texts of numbers, floats of long integers and of decimals, decimals shorter, moments of dates, and drops zones.
"""

import datetime as dt
import decimal
from collections.abc import Iterator, Mapping
from typing import Any

from longshore.errors import DataError
from longshore.frames.selected import folded

__all__ = ["MOST_DIGITS", "decimal_size", "refuse_mixed"]

#: The widest decimal of the engine.
MOST_DIGITS = 38

#: Of integers of so many bits.
_DIGITS = {31: 10, 63: 19}

#: Types of which all values have one of the engine's.
_PLAIN = {bool, int, float, str, bytes}

#: By the name in an error: a bool is an int, too, and a datetime a date.
_KINDS = {
    "bool": bool,
    "int": int,
    "float": float,
    "Decimal": decimal.Decimal,
    "str": str,
    "bytes": bytes | bytearray | memoryview,
    "datetime": dt.datetime,
    "date": dt.date,
    "time": dt.time,
    "timedelta": dt.timedelta,
}

Path = tuple[str, ...]


def refuse_mixed(values: list[Any], place: str) -> None:
    """Raise ``DataError`` for a list whose values, at any depth, are not of one type that holds all of them."""
    if len(types := {*map(type, values)} - {type(None)}) <= 1 and types <= _PLAIN:
        return
    kinds: dict[Path, dict[str, list[Any]]] = {}
    for path, value in _leaves(values, ()):
        kinds.setdefault(path, {}).setdefault(_kind(value), []).append(value)
    for found in kinds.values():
        if not _is_uniform(found):
            one, *others = sorted(found)
            message = f"{place} has values of {one} and of {', '.join(others)}, for which the engine has no one type"
            if not others:
                message = f"{place} has decimals that need more than {MOST_DIGITS} digits together"
            raise DataError(message)


def decimal_size(value: decimal.Decimal) -> tuple[int, int]:
    """Give the digits before the point that the engine needs for a decimal, and those after it."""
    _, digits, exponent = value.as_tuple()
    scale = max(-int(exponent), 0)
    whole = len(digits) + int(exponent)
    # It writes a zero before the point of what begins with another after it.
    return (1 if whole < 0 else whole), scale


def _leaves(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, list):
        for item in value:
            yield from _leaves(item, (*path, "[]"))
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _leaves(item, (*path, folded(key)))
    elif value is not None:
        yield path, value


def _kind(value: Any) -> str:
    name = next((name for name, kind in _KINDS.items() if isinstance(value, kind)), type(value).__name__)
    return f"{name} with a zone" if getattr(value, "tzinfo", None) is not None else name


def _is_uniform(found: Mapping[str, list[Any]]) -> bool:
    if found.keys() == {"int", "float"}:
        return all(_is_float(number) for number in found["int"])
    if "Decimal" in found and found.keys() <= {"Decimal", "int"}:
        sizes = [*map(decimal_size, found["Decimal"]), *map(_integer_size, found.get("int", []))]
        return max(whole for whole, _ in sizes) + max(scale for _, scale in sizes) <= MOST_DIGITS
    return len(found) == 1


def _is_float(number: int) -> bool:
    try:
        return float(number) == number
    except OverflowError:
        return False


def _integer_size(number: int) -> tuple[int, int]:
    bits = (abs(number) - (number < 0)).bit_length()
    return next((digits for most, digits in _DIGITS.items() if bits <= most), MOST_DIGITS), 0
