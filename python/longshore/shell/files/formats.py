"""The formats of files, and how a name tells which."""

from enum import StrEnum
from pathlib import PurePath

from longshore.errors import InterfaceError
from longshore.shell.files.sink import STANDARD

__all__ = ["Format", "format_of"]


class Format(StrEnum):
    """How rows are laid out in a file."""

    PARQUET = "parquet"
    CSV = "csv"
    ARROW = "arrow"
    ARROWS = "arrows"
    JSON = "json"


_SUFFIXES = {
    ".parquet": Format.PARQUET,
    ".pq": Format.PARQUET,
    ".csv": Format.CSV,
    ".arrow": Format.ARROW,
    ".feather": Format.ARROW,
    ".ipc": Format.ARROW,
    ".arrows": Format.ARROWS,
    ".json": Format.JSON,
    ".jsonl": Format.JSON,
    ".ndjson": Format.JSON,
}


def format_of(path: str, given: Format | None) -> Format:
    """Give the format of a file: the one given, or that of its name; of standard input and output it is CSV.

    >>> format_of("out.pq", None).value, format_of("-", None).value
    ('parquet', 'csv')

    Raises ``InterfaceError`` for a name that tells none.
    """
    if given is not None:
        return given
    if path == STANDARD:
        return Format.CSV
    suffix = PurePath(path).suffix.lower()
    if suffix in _SUFFIXES:
        return _SUFFIXES[suffix]
    message = f"the name {path!r} tells no format: end it in one of {', '.join(_SUFFIXES)}, or give --format"
    raise InterfaceError(message)
