"""Work with the engine, on a thread of Python's own, and what cancels it.

On the main thread any signal's handler may run, and raise: within DuckDB and pyarrow its exception is lost, becomes a
text of another one, or ends the process. So the main thread waits, where a handler's exception is raised as it is, and
the work is stopped.
"""

import _thread
import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from weakref import ref

from longshore import _core
from longshore.warning import inherited

if TYPE_CHECKING:
    from types import FrameType

__all__ = ["Stops", "Task", "apart", "finish", "left", "stopped_by", "undisturbed"]

T = TypeVar("T")

#: The tasks that run.
left: "set[Task[Any]]" = set()

#: Seconds between two requests to stop: one that comes before the work begins is lost.
_SLICE = 0.02

#: Seconds that work has to stop in, before it is left to itself.
_MOST = 0.25


class Task(Generic[T]):
    """Work that the caller waits for."""

    def __init__(self, work: Callable[[], T], cancel: Callable[[], object]) -> None:
        """Keep the work, and what stops it from any thread."""
        self._work: Callable[[], T] | None = work
        self.cancel = cancel
        self._results: list[T] = []
        self._error: BaseException | None = None
        self._after: list[Callable[[], object]] = []
        self._lock = threading.Lock()
        self.has_begun = False
        self._is_over = False
        #: Held until it is over: a wait for a lock is one call, which a handler's exception ends.
        self._running = threading.Lock()
        self._running.acquire()

    def run(self) -> T:
        """Do the work, and give what it gives; an exception of a signal's handler stops it, and is raised."""
        try:
            self._wait(_begin(self._do))
        except BaseException:
            self._stop()
            raise
        try:
            if self._error is not None:
                raise self._error
            return self._results.pop()
        finally:
            # The exception has this frame.
            self._error = None

    def after(self, work: Callable[[], object]) -> None:
        """Do something else when the work has ended: at once if it has."""
        with self._lock:
            if not self._is_over:
                self._after.append(work)
                return
        work()

    def _wait(self, begun: "ref[partial[object]]") -> None:
        # The system may tell another thread of a signal, which then does not end this one's wait.
        while not self._running.acquire(timeout=_SLICE):
            if begun() is None and not self.has_begun:
                message = "the thread had no memory to begin"
                raise MemoryError(message)

    def _do(self) -> None:
        with self._lock:
            work, self._work = self._work, None
        if work is None:
            return
        self.has_begun = True
        left.add(self)
        try:
            self._results.append(work())
        except BaseException as error:  # noqa: BLE001  whatever it is, it is raised where the work is waited for
            self._error = error
        del work
        try:
            self._end()
        finally:
            left.discard(self)
            self._running.release()

    def _end(self) -> None:
        with self._lock:
            self._is_over = True
        while self._after:
            _core.with_reserve(self._after.pop())

    def _stop(self) -> None:
        with self._lock:
            work, self._work = self._work, None
        if work is not None:
            # It has not begun, and never will.
            self._end()
            return
        try:
            self._stop_for(_MOST)
        finally:
            if not self._is_over:
                self._stop_later()

    def _stop_later(self) -> None:
        with contextlib.suppress(MemoryError):
            _begin(partial(self._stop_for, float("inf")))
            return
        self._stop_for(float("inf"))

    def _stop_for(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while not self._is_over and time.monotonic() < end:
            self.cancel()
            self._running.acquire(timeout=_SLICE)


def apart(work: Callable[[], T]) -> T:
    """Do work that is short, and cannot be stopped; without memory for a thread it is done here."""
    task = Task(work, lambda: None)
    try:
        return task.run()
    except MemoryError:
        if task.has_begun:
            raise
        return work()


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Have Ctrl-C wait for what is done here."""
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


def _begin(work: Callable[[], object]) -> "ref[partial[object]]":
    """Have work done on a thread, and give a reference to what the thread keeps until it ends.

    One of ``threading`` cannot be started where a signal's handler may raise.
    """
    run: partial[object] = partial(inherited().run, work)
    begun = ref(run)
    # The engine ends a process that has less.
    _core.room_for_thread()
    try:
        _thread.start_new_thread(_core.with_reserve, (run,))
    except RuntimeError:
        # An interpreter that ends begins no more threads.
        work()
    return begun


def finish() -> None:
    """Stop what still runs, of daemon threads too, and wait for its end: the interpreter would end within it."""
    while left:
        for task in left.copy():
            task.cancel()
        time.sleep(_SLICE)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=left.clear)


class Stops:
    """The parts of one query that can be stopped from any thread."""

    def __init__(self) -> None:
        """Begin without any."""
        self._cancels: list[Callable[[], object]] = []

    def cancel(self) -> None:
        """Stop what there is; called again and again, since what begins later is stopped as well."""
        for cancel in [*self._cancels]:
            cancel()

    def run(self, work: Callable[[], T]) -> T:
        """Do the work, whose parts announce themselves by ``stopped_by``."""
        token = _current.set(self)
        try:
            return work()
        finally:
            _current.reset(token)

    def add(self, cancel: Callable[[], object]) -> None:
        """Add a part."""
        self._cancels.append(cancel)


_current: ContextVar[Stops | None] = ContextVar("longshore_stops", default=None)


def stopped_by(cancel: Callable[[], object]) -> None:
    """Announce what stops a part of the query, where somebody may want to."""
    if (stops := _current.get()) is not None:
        stops.add(cancel)
