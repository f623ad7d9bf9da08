"""asyncpg's pool, of connections that know dtypes."""

import functools
import inspect
from typing import Any

from asyncpg import pool as theirs

from longshore.asyncpg.connection import Connection

__all__ = ["Pool", "create_pool"]

_SIGNATURE = inspect.signature(theirs.create_pool)


class Pool(theirs.Pool):
    """A pool of asyncpg's."""

    __slots__ = ()


@functools.wraps(theirs.create_pool)
def create_pool(*arguments: Any, **options: Any) -> Pool:
    """Make a pool as ``asyncpg.create_pool`` does, with the same arguments."""
    options.setdefault("connection_class", Connection)
    bound = _SIGNATURE.bind(*arguments, **options)
    bound.apply_defaults()
    return Pool(*bound.args, **bound.kwargs)
