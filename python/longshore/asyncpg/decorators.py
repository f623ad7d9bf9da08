"""Decorators that leave a method its own types, which asyncpg's and functools' do not."""

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from asyncpg import connresource

__all__ = ["guarded", "of"]

F = TypeVar("F", bound=Callable[..., Any])


def of(original: Callable[..., Any]) -> Callable[[F], F]:
    """Give a method the name and the documentation of asyncpg's, and its signature for who asks at run time."""

    def named(method: F) -> F:
        functools.update_wrapper(method, original)
        return method

    return named


def guarded(method: F) -> F:
    """Have a method refuse once its connection is back in the pool, as asyncpg's own do."""
    checked: F = connresource.guarded(method)
    return checked
