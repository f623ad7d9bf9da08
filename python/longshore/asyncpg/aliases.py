"""asyncpg's modules under this package's name, and this package in asyncpg's place.

A module that this package does not have is asyncpg's own, the same object under two names. Where a program puts this
package into ``sys.modules["asyncpg"]``, what it then imports from there is found as before.
"""

import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

import asyncpg

_THEIRS = "asyncpg"
_OURS = __package__ or ""


def install() -> None:
    """Have the import system ask here first: it would load a second copy of a module of one of asyncpg's packages."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Finder:
    """Finds modules of both packages; everything else is left to others."""

    @staticmethod
    def find_spec(
        fullname: str, path: Sequence[str] | None = None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package = fullname.rpartition(".")[0]
        if f"{package}.".startswith(f"{_OURS}."):
            if package == _OURS and PathFinder.find_spec(fullname, path) is not None:
                return None
            original = f"{_THEIRS}{fullname.removeprefix(_OURS)}"
            return ModuleSpec(fullname, _Alias(original)) if importlib.util.find_spec(original) is not None else None
        if package == _THEIRS and sys.modules[_THEIRS] is sys.modules[_OURS]:
            return PathFinder.find_spec(fullname, asyncpg.__path__)
        return None


class _Alias(Loader):
    """Loads a module under another name."""

    def __init__(self, original: str) -> None:
        self._original = original

    @staticmethod
    def create_module(_spec: ModuleSpec) -> None:
        """Have an empty one made, which is then replaced."""

    def exec_module(self, module: ModuleType) -> None:
        sys.modules[module.__name__] = importlib.import_module(self._original)
