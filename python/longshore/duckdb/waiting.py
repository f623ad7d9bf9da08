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
from longshore.warning import copy_context

if TYPE_CHECKING:
    from types import FrameType

T = TypeVar("T")

#: The tasks that run, or are about to.
running_tasks: "set[Task[Any]]" = set()

#: Set with the end of the process: from then on there is the main thread, and daemon threads that end with it.
_is_ending = threading.Event()

#: Seconds between two requests to stop: one before the work begins is lost.
_INTERVAL = 0.02

#: Seconds that the caller waits for stopped work to end.
_STOP_SECONDS = 0.25


class Task(Generic[T]):
    """Work on a thread that the caller waits for."""

    def __init__(self, work: Callable[[], T], cancel: Callable[[], object]) -> None:
        """Take the work, and what stops it from any thread."""
        self._work: Callable[[], T] | None = work
        self.cancel = cancel
        self._results: list[T] = []
        self._error: BaseException | None = None
        self._after: list[Callable[[], object]] = []
        self._lock = threading.Lock()
        self.has_begun = False
        #: The thread that does the work, once it has begun.
        self.thread = 0
        self._is_over = False
        #: Held until the end: a wait for a lock is one call, which a handler's exception ends.
        self._running = threading.Lock()
        self._running.acquire()

    def run(self) -> T:
        """Do the work and return its result; an exception of a signal's handler stops it, and is raised."""
        try:
            if _is_daemon():
                # Before the end is looked at, which waits for it from now on.
                running_tasks.add(self)
                if _is_ending.is_set():
                    # The engine would abort a process whose interpreter ends within a call.
                    running_tasks.discard(self)
                    threading.Event().wait()
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
        """Do something when the task's own work has ended, which may be now; what has not begun never does."""
        # Ctrl-C may have come before it ran.
        self._forgo()
        with self._lock:
            if not self._is_over:
                self._after.append(work)
                return
        work()

    def _wait(self, thread: "ref[partial[object]]") -> None:
        # The system may tell another thread of a signal, which then does not end this one's wait.
        while not self._running.acquire(timeout=_INTERVAL):
            if thread() is None and not self.has_begun:
                raise MemoryError("the thread had no memory to begin")

    def _do(self) -> None:
        with self._lock:
            work, self._work = self._work, None
        if work is None:
            return
        self.has_begun, self.thread = True, threading.get_ident()
        running_tasks.add(self)
        try:
            self._results.append(work())
        except BaseException as error:  # noqa: BLE001  whatever it is, it is raised where the work is waited for
            self._error = error
        del work
        try:
            self._end()
        finally:
            running_tasks.discard(self)
            self._running.release()

    def _end(self) -> None:
        with self._lock:
            self._is_over = True
        while self._after:
            _core.with_reserve(self._after.pop())

    def _forgo(self) -> bool:
        """See that work that has not begun never does, and tell whether there was some."""
        with self._lock:
            work, self._work = self._work, None
        if work is None:
            return False
        running_tasks.discard(self)
        self._end()
        return True

    def _stop(self) -> None:
        if self._forgo():
            return
        try:
            self._stop_for(_STOP_SECONDS)
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
            self._running.acquire(timeout=_INTERVAL)


def run_on_thread(work: Callable[[], T]) -> T:
    """Do short work that cannot be stopped on a thread, or here without memory for one."""
    task = Task(work, lambda: None)
    try:
        return task.run()
    except MemoryError:
        if task.has_begun:
            raise
        return work()


@contextlib.contextmanager
def defer_interrupts() -> Iterator[None]:
    """Defer Ctrl-C until the block has ended."""
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    deferred: list[FrameType | None] = []
    signal.signal(signal.SIGINT, lambda _number, frame: deferred.append(frame))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if deferred:
            handler(signal.SIGINT, deferred[0])


def _begin(work: Callable[[], object]) -> "ref[partial[object]]":
    """Start work on a thread, and give a reference to what the thread holds until its end.

    A ``threading.Thread`` cannot be started where a signal's handler may raise.
    """
    run: partial[object] = partial(copy_context().run, work)
    thread = ref(run)
    # The engine ends a process that has less.
    _core.check_available_for_thread()
    try:
        _thread.start_new_thread(_core.with_reserve, (run,))
    except RuntimeError:
        # An interpreter that ends does not start threads.
        work()
    return thread


def _is_daemon() -> bool:
    """Whether this is a daemon thread, if the process ends: there are those, tasks' and the main one then."""
    is_of_task = any(task.thread == threading.get_ident() for task in running_tasks.copy())
    return not is_of_task and threading.current_thread() is not threading.main_thread()


def finish() -> None:
    """Stop all tasks, of daemon threads too, and wait for them: the interpreter would end within one."""
    _is_ending.set()
    while running_tasks:
        for task in running_tasks.copy():
            # Its end may have closed the connection.
            with contextlib.suppress(Exception):
                task.cancel()
        time.sleep(_INTERVAL)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=running_tasks.clear)


class CancelScope:
    """The callables that stop the parts of one query, from any thread."""

    def __init__(self) -> None:
        """Start without parts."""
        self._cancels: list[Callable[[], object]] = []

    def cancel(self) -> None:
        """Stop all parts; called repeatedly, so that later ones are stopped as well."""
        for cancel in [*self._cancels]:
            cancel()

    def run(self, work: Callable[[], T]) -> T:
        """Do the work, whose parts call ``register_cancel``."""
        token = _current.set(self)
        try:
            return work()
        finally:
            _current.reset(token)

    def add(self, cancel: Callable[[], object]) -> None:
        """Add a part."""
        self._cancels.append(cancel)


_current: ContextVar[CancelScope | None] = ContextVar("longshore_cancel_scope", default=None)


def register_cancel(cancel: Callable[[], object]) -> None:
    """Add what stops a part of the query to the current scope, if there is one."""
    if (scope := _current.get()) is not None:
        scope.add(cancel)
