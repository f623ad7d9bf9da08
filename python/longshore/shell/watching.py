"""Progress on its way: shown as a bar where somebody sees it, and kept for the figures at the end."""

import contextlib
from collections.abc import Iterator

from longshore.progress import Progress, bar

__all__ = ["Watcher", "watching"]


class Watcher:
    """What a verb is given as ``progress``."""

    def __init__(self, *, shown: bool) -> None:
        """Begin, with a bar if it is to be shown and standard error is a terminal."""
        self.bytes: int | None = None
        self._bar = bar() if shown else None

    def __call__(self, progress: Progress) -> None:
        """Take a report."""
        self.bytes = progress.bytes
        if self._bar is not None:
            self._bar.show(progress)

    def close(self) -> None:
        """Leave the bar as it is."""
        if self._bar is not None:
            self._bar.close()


@contextlib.contextmanager
def watching(*, shown: bool) -> Iterator[Watcher]:
    """Give a watcher for as long as the block runs."""
    watcher = Watcher(shown=shown)
    try:
        yield watcher
    finally:
        watcher.close()
