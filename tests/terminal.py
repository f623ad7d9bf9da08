"""A terminal of its own for a program's standard error."""

import os
import pty
import threading
from collections.abc import Callable


def seen_on_a_terminal(run: Callable[[int], None]) -> str:
    """Run a program whose standard error is the file descriptor that `run` is given; give what is seen there."""
    ours, theirs = pty.openpty()
    seen: list[bytes] = []

    def look() -> None:
        try:
            while piece := os.read(ours, 4096):
                seen.append(piece)
        except OSError:
            # Linux's way to say that the other end is closed.
            return

    thread = threading.Thread(target=look)
    thread.start()
    try:
        run(theirs)
    finally:
        os.close(theirs)
        thread.join()
        os.close(ours)
    return b"".join(seen).decode()
