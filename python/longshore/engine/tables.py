"""The tables that a query names and DuckDB does not have: Python's variables, and files in Arrow's own format.

DuckDB's own binder tells which they are. It has resolved common table expressions, aliases and views by then, so no
variable is ever taken for one of those.
"""

import difflib
import re
from collections.abc import Mapping
from dataclasses import replace
from glob import glob, has_magic
from pathlib import Path
from typing import Any

from longshore.engine.failures import Failure
from longshore.engine.parameters import Params, by_name
from longshore.engine.pushdown import Kept, Syntax
from longshore.engine.scope import Scope
from longshore.engine.session import Session
from longshore.errors import DataError, InterfaceError, OperationalError, ProgrammingError
from longshore.frames.inputs import column_names, engine_table, is_repeatable
from longshore.frames.pushdown import Projection, fold_name
from longshore.options import Options
from longshore.texts import display

__all__ = ["Names", "arrow_files"]

#: A name that is a file's rather than a table's.
_FILE = re.compile(r".*(?:[/*\\].*|\.\w{1,8})", re.DOTALL)

_KEPT = Kept()

#: The keywords of ``sql`` itself: another one is a table, or one of these mistyped.
_OWN = ("params", "return_type", "dtype_backend", "attach", "explain", "options")


class Names:
    """Registers variables as tables, by and by as the binder misses them."""

    def __init__(
        self,
        session: Session,
        scope: Scope,
        text: str,
        params: Params,
        *,
        options: Options,
        failure: Failure,
    ) -> None:
        """Keep where to look, where to register, and where a reader's failure is noted."""
        self._session = session
        self._scope = scope
        self._text = text
        self._options = options
        self._failure = failure
        self._values: list[object] = []
        self._params = by_name(params)
        self._syntax: Syntax | None = None

    def keywords(self, tables: Mapping[str, Any]) -> None:
        """Register what the caller gave by name, before the engine can find a table of its own for it.

        Raises ``InterfaceError`` for a name that the query does not have, or has for two of them.
        """
        text = self._text.casefold()
        seen: dict[str, str] = {}
        for name, data in tables.items():
            other = seen.setdefault(fold_name(name), name)
            if other != name:
                message = f"the keywords {other!r} and {name!r} are one name in SQL"
                raise InterfaceError(message)
            if name.replace('"', '""').casefold() not in text:
                raise _strange(name)
            self._register(name, data)

    def has(self, name: str) -> bool:
        """Whether there is a variable of exactly that name."""
        return self._scope.find(name)[0]

    def table(self, name: str) -> None:
        """Make the variable ``name`` a table; raises ``ProgrammingError`` where there is none."""
        is_there, value = self._scope.find(name)
        if is_there:
            self._refuse_another(name)
            self._register(name, value)
            return
        files = arrow_files(name)
        if files is None:
            raise _missing(name, self._scope.closest(name))
        self._register(name, files)

    @property
    def found_none(self) -> bool:
        """Whether the query has named no variable so far."""
        return not self._values

    @property
    def columns(self) -> set[str]:
        """The names of all columns of the variables that the query has named so far."""
        return {column for value in self._values for column in column_names(value)}

    def _register(self, name: str, value: object) -> None:
        self._values.append(value)
        self._session.register(name, self._scanned(name, value))

    def _scanned(self, name: str, value: object) -> Any:
        from longshore.frames.selection import dictionary_encode, is_long, prefilter

        if not is_long(value):
            return self._whole(name, value, lambda: self._taken_apart().columns)
        use = self._taken_apart().use(name, self._params)
        if self._session.stays_as_written:
            use = replace(use, rest=None)
        left = prefilter(value, use, name, self._options)
        try:
            data = self._whole(name, left.data, lambda: left.columns)
        except DataError:
            # It may name a row, which then is one of those that are left.
            data = self._whole(name, value, lambda: use.columns)
        else:
            self._session.leave_out(left.spans)
        return dictionary_encode(data, use.keys, self._options.threads)

    def _whole(self, name: str, value: object, columns: Projection) -> Any:
        again = is_repeatable(value) and self._taken_apart().reads(name, self._text) > 1
        return engine_table(value, name, columns, self._options, self._failure.note, again=again)

    def _taken_apart(self) -> Syntax:
        if self._syntax is None:
            # A table is registered once for all statements: what one reads of it says nothing of the next.
            is_one = len(self._session.statements) == 1
            text = self._session.statements[0].query
            self._syntax = _KEPT.of(text, self._session.serialized) if is_one else Syntax({"error": True}, "")
        return self._syntax

    def _refuse_another(self, name: str) -> None:
        words = set(re.findall(r"\w+", self._text))
        if others := [other for other in self._scope.similar(name) if other in words]:
            hint = f"give one of them another name: sql(..., other={others[0]})"
            both = f"{name!r} and {others[0]!r}"
            message = f"the query names the variables {both}, which SQL does not tell apart\nHint: {hint}"
            raise ProgrammingError(message, hint=hint)


def _missing(name: str, close: str | None) -> ProgrammingError:
    if close is None and _FILE.fullmatch(name):
        hint = f"say what reads it: read_csv({display(name)}), read_parquet(...), read_json(...)"
        message = f"the ending of {display(name)} does not tell what kind of file it is\nHint: {hint}"
        return ProgrammingError(message, hint=hint)
    hint = f"did you mean {close!r}?" if close else "give it as a keyword"
    if not close and name.isidentifier():
        hint += f": sql(..., {name}=frame)"
    return ProgrammingError(f"no table and no variable is called {display(name)}\nHint: {hint}", hint=hint)


def _strange(name: str) -> InterfaceError:
    close = difflib.get_close_matches(name, _OWN, n=1)
    remedy = f"did you mean {close[0]!r}?" if close else "the query names no such table"
    return InterfaceError(f"unknown keyword {display(name)}; {remedy}")


_SUFFIXES = {".arrow", ".arrows", ".feather", ".ipc"}

#: What a file of the format begins with; a stream has no such mark.
_MAGIC = b"ARROW1"


def arrow_files(name: str) -> Any:
    """Give what scans the Arrow files of a path or a glob; None for a name that is neither.

    Directories such as ``year=2026`` are columns. Raises ``OperationalError`` where there is no such file.
    """
    if Path(name).suffix.lower() not in _SUFFIXES:
        return None
    # A Path's own glob takes no absolute pattern.
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
