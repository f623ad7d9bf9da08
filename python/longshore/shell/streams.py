"""The process's standard streams and arguments, as the commands rely on them: there, and UTF-8."""

import codecs
import contextlib
import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path

__all__ = ["decoded", "named", "path", "prepare"]

_ENCODING = "utf-8"


def prepare() -> None:
    """Open what is closed, save standard output, and have text written as UTF-8 where the locale has ASCII alone."""
    # Their numbers must not go to a file of a database, into which a library would write its messages.
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding=_ENCODING)  # noqa: PTH123, SIM115  it lives as long as the process
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding=_ENCODING)  # noqa: PTH123, SIM115  likewise
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and codecs.lookup(stream.encoding).name == "ascii":
            stream.reconfigure(encoding=_ENCODING, errors="surrogateescape")


def decoded(argument: str) -> str:
    """Give an argument as UTF-8, where the locale knows ASCII alone; bytes that are not UTF-8 stay surrogates."""
    return os.fsencode(argument).decode(_ENCODING, "surrogateescape") if _has_surrogates(argument) else argument


def path(text: str) -> Path:
    """Give the path that an argument names, in the form that this locale's files are opened by."""
    return Path(os.fsdecode(text.encode(_ENCODING, "surrogateescape")))


@contextlib.contextmanager
def named(name: str) -> Iterator[None]:
    """Have an ``OSError`` of the block, which writes a file, name it."""
    try:
        yield
    except OSError as error:
        # Those of a database have no number.
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, name) from error


def _has_surrogates(text: str) -> bool:
    return any("\udc80" <= character <= "\udcff" for character in text)
