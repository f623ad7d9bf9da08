"""Reports of a read's progress."""

import contextlib
from collections.abc import Callable, Iterator

from longshore.errors import InterfaceError

__all__ = ["reporter"]

Report = Callable[[int], object]


@contextlib.contextmanager
def reporter(progress: object) -> Iterator[Report | None]:
    """Give what is called with the rows so far: nothing, a bar on the terminal, or the caller's callable.

    Raises ``InterfaceError`` for anything else, and ``ImportError`` where the bar's library is missing.
    """
    if progress is None or progress is False:
        yield None
    elif callable(progress):
        yield progress
    elif progress is True:
        with _bar() as report:
            yield report
    else:
        message = f"progress is True, False or a callable, not {progress!r}"
        raise InterfaceError(message)


@contextlib.contextmanager
def _bar() -> Iterator[Report]:
    try:
        from rich.console import Console
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
    except ImportError as error:
        message = "progress=True needs rich: pip install 'longshore[progress]'"
        raise ImportError(message, name="rich") from error
    columns = (SpinnerColumn(), TextColumn("{task.completed:,} rows"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("read", total=None)
        yield lambda rows: bar.update(task, completed=rows)
