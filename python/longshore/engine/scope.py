"""The variables that a query can name: those that its caller sees, and the tables of those who called it."""

import difflib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any

from longshore.connection import is_connection

__all__ = ["TAKEN", "Caller", "KeptFrame", "Scope", "with_connections"]


@dataclass(frozen=True)
class KeptFrame:
    """A frame as it was: a coroutine that waits has no caller any more, and other values in its variables."""

    f_code: CodeType
    f_locals: Mapping[str, Any]
    f_globals: Mapping[str, Any]
    f_back: "KeptFrame | None"

    @classmethod
    def of(cls, frame: FrameType) -> "KeptFrame":
        """Keep a frame and those that led to it."""
        outer, outers = frame.f_back, []
        while outer is not None:
            outers.append(outer)
            outer = outer.f_back
        kept = None
        for each in reversed(outers):
            kept = cls(each.f_code, dict(each.f_locals), each.f_globals, kept)
        return cls(frame.f_code, dict(frame.f_locals), frame.f_globals, kept)


Caller = FrameType | KeptFrame


class Scope:
    """What names mean where a query stands.

    Keywords come first. Then Python's own rule: the locals of the caller, of the functions around it that still run,
    and the caller's globals. A name that they lack is looked for in the functions that led to the caller, among
    what can be a table only: who wraps a query in a helper means the helper's callers.
    """

    def __init__(self, caller: Caller, tables: Mapping[str, Any], is_table: Callable[[object], bool]) -> None:
        """Keep the frame only as long as the query is bound: it keeps every variable of the caller alive."""
        self._caller = caller
        self._tables = tables
        self._is_table = is_table

    def find(self, name: str) -> tuple[bool, Any]:
        """Tell whether there is a variable of exactly that name, and give its value."""
        for variables in self._own():
            if name in variables:
                return True, variables[name]
        for variables in self._led_here():
            if name in variables and self._is_table(variables[name]):
                return True, variables[name]
        return False, None

    def similar(self, name: str) -> list[str]:
        """Give the names of other variables that differ in case alone, as SQL does not tell them apart."""
        folded = name.casefold()
        every = {other for variables in self._own() for other in variables}
        return sorted(other for other in every if other != name and other.casefold() == folded)

    def closest(self, name: str) -> str | None:
        """Give the name of the table that ``name`` was probably meant to be."""
        names = {other for variables in self._own() for other, value in variables.items() if self._is_table(value)}
        if alike := [other for other in names if other.casefold() == name.casefold()]:
            return min(alike)
        return next(iter(difflib.get_close_matches(name, sorted(names), n=1)), None)

    def _own(self) -> Iterator[Mapping[str, Any]]:
        yield self._tables
        frame: Caller = self._caller
        yield frame.f_locals
        for outer in _enclosing(frame):
            yield outer.f_locals
        yield frame.f_globals

    def _led_here(self) -> Iterator[Mapping[str, Any]]:
        outer: Caller | None = self._caller.f_back
        while outer is not None:
            yield outer.f_locals
            outer = outer.f_back


def _enclosing(frame: Caller) -> Iterator[Caller]:
    """Give the running frames of the functions, comprehensions and classes in whose text the frame's code stands."""
    code = frame.f_code
    outer: Caller | None = frame.f_back
    while outer is not None:
        if _holds(outer.f_code, code):
            # A class's names are its own: code within its functions does not see them.
            if outer.f_code.co_flags & _OPTIMIZED:
                yield outer
            code = outer.f_code
        outer = outer.f_back


#: The flag of code that is a function's, and neither a class's nor a module's.
_OPTIMIZED = 0x1


def _holds(outer: CodeType, inner: CodeType) -> bool:
    return any(constant is inner for constant in outer.co_consts)


#: The engine's own databases and schemas.
TAKEN = frozenset({"memory", "temp", "system", "main", "information_schema", "pg_catalog"})

_BEFORE_A_DOT = re.compile(r"""(?<![\w."'])(?:([^\W\d]\w*)|"((?:[^"]|"")+)")\s*\.""")


def with_connections(text: str, scope: Scope, attach: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Give ``attach`` with the variables and keywords that are connections, where the text has their names."""
    found: dict[str, Any] = {}
    for plain, quoted in _BEFORE_A_DOT.findall(text):
        name = plain or quoted.replace('""', '"')
        is_there, value = scope.find(name)
        if is_there and is_connection(value) and name.lower() not in TAKEN:
            found[name] = value
    if not found or not (attach is None or isinstance(attach, Mapping)):
        return attach
    given = {str(name).lower() for name in attach or {}}
    return {**{name: value for name, value in found.items() if name.lower() not in given}, **(attach or {})}
