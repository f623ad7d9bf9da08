"""The variables that a query can name: those that its caller sees, and the tables of those who called it."""

import difflib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any

from longshore.connection import is_connection

__all__ = ["RESERVED_NAMES", "Caller", "FrameSnapshot", "Scope", "attach_connections"]


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
        return next(iter(difflib.get_close_matches(name, sorted(names), n=1)), None)

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
        if _encloses(outer.f_code, code):
            # Functions of a class do not see the class's names.
            if outer.f_code.co_flags & _OPTIMIZED:
                yield outer
            code = outer.f_code
        outer = outer.f_back


#: The flag of a function's code, which a class's and a module's do not have.
_OPTIMIZED = 0x1


def _encloses(outer: CodeType, inner: CodeType) -> bool:
    return any(constant is inner for constant in outer.co_consts)


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
