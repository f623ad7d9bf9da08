"""What a command says: results on standard output, everything else on standard error."""

import contextlib
import json
import os
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import longshore
from longshore.shell.failing import ClosedPipeError
from longshore.shell.streams import named

__all__ = ["clock", "finished", "rows_of", "say", "turn_off", "warned", "whisper"]


def say(text: str) -> None:
    """Write a line to standard output."""
    with named("standard output"):
        try:
            sys.stdout.write(f"{text}\n")
            sys.stdout.flush()
        except BrokenPipeError as error:
            raise ClosedPipeError from error


def whisper(text: str) -> None:
    """Write a line to standard error, where somebody can read it."""
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


def finished(figures: dict[str, Any], sentence: str, *, as_json: bool, aside: bool = False) -> None:
    """Tell what was done; ``aside`` where standard output has the data."""
    speak = whisper if aside else say
    speak(json.dumps(figures, ensure_ascii=False) if as_json else sentence)


@contextlib.contextmanager
def warned(*, as_json: bool) -> Iterator[list[str]]:
    """Give what Longshore warns of in the block, once it has ended; for people it is written to standard error."""
    gathered: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", longshore.Warning)
        try:
            yield gathered
        finally:
            # What other libraries warn of is for who writes programs.
            said = [warning for warning in caught if issubclass(warning.category, longshore.Warning)]
            gathered += [f"{warning.category.__name__}: {warning.message}" for warning in said]
            for warning in said if not as_json else []:
                whisper(f"warning: {warning.message}")


def turn_off() -> None:
    """Have nothing more written to standard output, whose reader has gone: not by Python's own end either."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def rows_of(count: int) -> str:
    """Give a number of rows for people.

    >>> rows_of(1), rows_of(1000)
    ('1 row', '1,000 rows')
    """
    return "1 row" if count == 1 else f"{count:,} rows"


def clock(seconds: float) -> str:
    """Give a time for people.

    >>> clock(0.1234), clock(75.6)
    ('0.12 s', '75.60 s')
    """
    return f"{seconds:.2f} s"
