"""Values for a query's parameters, as DuckDB binds them without changing one."""

import datetime as dt
import decimal
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np

from longshore import _core
from longshore.arguments import core_params
from longshore.errors import DataError, InterfaceError, ProgrammingError
from longshore.frames.pushdown import are_distinct, fold_name

#: NumPy's units of dates, and those of varying length.
_DAYS = {"Y", "M", "W", "D"}
_CALENDAR = {"Y", "M"}

Params = list[Any] | dict[str, Any] | None


def engine_params(params: object) -> Params:
    """Give the caller's ``params`` as the engine binds them; raises ``DataError`` for a value that it would change."""
    if isinstance(params, Mapping):
        # The engine names $1, $2, ... by texts.
        params = {str(name) if type(name) is int else name: value for name, value in params.items()}
    values: Any = core_params(params)
    if values is None:
        return None
    if isinstance(values, dict):
        return {name: _value(value, f"params[{name!r}]") for name, value in values.items()}
    return [_value(value, f"params[{at}]") for at, value in enumerate(values)]


def with_dollars(query: str, params: Params) -> str:
    """Write ``:name`` as DuckDB's ``$name`` where ``params`` have the name.

    >>> with_dollars("SELECT :a, ':a', b::a, c[1:a]", {"a": 1})
    "SELECT $a, ':a', b::a, c[1:a]"
    """
    if not isinstance(params, dict) or ":" not in query:
        return query
    pieces = _core.sql_places(query, "duckdb")
    pieces[1::2] = [f"${place[1:]}" if place[1:] in params else place for place in pieces[1::2]]
    return "".join(pieces)


def parameter_names(query: str) -> set[str]:
    """Give the names of a query's parameters.

    >>> sorted(parameter_names("SELECT :a, ':b', $c, $1, b::d, $$:e$$ /* /* :f */ :g */"))
    ['a', 'c']
    """
    return {place[1:] for place in _core.sql_places(query, "duckdb")[1::2] if not place[1].isdecimal()}


def by_parameter_name(params: Params) -> dict[str, Any]:
    """Give the values by the engine's names: those of a list are numbered from 1.

    >>> by_parameter_name(["a", "b"])
    {'1': 'a', '2': 'b'}
    """
    return params if isinstance(params, dict) else {str(at): value for at, value in enumerate(params or (), 1)}


def for_statement(params: Params, at: int, names: Sequence[AbstractSet[str]]) -> Params:
    """Give the values of one of several statements, where ``names`` are each one's parameters.

    Raises ``ProgrammingError`` for a value that no statement names, and for values by place where several have places.
    """
    if params is None or len(names) == 1:
        return params
    if isinstance(params, dict):
        if unknown := [name for name in params if not any(name in each for each in names)]:
            raise ProgrammingError(f"no statement has a parameter {unknown[0]!r}")
        return {name: params[name] for name in names[at] if name in params} or None
    if sum(map(bool, names)) != 1:
        hint = "name them, as in $name, and give params as a dict"
        raise ProgrammingError("params are a list, and not just one of the statements has parameters", hint=hint)
    return params if names[at] else None


def _value(value: Any, place: str) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        return _numpy(value, place)
    if isinstance(value, decimal.Decimal):
        return _decimal(value, place)
    if _has_nanoseconds(value):
        raise _refusal(place, value, "has nanoseconds, which a parameter cannot have")
    if isinstance(value, str):
        return _text(value, place)
    if isinstance(value, list | tuple):
        return _list(value, place)
    if isinstance(value, Mapping):
        return _struct(value, place)
    return value


def _has_nanoseconds(value: Any) -> bool:
    """Whether it is a Timestamp or Timedelta of pandas with nanoseconds; NaT's are NaN."""
    parts = [getattr(value, name, 0) for name in ("nanosecond", "nanoseconds")]
    return any(isinstance(part, int) and part != 0 for part in parts)


def _numpy(value: Any, place: str) -> Any:
    if isinstance(value, np.ndarray):
        if value.ndim == 0:
            return _value(value[()], place)
        return _list([_value(each, place) for each in value], place)
    if isinstance(value, np.datetime64 | np.timedelta64):
        return _datetime(value, place)
    return value.item()


def _datetime(value: "np.datetime64 | np.timedelta64", place: str) -> Any:
    if np.isnat(value):
        return None
    unit = np.datetime_data(value.dtype)[0]
    kind = value.dtype.kind
    if kind == "m" and unit in _CALENDAR:
        raise _refusal(place, value, "is of a unit without a fixed length")
    exact = value.astype(f"{kind}8[D]" if kind == "M" and unit in _DAYS else f"{kind}8[us]")
    item = exact.item()
    if exact != value or isinstance(item, int):
        raise _refusal(place, value, "cannot be a datetime or timedelta of Python, which count microseconds")
    return item


def _decimal(value: decimal.Decimal, place: str) -> decimal.Decimal:
    if not value.is_finite():
        raise _refusal(place, value, "is not a number: decimals of the engine are finite")
    if sum(decimal_digits(value)) > MOST_DIGITS:
        raise _refusal(place, value, f"has more than {MOST_DIGITS} digits, with a zero before its point")
    return value


def _text(value: str, place: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise _refusal(place, value, "holds a lone surrogate: UTF-8 cannot encode it") from error
    return value


def _list(values: Iterable[Any], place: str) -> list[Any]:
    items = [_value(value, f"{place}[{at}]") for at, value in enumerate(values)]
    refuse_mixed_types(items, place)
    return items


def _struct(values: Mapping[Any, Any], place: str) -> dict[str, Any]:
    if unknown := [key for key in values if not isinstance(key, str)]:
        raise InterfaceError(f"{place} has the key {unknown[0]!r}: a struct's fields are named by texts")
    if not are_distinct(list(values)) and values:
        message = f"{place} has keys that SQL does not tell apart, or one without a name: they name a struct's fields"
        raise InterfaceError(message)
    return {key: _value(value, f"{place}[{key!r}]") for key, value in values.items()}


def _refusal(place: str, value: object, why: str) -> DataError:
    return DataError(f"{place}, {value!a}, {why}")


# Lists: the engine gives all of their values one type, and changes those of others. It makes texts of numbers, floats
# of long integers and of decimals, decimals shorter, timestamps of dates, and drops zones.

#: The digits of the engine's widest decimal.
MOST_DIGITS = 38

#: The digits of integers by their bits.
_DIGITS = {31: 10, 63: 19}

#: Types whose values all have one type in the engine.
_SCALARS = {bool, int, float, str, bytes}

#: By the name in an error, in this order: a bool is an int, too, and a datetime a date.
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


def refuse_mixed_types(values: list[Any], place: str) -> None:
    """Raise ``DataError`` for a list whose values, at any depth, are not of one type that holds all of them."""
    if len(types := {*map(type, values)} - {type(None)}) <= 1 and types <= _SCALARS:
        return
    kinds: dict[Path, dict[str, list[Any]]] = {}
    for path, value in _leaves(values, ()):
        kinds.setdefault(path, {}).setdefault(_kind(value), []).append(value)
    for values_by_kind in kinds.values():
        if not _has_one_type(values_by_kind):
            one, *others = sorted(values_by_kind)
            message = f"{place} has values of {one} and of {', '.join(others)}, for which the engine has no one type"
            if not others:
                message = f"{place} has decimals that need more than {MOST_DIGITS} digits together"
            raise DataError(message)


def decimal_digits(value: decimal.Decimal) -> tuple[int, int]:
    """Give the digits that the engine needs for a decimal, before the point and after it."""
    _, digits, exponent = value.as_tuple()
    scale = max(-int(exponent), 0)
    whole = len(digits) + int(exponent)
    # The engine writes a zero before the point if another follows the point.
    return (1 if whole < 0 else whole), scale


def _leaves(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, list):
        for item in value:
            yield from _leaves(item, (*path, "[]"))
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _leaves(item, (*path, fold_name(key)))
    elif value is not None:
        yield path, value


def _kind(value: Any) -> str:
    name = next((name for name, kind in _KINDS.items() if isinstance(value, kind)), type(value).__name__)
    return f"{name} with a zone" if getattr(value, "tzinfo", None) is not None else name


def _has_one_type(kinds: Mapping[str, list[Any]]) -> bool:
    if kinds.keys() == {"int", "float"}:
        return all(_is_float(number) for number in kinds["int"])
    if "Decimal" in kinds and kinds.keys() <= {"Decimal", "int"}:
        sizes = [*map(decimal_digits, kinds["Decimal"]), *map(_integer_digits, kinds.get("int", []))]
        return max(whole for whole, _ in sizes) + max(scale for _, scale in sizes) <= MOST_DIGITS
    return len(kinds) == 1


def _is_float(number: int) -> bool:
    try:
        return float(number) == number
    except OverflowError:
        return False


def _integer_digits(number: int) -> tuple[int, int]:
    bits = (abs(number) - (number < 0)).bit_length()
    return next((digits for most, digits in _DIGITS.items() if bits <= most), MOST_DIGITS), 0
