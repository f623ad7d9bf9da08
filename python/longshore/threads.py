"""Blocking work of an asyncio task, on a thread of its own."""

import asyncio
import concurrent.futures
import contextlib
import contextvars
import threading
from collections.abc import Callable
from functools import partial
from typing import TypeVar

__all__ = ["on_a_thread"]

T = TypeVar("T")


async def on_a_thread(work: Callable[[], T], cancel: Callable[[], None]) -> T:
    """Await ``work``, which runs on a new thread with the caller's context variables.

    When the task is cancelled, ``cancel`` is called, which has to end the work soon; ``CancelledError`` is raised when
    the thread has stopped. A new thread, since asyncio's own few would make reads wait for each other.
    """
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()
    outcomes: list[concurrent.futures.Future[T]] = []
    inherited = partial(contextvars.copy_context().run, work)

    def run() -> None:
        outcomes.append(_outcome(inherited))
        # A loop that is closed by force waits for nobody.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(ended.set_result, None)

    threading.Thread(target=run, name="longshore-read").start()
    try:
        await asyncio.shield(ended)
    except asyncio.CancelledError:
        cancel()
        await _stubbornly(ended)
        raise
    except BaseException:
        # The coroutine is thrown away unfinished.
        cancel()
        raise
    # An exception knows this frame: the frame must not know the exception.
    return outcomes.pop().result()


def _outcome(work: Callable[[], T]) -> concurrent.futures.Future[T]:
    """Do the work, and keep what it returns or raises."""
    outcome: concurrent.futures.Future[T] = concurrent.futures.Future()
    try:
        outcome.set_result(work())
    except BaseException as error:  # noqa: BLE001  whatever it is, it is raised where the work is awaited
        outcome.set_exception(error)
    return outcome


async def _stubbornly(ended: asyncio.Future[None]) -> None:
    """Wait for the end, however often the task is cancelled meanwhile."""
    while not ended.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.shield(ended)
