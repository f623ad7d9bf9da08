"""``%%sql`` in a notebook, after ``%load_ext longshore``."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from longshore.errors import InterfaceError
from longshore.sql import sql

__all__ = ["load_ipython_extension"]

#: A variable for the result, and keywords of ``sql``.
_LINE = re.compile(r"\s*(?:(?P<name>[^\W\d]\w*)\s*<<)?\s*(?P<arguments>.*)", re.DOTALL)


class Shell(Protocol):
    """What of IPython's shell is needed here."""

    user_ns: dict[str, Any]

    def register_magic_function(
        self, func: Callable[[str, str], Any], magic_kind: str = ..., magic_name: str | None = ...
    ) -> None:
        """Give a function a name after percent signs."""


def load_ipython_extension(ipython: Shell) -> None:
    """Add the cell magic ``%%sql``; IPython calls it for ``%load_ext longshore``.

    The cell is the query. The rest of the line is keywords of ``sql``, after a name and ``<<`` where the result goes
    into a variable: ``%%sql boats << return_type="polars"``.
    """
    ipython.register_magic_function(partial(_cell, ipython), magic_kind="cell", magic_name="sql")


def _cell(ipython: Shell, line: str, cell: str) -> Any:
    found = _LINE.fullmatch(line)
    name, arguments = (found["name"], found["arguments"]) if found else (None, line)
    call = partial(sql, cell, **_keywords(arguments, ipython.user_ns))
    # Called from code of the notebook's, whose variables are the query's tables.
    result = eval("__longshore__()", ipython.user_ns, {"__longshore__": call})  # noqa: S307
    if name is None:
        return result
    ipython.user_ns[name] = result
    return None


def _keywords(arguments: str, variables: dict[str, Any]) -> dict[str, Any]:
    try:
        keywords: dict[str, Any] = eval(f"dict({arguments})", variables)  # noqa: S307  the notebook's own code
    except (SyntaxError, TypeError, ValueError) as error:
        message = f"the line of %%sql is keywords of longshore.sql after an optional 'name <<', not {arguments!r}"
        raise InterfaceError(message) from error
    return keywords
