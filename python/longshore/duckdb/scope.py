"""The variables and files that a query names, as tables of the engine's."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from glob import glob, has_magic
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from longshore.connectable import is_connection
from longshore.duckdb.failures import Failure
from longshore.duckdb.parameters import Params, by_parameter_name
from longshore.duckdb.pushdown import Syntax, syntax_of
from longshore.duckdb.session import Session
from longshore.errors import DataError, InterfaceError, OperationalError, ProgrammingError
from longshore.frames.inputs import column_names, engine_table, is_repeatable
from longshore.frames.pushdown import Projection, fold_name
from longshore.options import Options
from longshore.texts import closest, display


@dataclass(frozen=True)
class FrameSnapshot:
    """A copy of a frame: a coroutine that waits has lost its caller, and its variables change meanwhile."""

    f_code: CodeType
    f_locals: Mapping[str, Any]
    f_globals: Mapping[str, Any]
    f_back: "FrameSnapshot | None"

    @classmethod
    def of(cls, frame: FrameType) -> "FrameSnapshot":
        """Copy a frame and those that called it."""
        outer, outers = frame.f_back, []
        while outer is not None:
            outers.append(outer)
            outer = outer.f_back
        caller = None
        for each in reversed(outers):
            caller = cls(each.f_code, dict(each.f_locals), each.f_globals, caller)
        return cls(frame.f_code, dict(frame.f_locals), frame.f_globals, caller)


Caller = FrameType | FrameSnapshot


class Scope:
    """The variables that a query can name.

    Keywords come first. Then Python's own rule: the locals of the caller, of the functions around it that still run,
    and the caller's globals. A name that they lack is looked for among the tables of the
    functions that called the caller: who wraps a query in a helper means the helper's callers.
    """

    def __init__(self, caller: Caller, tables: Mapping[str, Any], is_table: Callable[[object], bool]) -> None:
        """Hold the frame only while the query is bound: it keeps every variable of the caller alive."""
        self._caller = caller
        self._tables = tables
        self._is_table = is_table

    def find(self, name: str) -> tuple[bool, Any]:
        """Whether there is a variable of exactly that name, and its value."""
        for variables in self._visible():
            if name in variables:
                return True, variables[name]
        for variables in self._callers():
            if name in variables and self._is_table(variables[name]):
                return True, variables[name]
        return False, None

    def similar(self, name: str) -> list[str]:
        """Give the names of other variables that differ in case alone, which SQL does not tell apart."""
        folded = name.casefold()
        names = {other for variables in self._visible() for other in variables}
        return sorted(other for other in names if other != name and other.casefold() == folded)

    def closest(self, name: str) -> str | None:
        """Give the name of the table that ``name`` probably means."""
        names = {other for variables in self._visible() for other, value in variables.items() if self._is_table(value)}
        if alike := [other for other in names if other.casefold() == name.casefold()]:
            return min(alike)
        return closest(name, names)

    def _visible(self) -> Iterator[Mapping[str, Any]]:
        yield self._tables
        frame: Caller = self._caller
        yield frame.f_locals
        for outer in _enclosing(frame):
            yield outer.f_locals
        yield frame.f_globals

    def _callers(self) -> Iterator[Mapping[str, Any]]:
        outer: Caller | None = self._caller.f_back
        while outer is not None:
            yield outer.f_locals
            outer = outer.f_back


def _enclosing(frame: Caller) -> Iterator[Caller]:
    """Give the running frames of the functions, comprehensions and classes whose text holds the frame's code."""
    code = frame.f_code
    outer: Caller | None = frame.f_back
    while outer is not None:
        if any(constant is code for constant in outer.f_code.co_consts):
            # Functions of a class do not see the class's names.
            if outer.f_code.co_flags & _OPTIMIZED:
                yield outer
            code = outer.f_code
        outer = outer.f_back


#: The flag of a function's code, which a class's and a module's do not have.
_OPTIMIZED = 0x1


#: The engine's own databases and schemas.
RESERVED_NAMES = frozenset({"memory", "temp", "system", "main", "information_schema", "pg_catalog"})

_BEFORE_A_DOT = re.compile(r"""(?<![\w."'])(?:([^\W\d]\w*)|"((?:[^"]|"")+)")\s*\.""")


def attach_connections(text: str, scope: Scope, attach: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Give ``attach`` with the connections among variables and keywords whose names the text has."""
    connections: dict[str, Any] = {}
    for plain, quoted in _BEFORE_A_DOT.findall(text):
        name = plain or quoted.replace('""', '"')
        is_there, value = scope.find(name)
        if is_there and is_connection(value) and name.lower() not in RESERVED_NAMES:
            connections[name] = value
    if not connections or not (attach is None or isinstance(attach, Mapping)):
        return attach
    attached = {str(name).lower() for name in attach or {}}
    return {**{name: value for name, value in connections.items() if name.lower() not in attached}, **(attach or {})}


#: The name of a file rather than a table.
_FILE = re.compile(r".*(?:[/*\\].*|\.\w{1,8})", re.DOTALL)

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
                raise InterfaceError(f"the keywords {other!r} and {name!r} are one name in SQL")
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
        self._session.register(name, self._prefilter(name, value))

    def _prefilter(self, name: str, value: object) -> Any:
        from longshore.frames.selection import dictionary_encode, is_long, prefilter

        if not is_long(value):
            return self._scan(name, value, lambda: self._parse().columns)
        pushdown = self._parse().pushdown(name, self._params)
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
        again = is_repeatable(value) and self._parse().reads(name, self._text) > 1
        return engine_table(value, name, columns, self._options, self._failure.record, again=again)

    def _parse(self) -> Syntax:
        if self._syntax is None:
            # A table is registered once for all statements: the next may read other parts of it.
            is_one = len(self._session.statements) == 1
            text = self._session.statements[0].query
            self._syntax = syntax_of(text, self._session.serialize) if is_one else Syntax({"error": True}, "")
        return self._syntax

    def _refuse_another(self, name: str) -> None:
        words = set(re.findall(r"\w+", self._text))
        if others := [other for other in self._scope.similar(name) if other in words]:
            hint = f"give one of them another name: sql(..., other={others[0]})"
            both = f"{name!r} and {others[0]!r}"
            raise ProgrammingError(f"the query names the variables {both}, which SQL does not tell apart", hint=hint)


def _missing_table(name: str, close: str | None) -> ProgrammingError:
    if close is None and _FILE.fullmatch(name):
        hint = f"say what reads it: read_csv({display(name)}), read_parquet(...), read_json(...)"
        return ProgrammingError(f"the ending of {display(name)} does not tell what kind of file it is", hint=hint)
    hint = f"did you mean {close!r}?" if close else "give it as a keyword"
    if not close and name.isidentifier():
        hint += f": sql(..., {name}=frame)"
    return ProgrammingError(f"no table and no variable is called {display(name)}", hint=hint)


def _unknown_keyword(name: str) -> InterfaceError:
    close = closest(name, _KEYWORDS)
    remedy = f"did you mean {close!r}?" if close else "the query names no such table"
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
        raise OperationalError(f"there is no file {name!r}")
    from longshore.frames import arrow

    try:
        return arrow.ipc_streams(paths) if _is_stream(paths[0]) else arrow.ipc_dataset(paths)
    except (OSError, ValueError) as error:
        raise OperationalError(f"{name!r} cannot be read as an Arrow file: {error}") from error


def _is_stream(path: str) -> bool:
    with Path(path).open("rb") as file:
        return file.read(len(_MAGIC)) != _MAGIC
