"""Reports of a read's progress: to a callable, or as a bar."""

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from longshore.errors import InterfaceError
from longshore.texts import display

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

# One is for the end: what is nearly all is not all.
_NEARLY = 0.99


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a read has come.

    >>> half = Progress(rows=500, bytes=8000, seconds=2.0, expected_rows=1000)
    >>> half.rows_per_second, half.fraction, half.remaining_seconds
    (250.0, 0.5, 2.0)
    """

    rows: int
    """The rows decoded so far."""
    bytes: int
    """The bytes of these rows, as they came from the server."""
    seconds: float
    """The seconds since the read began, connecting included."""
    expected_rows: int | None = None
    """The rows that the source estimates, or None where it has no estimate. At the end: the rows that came."""
    ended: bool = False
    """Whether this is the last report, of the whole result."""

    @property
    def rows_per_second(self) -> float | None:
        """The rows for each second so far; None where no time has passed."""
        return self.rows / self.seconds if self.seconds > 0 else None

    @property
    def fraction(self) -> float | None:
        """The part that has come, from 0 to 1; None where the source has no estimate. It is 1 at the end only."""
        if self.ended:
            return 1.0
        return None if self.expected_rows is None else min(self.rows / max(self.expected_rows, 1), _NEARLY)

    @property
    def remaining_seconds(self) -> float | None:
        """The seconds that are left at the rate so far; None where that is unknown, or the estimate was too low."""
        if self.ended:
            return 0.0
        if self.expected_rows is None or not 0 < self.rows < self.expected_rows:
            return None
        return self.seconds * (self.expected_rows - self.rows) / self.rows


class Reporter:
    """The callable that makes ``Progress`` of the core's figures and has it shown."""

    def __init__(self, show: Callable[[Progress], object]) -> None:
        """Begin to count the seconds."""
        self._show = show
        self._began = time.monotonic()

    def __call__(self, rows: int, size: int, expected: int | None, ended: bool, /) -> None:  # noqa: FBT001  the core's
        """Show the figures."""
        seconds = time.monotonic() - self._began
        self._show(Progress(rows, size, seconds, rows if ended else expected, ended))

    def close(self) -> None:
        """Show no more."""


def reporter(progress: object) -> Reporter | None:
    """Give what the core reports to: nothing, the caller's callable, or a bar where somebody can see it.

    Raises ``InterfaceError`` for anything else, and ``ImportError`` where the bar's library is missing.
    """
    if progress is None or progress is False:
        return None
    if callable(progress):
        return Reporter(progress)
    if progress is True:
        return bar()
    raise InterfaceError(f"progress is True, False or a callable, not {display(progress)}")


@contextlib.contextmanager
def reporting(progress: object) -> Iterator[Reporter | None]:
    """Give what the core reports to for as long as the block runs; raises as ``reporter`` does."""
    report = reporter(progress)
    try:
        yield report
    finally:
        if report is not None:
            report.close()


def bar() -> "Bar | None":
    """Give a bar where somebody can see it; raises ``ImportError`` where its library is missing."""
    try:
        from rich.console import Console
        from rich.progress import BarColumn, SpinnerColumn, TextColumn
        from rich.progress import Progress as RichProgress
    except ImportError as error:
        raise ImportError("progress=True needs rich: pip install 'longshore[progress]'", name="rich") from error
    console = Console(stderr=True)
    if not (console.is_interactive or console.is_jupyter):
        return None
    columns = (SpinnerColumn(), TextColumn("{task.fields[come]}"), BarColumn(), TextColumn("{task.fields[left]}"))
    # Nothing of the process is changed, and no thread is started: the core reports often enough.
    return Bar(
        RichProgress(*columns, console=console, auto_refresh=False, redirect_stdout=False, redirect_stderr=False)
    )


class Bar(Reporter):
    """A bar of rich's, from the first report to the last, or until no one reports any more."""

    def __init__(self, drawn: "RichProgress") -> None:
        """Draw nothing yet."""
        super().__init__(self.show)
        self._bar = drawn
        self._is_shown = False
        self._task = drawn.add_task("read", total=None, come="", left="")

    def show(self, progress: Progress) -> None:
        """Draw how far it has come."""
        if not self._is_shown:
            self._bar.start()
            self._is_shown = True
        fraction = progress.fraction
        total = None if fraction is None else 1.0
        self._bar.update(
            self._task, completed=fraction or 0.0, total=total, come=_amount(progress), left=_rest(progress)
        )
        self._bar.refresh()
        if progress.ended:
            self.close()

    def close(self) -> None:
        """Leave the bar as it is."""
        if self._is_shown:
            self._bar.stop()
            self._is_shown = False

    def __del__(self) -> None:
        """Leave no terminal without its cursor."""
        self.close()


def _amount(progress: Progress) -> str:
    """Tell what has come.

    >>> _amount(Progress(rows=1_500_000, bytes=42_000_000, seconds=2.0))
    '1,500,000 rows, 42.0 MB, 750,000 rows/s'
    """
    rate = progress.rows_per_second or 0
    return f"{progress.rows:,} rows, {progress.bytes / 1e6:,.1f} MB, {rate:,.0f} rows/s"


def _rest(progress: Progress) -> str:
    """Tell what is left, or at the end how long it took.

    >>> _rest(Progress(rows=250, bytes=0, seconds=20.0, expected_rows=1000))
    '25 %, 1:00 left'
    """
    if progress.ended:
        return _duration(progress.seconds)
    percent = "" if progress.fraction is None else f"{progress.fraction:.0%}".replace("%", " %")
    remaining = progress.remaining_seconds
    return percent if remaining is None else f"{percent}, {_duration(remaining)} left"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
