"""Options of the form ``name=value``, which may be given again and again."""

import json
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from longshore.errors import InterfaceError

__all__ = ["options", "pairs", "parameters"]

_WORDS = {"true": True, "false": False, "none": None}


def pairs(given: Sequence[str] | None, option: str) -> dict[str, str] | None:
    """Give names with their values; raises ``InterfaceError`` for what has no name, and for one that is there twice.

    >>> pairs(["price=numeric(6,2)"], "--type")
    {'price': 'numeric(6,2)'}
    """
    if not given:
        return None
    taken: dict[str, str] = {}
    for text in given:
        name, mark, value = text.partition("=")
        if not name or not mark:
            message = f"{option} is name=value, not {text!r}"
            raise InterfaceError(message)
        if name in taken:
            message = f"{option} has {name!r} twice"
            raise InterfaceError(message)
        taken[name] = value
    return taken


def parameters(named: Sequence[str] | None, positional: Sequence[str] | None) -> dict[str, Any] | list[Any] | None:
    """Give the parameters of a query; raises ``InterfaceError`` where some have names and some have not.

    >>> parameters(["berth=7", "code=007", 'text="7"', "gone=null"], None)
    {'berth': 7, 'code': '007', 'text': '7', 'gone': None}
    """
    if named and positional:
        message = "a query's parameters have names, --param name=value, or an order, --arg value, but not both"
        raise InterfaceError(message)
    if positional:
        return [_value(text) for text in positional]
    taken = pairs(named, "--param")
    return None if taken is None else {name: _value(text) for name, text in taken.items()}


def options(given: Sequence[str] | None) -> dict[str, Any] | None:
    """Give the keys of ``options=``, each in its type.

    >>> options(["uuid=text", "ordered=true", "threads=2", "memory_limit=none"])
    {'uuid': 'text', 'ordered': True, 'threads': 2, 'memory_limit': None}
    """
    taken = pairs(given, "--option")
    return None if taken is None else {name: _option(value) for name, value in taken.items()}


def _option(value: str) -> Any:
    return int(value) if value.isdecimal() else _WORDS.get(value, value)


def _value(text: str) -> Any:
    """Take a number, a word or a quoted text of JSON's for what it is, and all else for a text."""
    try:
        value = json.loads(text, parse_float=_number, parse_constant=str)
    except (ValueError, RecursionError):
        return text
    return text if isinstance(value, list | dict) else value


def _number(text: str) -> float | Decimal:
    """Give the double, where it stands for just these digits, else the decimal."""
    exact = Decimal(text)
    return float(text) if Decimal(repr(float(text))) == exact else exact
