"""asyncpg whose ``fetch`` can give NumPy arrays: ``import longshore.asyncpg as asyncpg``.

Everything of asyncpg is here under its name, and does what it does there. ``set_query_dtype`` is new.
"""

from typing import Any

try:
    import asyncpg
except ImportError as error:
    from longshore.frames import missing

    raise missing(library="asyncpg", extra="asyncpg", purpose="longshore.asyncpg") from error

from longshore.asyncpg import aliases
from longshore.asyncpg.connection import Connection, connect
from longshore.asyncpg.dtypes import DTypeError, Query, set_query_dtype
from longshore.asyncpg.pool import Pool, create_pool

__all__ = ["Connection", "DTypeError", "Pool", "Query", "connect", "create_pool", "set_query_dtype"]
__all__ += [name for name in asyncpg.__all__ if name not in __all__]

aliases.install()


def __getattr__(name: str) -> Any:
    return getattr(asyncpg, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *dir(asyncpg)})
