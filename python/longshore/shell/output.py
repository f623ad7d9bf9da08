"""The standard streams: results and tables on standard output, everything else on standard error."""

import codecs
import contextlib
import io
import json
import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import longshore
from longshore.progress import Progress, bar
from longshore.shell.errors import ClosedPipeError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_ENCODING = "utf-8"


def prepare_streams() -> None:
    """Open closed streams, but for standard output, and encode text as UTF-8 where the locale is ASCII."""
    # Their descriptors must not be a database file's, into which a library would write its messages.
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding=_ENCODING)  # noqa: PTH123, SIM115  it lives as long as the process
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding=_ENCODING)  # noqa: PTH123, SIM115  likewise
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and codecs.lookup(stream.encoding).name == "ascii":
            stream.reconfigure(encoding=_ENCODING, errors="surrogateescape")


def decode_argument(argument: str) -> str:
    """Return an argument as UTF-8, where the locale is ASCII; bytes that are not UTF-8 stay surrogates."""
    has_surrogates = any("\udc80" <= character <= "\udcff" for character in argument)
    return os.fsencode(argument).decode(_ENCODING, "surrogateescape") if has_surrogates else argument


def file_path(text: str) -> Path:
    """Return the path that an argument names, in the form that this locale's files are opened by."""
    return Path(os.fsdecode(text.encode(_ENCODING, "surrogateescape")))


@contextlib.contextmanager
def naming_file(name: str) -> Iterator[None]:
    """Name the file in an ``OSError`` of the block that writes it."""
    try:
        yield
    except OSError as error:
        # Those of a database have no number.
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, name) from error


def write_output(text: str) -> None:
    """Write a line to standard output."""
    with naming_file("standard output"):
        try:
            sys.stdout.write(f"{text}\n")
            sys.stdout.flush()
        except BrokenPipeError as error:
            raise ClosedPipeError from error


def write_error(text: str) -> None:
    """Write a line to standard error, if it can be written."""
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


def report(figures: dict[str, Any], sentence: str, *, as_json: bool, aside: bool = False) -> None:
    """Write what was done; ``aside``, to standard error, where standard output has the data."""
    write = write_error if aside else write_output
    write(json.dumps(figures, ensure_ascii=False) if as_json else sentence)


@contextlib.contextmanager
def collect_warnings(*, as_json: bool) -> Iterator[list[str]]:
    """Collect Longshore's warnings in the block, into a list that is filled at its end; for people, write them."""
    texts: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", longshore.Warning)
        try:
            yield texts
        finally:
            # Other libraries' warnings are for programmers.
            ours = [warning for warning in caught if issubclass(warning.category, longshore.Warning)]
            texts += [f"{warning.category.__name__}: {warning.message}" for warning in ours]
            for warning in ours if not as_json else []:
                write_error(f"warning: {warning.message}")


def discard_output() -> None:
    """Redirect standard output, whose reader has gone, so that Python's own exit does not fail on it."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)


def row_count(count: int) -> str:
    """Return a number of rows as text.

    >>> row_count(1), row_count(1000)
    ('1 row', '1,000 rows')
    """
    return "1 row" if count == 1 else f"{count:,} rows"


def duration(seconds: float) -> str:
    """Return a duration as text.

    >>> duration(0.1234), duration(75.6)
    ('0.12 s', '75.60 s')
    """
    return f"{seconds:.2f} s"


#: The width where there is no terminal.
_UNLIMITED = 1 << 20


def _console() -> "Console":
    # ``longshore.shell`` tells where it is missing.
    from rich.console import Console

    console = Console(file=sys.stdout, highlight=False)
    if not console.is_terminal:
        console.width = _UNLIMITED
    return console


def print_texts(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Write a table of plain texts to standard output."""
    # It takes a while to import, and a command that writes a file has no table.
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(*headings, box=box.SIMPLE_HEAD)
    for row in rows:
        table.add_row(*map(Text, row))
    print_table(table)


def print_table(table: "Table", *, below: str | None = None) -> None:
    """Write a table to standard output, as wide as it is, or as the terminal; and a line below it."""
    console = _console()
    # rich would end the process where the reader has gone.
    with naming_file("standard output"), console.capture() as drawn:
        console.print(table)
    write_output(drawn.get() + (f" {below}" if below is not None else ""))


def terminal_width() -> int:
    """Return the columns of the terminal that standard output is, or very many."""
    return _console().width


def printable(text: str) -> str:
    r"""Return a text in one line, which can do nothing to the terminal.

    >>> printable("a\x1b[2Jb\n")
    'a\\x1b[2Jb\\n'
    """
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in text
    )


class ProgressListener(contextlib.AbstractContextManager["ProgressListener"]):
    """The listener to a verb's progress: it draws a bar, and keeps the bytes that were read."""

    def __init__(self, *, shown: bool) -> None:
        """Draw a bar if it is to be shown and standard error is a terminal."""
        self.bytes: int | None = None
        self._bar = bar() if shown and sys.stderr.isatty() else None

    def __call__(self, progress: Progress) -> None:
        """Take a report."""
        self.bytes = progress.bytes
        if self._bar is not None:
            self._bar.show(progress)

    def __exit__(self, *_exception: object) -> None:
        """Leave the bar as it is."""
        if self._bar is not None:
            self._bar.close()
