"""Work that does not hear Ctrl-C by itself."""

import concurrent.futures
import threading
from collections.abc import Callable
from typing import TypeVar

__all__ = ["interruptible"]

T = TypeVar("T")

#: Seconds between two looks, and between two requests to stop: one that comes before the work begins is lost.
_SLICE = 0.05


def interruptible(work: Callable[[], T], cancel: Callable[[], None]) -> T:
    """Do the work on a thread, and give what it gives; Ctrl-C calls ``cancel`` until it has ended."""
    if threading.current_thread() is not threading.main_thread():
        return work()
    outcome: concurrent.futures.Future[T] = concurrent.futures.Future()

    def run() -> None:
        try:
            outcome.set_result(work())
        except BaseException as error:  # noqa: BLE001  whatever it is, it is raised where the work is awaited
            outcome.set_exception(error)

    thread = threading.Thread(target=run, name="longshore-sql")
    thread.start()
    try:
        while not outcome.done():
            concurrent.futures.wait([outcome], timeout=_SLICE)
    except BaseException:
        while thread.is_alive():
            cancel()
            thread.join(_SLICE)
        raise
    thread.join()
    return outcome.result()
