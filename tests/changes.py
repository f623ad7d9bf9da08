"""Changes of a table that go on while it is read."""

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence

SECONDS = float(os.environ.get("LONGSHORE_SNAPSHOT_SECONDS", "1"))


@contextlib.contextmanager
def changing(
    session: contextlib.AbstractContextManager[Callable[[str], object]], changes: Sequence[str]
) -> Iterator[Callable[[int], bool]]:
    """Run `changes` over and over next to the block, which asks after each read whether there is time for more.

    `session` is entered on the thread that runs them, and gives what runs a statement.
    """
    deadline, stop = time.monotonic() + SECONDS, threading.Event()
    failures: list[BaseException] = []

    def change() -> None:
        try:
            with session as execute:
                while not stop.is_set():
                    for statement in changes:
                        execute(statement)
        except BaseException as failure:  # noqa: BLE001  it is told in the test's own thread
            failures.append(failure)

    thread = threading.Thread(target=change)
    thread.start()
    try:
        # Where the machine is busy, two take as long as they take.
        yield lambda reads: not failures and time.monotonic() < deadline + (60 if reads < 2 else 0)
    finally:
        stop.set()
        thread.join()
    if failures:
        raise failures[0]
