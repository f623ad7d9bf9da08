"""Pools: sessions that reads take in turn."""

from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import NoReturn

from longshore import _core
from longshore.connection import unpicklable
from longshore.errors import InterfaceError
from longshore.foreign import CONNECT, refusing
from longshore.target import TargetLike, target
from longshore.texts import display
from longshore.threads import async_method

#: No server has more connections than that.
_MOST = 1 << 16


class Sessions:
    """The state that a pool has, whichever way its caller waits."""

    @refusing(CONNECT)
    def __init__(self, conn: TargetLike, *, size: int = 8) -> None:
        """Take a URL, a path, ``env:NAME`` or a dict of keywords, in which ``password`` may be a callable.

        Raises ``InterfaceError`` for what is none, and for a ``size`` that is not a number from 1.
        """
        if not isinstance(size, int) or isinstance(size, bool) or not 1 <= size <= _MOST:
            raise InterfaceError(f"size is a number of connections from 1 to {_MOST}, not {display(size)}")
        parts = target(conn)
        self._scheme = parts.scheme
        self.size = size
        self._core = _core.Pool(_core.Target(**parts._asdict()), size=size)

    def __repr__(self) -> str:
        """Show no more than the scheme and the numbers."""
        if "_core" not in vars(self):
            # A debugger shows it while, or after, its constructor fails.
            return f"<{type(self).__name__} not open>"
        numbers = f"{self.in_use} in use, {self.idle} idle, at most {self.size}"
        return f"<{type(self).__name__} {self._scheme}://*** {numbers}>"

    def __reduce__(self) -> NoReturn:
        """Refuse: the sessions belong to their process, and what opens them may hold a password."""
        raise unpicklable(self)

    @property
    def in_use(self) -> int:
        """How many sessions reads have, or may open."""
        return self._core.in_use

    @property
    def idle(self) -> int:
        """How many sessions are open and wait for a read."""
        return self._core.idle


class Pool(Sessions, AbstractContextManager["Pool"]):
    """At most ``size`` sessions, shared by any number of reads from any thread.

    Given to ``read_sql`` instead of a URL. A read waits until it can have all the sessions that it needs, in its turn
    and as long as its ``timeout`` lets it. A session is cleaned of what an earlier read left in it, and replaced where
    it no longer answers. None is opened before it is needed. A forked child begins with an empty pool.

    >>> import longshore
    >>> with longshore.Pool(url, size=2) as pool:
    ...     for _ in range(3):
    ...         frame = longshore.read_sql("SELECT 1 AS one", pool)
    ...     pool
    <Pool postgresql://*** 0 in use, 1 idle, at most 2>
    """

    def close(self) -> None:
        """Close the idle sessions; those in use are closed when their reads end. Closing twice is not an error."""
        self._core.close()

    def __exit__(self, *_exception: object) -> None:
        """Close it."""
        self.close()


class AsyncPool(Sessions, AbstractAsyncContextManager["AsyncPool"]):
    """A ``Pool`` for asyncio: given to the verbs that are awaited, and closed by ``async with``.

    >>> import asyncio, longshore
    >>> async def totals():
    ...     async with longshore.AsyncPool(url, size=2) as pool:
    ...         queries = [f"SELECT {number} AS n" for number in range(5)]
    ...         frames = await asyncio.gather(*(longshore.read_sql_async(query, pool) for query in queries))
    ...         return [int(frame["n"].sum()) for frame in frames]
    >>> asyncio.run(totals())
    [0, 1, 2, 3, 4]
    """

    close = async_method(Pool.close)

    async def __aexit__(self, *_exception: object) -> None:
        """Close it."""
        await self.close()
