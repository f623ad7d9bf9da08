"""``%sql`` and ``%%sql`` in a notebook, after ``%load_ext longshore``."""

import contextlib
import re
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from longshore.errors import Error, InterfaceError
from longshore.sql import sql
from longshore.texts import display

#: A database, before everything else.
_ATTACH = re.compile(
    r"""\s*--attach(?:\s+|=)(?P<name>\w+)=(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<plain>\S+))"""
)
#: A variable for the result.
_NAME = re.compile(r"\s*(?:(?P<name>[^\W\d]\w*)\s*<<)?\s*(?P<rest>.*)", re.DOTALL)
_URL = re.compile(r"[\w+.-]*://", re.ASCII)


class Shell(Protocol):
    """The parts of IPython's shell that are needed here."""

    user_ns: dict[str, Any]

    def register_magic_function(
        self, func: Callable[..., Any], magic_kind: str = ..., magic_name: str | None = ...
    ) -> None:
        """Give a function a name after percent signs."""


def load_ipython_extension(ipython: Shell) -> None:
    """Add the magics ``%sql`` and ``%%sql``; IPython calls it for ``%load_ext longshore``.

    The cell is the query, or what follows ``%sql`` in its line. Before it may stand databases and a name for the
    result; a cell's line may have keywords of ``sql`` behind them::

        %%sql --attach pg=env:PGURL boats << return_type="polars"

    Parameters are variables of the notebook, where the keywords have no ``params``.
    """
    ipython.register_magic_function(partial(_magic, ipython), magic_kind="line_cell", magic_name="sql")


def _magic(ipython: Shell, line: str, cell: str | None = None) -> Any:
    try:
        return _run(ipython, line, cell)
    except Error as error:
        # Who reads a notebook has written the query, and not what is between it and the error.
        raise error.with_traceback(None) from None


def _run(ipython: Shell, line: str, cell: str | None) -> Any:
    attach, rest = _attachments(line)
    found = _NAME.fullmatch(rest)
    name, rest = (found["name"], found["rest"]) if found else (None, rest)
    if _URL.match(rest):
        hint = "attach it: --attach pg=env:NAME, where the environment variable NAME is the URL, and FROM pg.table"
        raise InterfaceError("a line of sql does not begin with a URL: a query names its databases", hint=hint)
    query, keywords = (rest, {}) if cell is None else (cell, _keywords(rest, ipython.user_ns))
    if attach:
        keywords["attach"] = {**attach, **(keywords.get("attach") or {})}
    if "params" not in keywords:
        keywords["params"] = _variables(query, ipython.user_ns)
    call = partial(sql, query, **keywords)
    # Called from code of the notebook's, whose variables are the query's tables.
    result = eval("__longshore__()", ipython.user_ns, {"__longshore__": call})  # noqa: S307
    if name is None:
        return result
    ipython.user_ns[name] = result
    return None


def _attachments(line: str) -> tuple[dict[str, str], str]:
    """Give the databases that a line begins with, and the rest of it."""
    found = {}
    while (match := _ATTACH.match(line)) is not None:
        found[match["name"]] = match["double"] or match["single"] or match["plain"]
        line = line[match.end() :]
    if re.match(r"\s*--", line):
        hint = "--attach NAME=URL or --attach NAME=env:VARIABLE, before a name and keywords"
        raise InterfaceError("a line of sql has an option that is not known, or has no value", hint=hint)
    return found, line


def _variables(query: str, variables: dict[str, Any]) -> dict[str, Any] | None:
    """Give the notebook's variables that the query has as parameters."""
    from longshore.duckdb.parameters import parameter_names

    return {name: variables[name] for name in parameter_names(query) if name in variables} or None


def _keywords(arguments: str, variables: dict[str, Any]) -> dict[str, Any]:
    # A SyntaxError holds the line, with what is secret in it: it must not be the context of another exception.
    with contextlib.suppress(SyntaxError, TypeError, ValueError):
        keywords: dict[str, Any] = eval(f"dict({arguments})", variables)  # noqa: S307  the notebook's own code
        return keywords
    shown = display(arguments)
    raise InterfaceError(f"the line of %%sql is keywords of longshore.sql after an optional 'name <<', not {shown}")
