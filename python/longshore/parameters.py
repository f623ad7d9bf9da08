"""Statements, their parameters and their time, as callers give them."""

import sys
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, TypeGuard

from longshore.errors import InterfaceError
from longshore.texts import display, name_text, statement_text

__all__ = ["bound", "is_list_of_texts", "seconds", "statements", "without_clauses"]


def statements(given: object, name: str) -> list[str]:
    """Give a list of statements; raises ``InterfaceError`` for what is neither a text nor a list of texts."""
    if given is None and name != "query":
        return []
    if isinstance(given, str):
        return [statement_text(given, name)]
    if is_list_of_texts(given):
        return [statement_text(statement, name) for statement in given]
    message = f"{name} is a text or a list of texts, not {type(given).__name__}"
    raise InterfaceError(message)


def without_clauses(query: Any, params: Any) -> tuple[Any, Any]:
    """Give each ``sqlalchemy.text()`` in ``query`` as its text, and what is bound to it in ``params``, which win."""
    # Whoever has one has imported its module.
    elements = sys.modules.get("sqlalchemy.sql.elements")
    queries = query if isinstance(query, list | tuple) else [query]
    if elements is None or not any(isinstance(one, elements.TextClause) for one in queries):
        return query, params
    compiled = [one.compile() if isinstance(one, elements.TextClause) else one for one in queries]
    binds = [bind for one in compiled for bind in getattr(one, "binds", {}).items()]
    values = {name: bind.value for name, bind in binds if not bind.required}
    if values and (params is None or isinstance(params, Mapping)):
        params = {**values, **(params or {})}
    texts = [str(one) for one in compiled]
    return (texts if queries is query else texts[0]), params


def is_list_of_texts(given: object) -> TypeGuard[Sequence[str]]:
    """Whether ``given`` is a sequence of texts."""
    return isinstance(given, Sequence) and all(isinstance(text, str) for text in given)


def bound(params: object) -> object:
    """Give parameters in a form that the core takes; raises ``InterfaceError`` for what has no order or no names."""
    if params is None:
        return None
    if isinstance(params, Mapping):
        if foreign := [name for name in params if not isinstance(name, str)]:
            message = f"params names its values by texts, not {display(foreign[0])}"
            raise InterfaceError(message)
        return {name_text(name, "a name in params"): value for name, value in params.items()}
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
    message = f"timeout is a number of seconds, zero or more, not {display(timeout)}"
    raise InterfaceError(message)
