"""Threads: one for the blocking work of an asyncio task, several for work in parts."""

import concurrent.futures
import contextlib
import contextvars
import functools
import os
import threading
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, cast

from longshore import _core
from longshore.errors import OperationalError
from longshore.foreign import refusing
from longshore.warning import copy_context

if TYPE_CHECKING:
    import asyncio

P = ParamSpec("P")
T = TypeVar("T")
U = TypeVar("U")

#: Seconds between two requests to stop.
_SLICE = 0.05


#: The cancel handle of the twin for asyncio that awaits the call of a verb.
_CANCEL_HANDLE: contextvars.ContextVar[_core.CancelHandle | None] = contextvars.ContextVar(
    "longshore_cancel_handle", default=None
)


def own_cancel_handle() -> _core.CancelHandle:
    """Give the cancel handle of the verb that asks: its twin's, else a new one. Calls within it have their own."""
    cancel_handle = _CANCEL_HANDLE.get()
    _CANCEL_HANDLE.set(None)
    return cancel_handle or _core.CancelHandle()


def twin(verb: Callable[P, T]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Give a verb for asyncio, with its arguments. A type checker needs it to have one argument, the verb."""

    async def run(*args: P.args, **keywords: P.kwargs) -> T:
        return await do_on_thread(lambda: verb(*args, **keywords))

    return refusing(getattr(verb, "foreign", {}), like=verb)(named_twin(verb, run))


def named_twin(verb: Callable[P, T], run: Callable[..., Any]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Give what runs a verb for asyncio the verb's name and signature."""
    run.__module__ = verb.__module__
    run.__name__ = run.__qualname__ = f"{verb.__name__}_async"
    run.__wrapped__ = verb  # type: ignore[attr-defined]
    return cast("Callable[P, Coroutine[Any, Any, T]]", run)


def async_method(method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """Give a method for asyncio that does on a thread what ``method`` does."""

    @functools.wraps(method)
    async def twin(self: Any, /, *args: P.args, **keywords: P.kwargs) -> T:
        return await do_on_thread(lambda: method(self, *args, **keywords))

    return twin


async def do_on_thread(work: Callable[[], T]) -> T:
    """Await ``work`` on a thread; when the task is cancelled, its cancel handle is called."""
    cancel_handle = _core.CancelHandle()

    def run() -> T:
        _CANCEL_HANDLE.set(cancel_handle)
        return work()

    return await on_a_thread(run, cancel_handle.cancel)


class _Own(threading.Thread):
    """The thread of one verb that is awaited."""


def is_own() -> bool:
    """Whether the caller's thread is not the one that the verb was called on."""
    return isinstance(threading.current_thread(), _Own)


def start(thread: threading.Thread) -> None:
    """Start a thread; raises ``MemoryLimitError``, or ``OperationalError`` where more are not allowed."""
    _core.check_available_for_thread()
    try:
        thread.start()
    except RuntimeError as error:
        hint = "raise the limit on the number of processes (ulimit -u, or pids.max of the container) or on memory"
        raise OperationalError("no thread can be started", hint=hint) from error


async def on_a_thread(work: Callable[[], T], cancel: Callable[[], None]) -> T:
    """Await ``work``, which runs on a new thread with the caller's context variables.

    When the task is cancelled, ``cancel`` is called, which has to end the work soon; ``CancelledError`` is raised when
    the thread has stopped. A new thread, since asyncio's own few would make reads wait for each other.
    """
    # Who awaits has it; no other needs the time of its import.
    import asyncio

    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()
    outcomes: list[concurrent.futures.Future[T]] = []
    begun = partial(copy_context().run, work)

    def run() -> None:
        outcomes.append(_outcome(begun))
        # A loop that is closed by force waits for no one.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(ended.set_result, None)

    start(_Own(target=run, name="longshore-read"))
    try:
        await asyncio.shield(ended)
    except asyncio.CancelledError:
        await _cancel_until_ended(ended, cancel)
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
    except BaseException as error:  # noqa: BLE001  whatever it is, it is raised where the work is waited for
        outcome.set_exception(error)
    return outcome


async def _cancel_until_ended(ended: "asyncio.Future[None]", cancel: Callable[[], None]) -> None:
    """Wait for the end, however often the task is cancelled meanwhile; what begins late is cancelled, too."""
    import asyncio

    while not ended.done():
        cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait([ended], timeout=_SLICE)


def map_threads(work: Callable[[T], U], items: Sequence[T], threads: int | None) -> list[U]:
    """Do the work for every item, on so many threads or one for each processor."""
    most = min(threads or os.cpu_count() or 1, len(items))
    if most <= 1:
        return [work(item) for item in items]
    with concurrent.futures.ThreadPoolExecutor(most, "longshore-frames") as pool:
        try:
            futures = [pool.submit(work, item) for item in items]
        except RuntimeError:
            # An interpreter that ends begins no more threads.
            return [work(item) for item in items]
        return [each.result() for each in futures]
