"""The variables that a query can name: those that its caller sees, and the frames of those who called it."""

import difflib
from collections.abc import Callable, Iterator, Mapping
from types import CodeType, FrameType
from typing import Any

__all__ = ["Scope"]


class Scope:
    """What names mean where a query stands.

    Keywords come first. Then Python's own rule: the locals of the caller, of the functions around it that still run,
    and the caller's globals. A name that they lack is looked for in the functions that led to the caller, among
    dataframes only: who wraps a query in a helper means the helper's callers.
    """

    def __init__(self, caller: FrameType, tables: Mapping[str, Any], is_frame: Callable[[object], bool]) -> None:
        """Keep the frame only as long as the query is bound: it keeps every variable of the caller alive."""
        self._caller = caller
        self._tables = tables
        self._is_frame = is_frame

    def find(self, name: str) -> tuple[bool, Any]:
        """Tell whether there is a variable of exactly that name, and give its value."""
        for variables in self._own():
            if name in variables:
                return True, variables[name]
        for variables in self._led_here():
            if name in variables and self._is_frame(variables[name]):
                return True, variables[name]
        return False, None

    def similar(self, name: str) -> list[str]:
        """Give the names of other variables that differ in case alone, as SQL does not tell them apart."""
        folded = name.casefold()
        every = {other for variables in self._own() for other in variables}
        return sorted(other for other in every if other != name and other.casefold() == folded)

    def closest(self, name: str) -> str | None:
        """Give the name that ``name`` was probably meant to be: a dataframe's before any other's."""
        frames: set[str] = set()
        others: set[str] = set()
        for variables in self._own():
            for other, value in variables.items():
                (frames if self._is_frame(value) else others).add(other)
        for names in (frames, others):
            if alike := [other for other in names if other.casefold() == name.casefold()]:
                return min(alike)
            if close := difflib.get_close_matches(name, sorted(names), n=1):
                return close[0]
        return None

    def _own(self) -> Iterator[Mapping[str, Any]]:
        yield self._tables
        frame = self._caller
        yield frame.f_locals
        for outer in _enclosing(frame):
            yield outer.f_locals
        yield frame.f_globals

    def _led_here(self) -> Iterator[Mapping[str, Any]]:
        outer = self._caller.f_back
        while outer is not None:
            yield outer.f_locals
            outer = outer.f_back


def _enclosing(frame: FrameType) -> Iterator[FrameType]:
    """Give the running frames of the functions, comprehensions and classes in whose text the frame's code stands."""
    code = frame.f_code
    outer = frame.f_back
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
