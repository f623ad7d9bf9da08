"""Work that does not hear Ctrl-C by itself, or badly."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from types import FrameType

__all__ = ["awaited", "begun", "interruptible", "undisturbed"]

T = TypeVar("T")

#: Seconds between two looks, and between two requests to stop: one that comes before the work begins is lost.
_SLICE = 0.05


def interruptible(work: Callable[[], T], cancel: Callable[[], None]) -> T:
    """Do the work on a thread, and give what it gives; Ctrl-C calls ``cancel`` until it has ended."""
    if threading.current_thread() is not threading.main_thread():
        return work()
    outcome = begun(work)
    try:
        return awaited(outcome)
    except BaseException:
        while not outcome.done():
            cancel()
            _look(outcome)
        raise
    finally:
        del outcome


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Have Ctrl-C wait for what is done here: within DuckDB its exception is lost, another's, or the process's end."""
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    heard: list[FrameType | None] = []
    signal.signal(signal.SIGINT, lambda _number, frame: heard.append(frame))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if heard:
            handler(signal.SIGINT, heard[0])


def begun(work: Callable[[], T]) -> "Future[T]":
    """Have the work done on a thread."""
    outcome: Future[T] = Future()
    threading.Thread(target=_run, args=(work, outcome), name="longshore-sql").start()
    return outcome


def awaited(outcome: "Future[T]") -> T:
    """Give what the work gives; Ctrl-C is heard, and leaves the work to itself."""
    try:
        while not outcome.done():
            _look(outcome)
        return outcome.result()
    finally:
        # An exception has this frame, and the outcome has the exception.
        del outcome


def _look(outcome: "Future[T]") -> None:
    with contextlib.suppress(TimeoutError):
        outcome.exception(_SLICE)


def _run(work: Callable[[], T], outcome: "Future[T]") -> None:
    try:
        outcome.set_result(work())
    except BaseException as error:  # noqa: BLE001  whatever it is, it is raised where the work is awaited
        outcome.set_exception(error)
    finally:
        del work, outcome
