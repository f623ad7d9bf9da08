"""The tables that a query names and DuckDB does not have: Python's variables, and files in Arrow's own format.

DuckDB's own binder tells which they are. It has resolved common table expressions, aliases and views by then, so no
variable stands in for one of those.
"""

import difflib
import re
from collections.abc import Mapping
from dataclasses import replace
from glob import glob, has_magic
from pathlib import Path
from typing import Any

from longshore.duckdb.failures import Failure
from longshore.duckdb.parameters import Params, by_parameter_name
from longshore.duckdb.pushdown import Syntax, SyntaxCache
from longshore.duckdb.scope import Scope
from longshore.duckdb.session import Session
from longshore.errors import DataError, InterfaceError, OperationalError, ProgrammingError
from longshore.frames.inputs import column_names, engine_table, is_repeatable
from longshore.frames.pushdown import Projection, fold_name
from longshore.options import Options
from longshore.texts import display

__all__ = ["TableResolver", "arrow_files"]

#: The name of a file rather than a table.
_FILE = re.compile(r".*(?:[/*\\].*|\.\w{1,8})", re.DOTALL)

_SYNTAX_CACHE = SyntaxCache()

#: The keywords of ``sql``: another one is a table, or one of these mistyped.
_KEYWORDS = ("params", "return_type", "dtype_backend", "attach", "explain", "options")


class TableResolver:
    """The variables and files of a query, registered as tables when the binder misses them."""

    def __init__(
        self, session: Session, scope: Scope, text: str, params: Params, *, options: Options, failure: Failure
    ) -> None:
        """Take the scope to search, the session to register with, and the record of a reader's failure."""
        self._session = session
        self._scope = scope
        self._text = text
        self._options = options
        self._failure = failure
        self._values: list[object] = []
        self._params = by_parameter_name(params)
        self._syntax: Syntax | None = None

    def register_keywords(self, tables: Mapping[str, Any]) -> None:
        """Register the keywords, before the engine can find a table of its own.

        Raises ``InterfaceError`` for a name that the query does not have, or that two keywords share.
        """
        text = self._text.casefold()
        seen: dict[str, str] = {}
        for name, data in tables.items():
            other = seen.setdefault(fold_name(name), name)
            if other != name:
                message = f"the keywords {other!r} and {name!r} are one name in SQL"
                raise InterfaceError(message)
            if name.replace('"', '""').casefold() not in text:
                raise _unknown_keyword(name)
            self._register(name, data)

    def has(self, name: str) -> bool:
        """Whether there is a variable of exactly that name."""
        return self._scope.find(name)[0]

    def register(self, name: str) -> None:
        """Make the variable or file ``name`` a table; raises ``ProgrammingError`` where there is none."""
        is_there, value = self._scope.find(name)
        if is_there:
            self._refuse_another(name)
            self._register(name, value)
            return
        files = arrow_files(name)
        if files is None:
            raise _missing_table(name, self._scope.closest(name))
        self._register(name, files)

    @property
    def has_no_tables(self) -> bool:
        """Whether the query has not named a variable so far."""
        return not self._values

    @property
    def columns(self) -> set[str]:
        """The columns of all variables that the query has named so far."""
        return {column for value in self._values for column in column_names(value)}

    def _register(self, name: str, value: object) -> None:
        self._values.append(value)
        self._session.register(name, self._prefiltered(name, value))

    def _prefiltered(self, name: str, value: object) -> Any:
        from longshore.frames.selection import dictionary_encode, is_long, prefilter

        if not is_long(value):
            return self._scan(name, value, lambda: self._parsed().columns)
        pushdown = self._parsed().pushdown(name, self._params)
        if self._session.keeps_text:
            pushdown = replace(pushdown, rest=None)
        part = prefilter(value, pushdown, name, self._options)
        try:
            data = self._scan(name, part.data, lambda: part.columns)
        except DataError:
            # It may name a row, counted among the selected ones.
            data = self._scan(name, value, lambda: pushdown.columns)
        else:
            self._session.drop_predicates(part.spans)

        return dictionary_encode(data, pushdown.keys, self._options.threads)

    def _scan(self, name: str, value: object, columns: Projection) -> Any:
        again = is_repeatable(value) and self._parsed().reads(name, self._text) > 1
        return engine_table(value, name, columns, self._options, self._failure.record, again=again)

    def _parsed(self) -> Syntax:
        if self._syntax is None:
            # A table is registered once for all statements: the next may read other parts of it.
            is_one = len(self._session.statements) == 1
            text = self._session.statements[0].query
            self._syntax = _SYNTAX_CACHE.of(text, self._session.serialized) if is_one else Syntax({"error": True}, "")
        return self._syntax

    def _refuse_another(self, name: str) -> None:
        words = set(re.findall(r"\w+", self._text))
        if others := [other for other in self._scope.similar(name) if other in words]:
            hint = f"give one of them another name: sql(..., other={others[0]})"
            both = f"{name!r} and {others[0]!r}"
            message = f"the query names the variables {both}, which SQL does not tell apart\nHint: {hint}"
            raise ProgrammingError(message, hint=hint)


def _missing_table(name: str, close: str | None) -> ProgrammingError:
    if close is None and _FILE.fullmatch(name):
        hint = f"say what reads it: read_csv({display(name)}), read_parquet(...), read_json(...)"
        message = f"the ending of {display(name)} does not tell what kind of file it is\nHint: {hint}"
        return ProgrammingError(message, hint=hint)
    hint = f"did you mean {close!r}?" if close else "give it as a keyword"
    if not close and name.isidentifier():
        hint += f": sql(..., {name}=frame)"
    return ProgrammingError(f"no table and no variable is called {display(name)}\nHint: {hint}", hint=hint)


def _unknown_keyword(name: str) -> InterfaceError:
    close = difflib.get_close_matches(name, _KEYWORDS, n=1)
    remedy = f"did you mean {close[0]!r}?" if close else "the query names no such table"
    return InterfaceError(f"unknown keyword {display(name)}; {remedy}")


_SUFFIXES = {".arrow", ".arrows", ".feather", ".ipc"}

#: The first bytes of a file of the format; a stream begins otherwise.
_MAGIC = b"ARROW1"


def arrow_files(name: str) -> Any:
    """Give a scan of the Arrow files of a path or a glob; None for other names.

    Directories such as ``year=2026`` are columns. Raises ``OperationalError`` where there is no such file.
    """
    if Path(name).suffix.lower() not in _SUFFIXES:
        return None
    # Path.glob refuses absolute patterns.
    paths = sorted(glob(name, recursive=True)) if has_magic(name) else [name]  # noqa: PTH207
    if not paths or not Path(paths[0]).is_file():
        message = f"there is no file {name!r}"
        raise OperationalError(message)
    from longshore.frames import arrow

    try:
        return arrow.ipc_streams(paths) if _is_stream(paths[0]) else arrow.ipc_dataset(paths)
    except (OSError, ValueError) as error:
        message = f"{name!r} cannot be read as an Arrow file: {error}"
        raise OperationalError(message) from error


def _is_stream(path: str) -> bool:
    with Path(path).open("rb") as file:
        return file.read(len(_MAGIC)) != _MAGIC
