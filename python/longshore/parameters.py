"""Statements, their parameters and their time, as callers give them."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TypeGuard

from longshore.errors import InterfaceError
from longshore.schema import encodable

__all__ = ["bound", "is_list_of_texts", "seconds", "statements"]


def statements(given: object, name: str) -> list[str]:
    """Give a list of statements; raises ``InterfaceError`` for what is neither a text nor a list of texts."""
    if given is None and name != "query":
        return []
    if isinstance(given, str):
        return [encodable(given, name)]
    if is_list_of_texts(given):
        return [encodable(statement, name) for statement in given]
    message = f"{name} is a text or a list of texts, not {type(given).__name__}"
    raise InterfaceError(message)


def is_list_of_texts(given: object) -> TypeGuard[Sequence[str]]:
    """Whether ``given`` is a sequence of texts."""
    return isinstance(given, Sequence) and all(isinstance(text, str) for text in given)


def bound(params: object) -> object:
    """Give parameters in a form that the core takes; raises ``InterfaceError`` for what has no order or no names."""
    if params is None:
        return None
    if isinstance(params, Mapping):
        if foreign := [name for name in params if not isinstance(name, str)]:
            message = f"params names its values by texts, not {foreign[0]!r}"
            raise InterfaceError(message)
        return {encodable(name, "a name in params"): value for name, value in params.items()}
    # A frame gives its columns' names.
    if not isinstance(params, Sequence) and hasattr(params, "columns"):
        message = (
            f"params is a list, a tuple or a dict, not {type(params).__name__}; write params=list(frame['column'])"
        )
        raise InterfaceError(message)
    # A set has no order, and a text would be taken apart into letters.
    if isinstance(params, str | bytes | AbstractSet) or not hasattr(params, "__iter__"):
        message = f"params is a list, a tuple or a dict, not {type(params).__name__}; write params=[value]"
        raise InterfaceError(message)
    return params


def seconds(timeout: object) -> float | None:
    """Give a time-out in seconds; raises ``InterfaceError`` for what is none."""
    if timeout is None:
        return None
    if isinstance(timeout, int | float) and not isinstance(timeout, bool) and timeout >= 0:
        return float(timeout)
    message = f"timeout is a number of seconds, zero or more, not {timeout!r}"
    raise InterfaceError(message)
