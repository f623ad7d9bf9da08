"""Files of rows: their formats, and how a name tells which."""

from enum import StrEnum
from pathlib import PurePath
from typing import NamedTuple

from longshore.errors import InterfaceError


def needs_arrow() -> None:
    """Raise ``ImportError`` where pyarrow, which every file needs, is missing."""
    from longshore.frames import needing, require_version

    with needing(library="pyarrow", extra="arrow", purpose="this command"):
        import pyarrow as pa
    require_version("pyarrow", pa.__version__, (16, 0))


#: The name of standard input and of standard output.
STANDARD = "-"


class Format(StrEnum):
    """The format of a file of rows."""

    PARQUET = "parquet"
    CSV = "csv"
    ARROW = "arrow"
    ARROWS = "arrows"
    JSON = "json"


_SUFFIXES = {
    **dict.fromkeys([".parquet", ".pq"], Format.PARQUET),
    ".csv": Format.CSV,
    **dict.fromkeys([".arrow", ".feather", ".ipc"], Format.ARROW),
    ".arrows": Format.ARROWS,
    **dict.fromkeys([".json", ".jsonl", ".ndjson"], Format.JSON),
}
_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}
#: The characters that cannot be a delimiter.
_RESERVED = '"\r\n'


class FileLayout(NamedTuple):
    """The format of one file, and its options."""

    format: Format
    delimiter: str = ","
    """The text between two fields of CSV."""
    compression: str | None = None
    """Its name in pyarrow; None for formats other than CSV and JSON."""


def layout_of(path: str, form: Format | None, delimiter: str | None = None) -> FileLayout:
    r"""Return the layout of a file, by its name where ``form`` is None; standard input and output are CSV.

    >>> layout_of("out.pq", None).format.value, layout_of("-", None).format.value
    ('parquet', 'csv')
    >>> layout_of("out.csv.gz", None, r"\t")
    FileLayout(format=<Format.CSV: 'csv'>, delimiter='\t', compression='gzip')

    Raises ``InterfaceError`` for a name without a known ending, and for a combination that does not exist.
    """
    name = PurePath(path)
    compression = _COMPRESSIONS.get(name.suffix.lower())
    form = form or _format_of(name.with_suffix("") if compression is not None else name)
    if compression is not None and form not in {Format.CSV, Format.JSON}:
        raise InterfaceError(f"{path!r} is {form.value}, which compresses by itself: leave out {name.suffix}")
    if delimiter is None:
        return FileLayout(form, compression=compression)
    if form is not Format.CSV:
        raise InterfaceError(f"--delimiter is for csv, and {path!r} is {form.value}")
    return FileLayout(form, _delimiter(delimiter), compression)


def _format_of(name: PurePath) -> Format:
    if str(name) == STANDARD:
        return Format.CSV
    if (suffix := name.suffix.lower()) in _SUFFIXES:
        return _SUFFIXES[suffix]
    known = f"{', '.join(_SUFFIXES)}, of csv and json with {' or '.join(_COMPRESSIONS)} behind"
    raise InterfaceError(f"the name {str(name)!r} tells no format: end it in one of {known}, or give --format")


def _delimiter(text: str) -> str:
    r"""Return the one character; ``\t`` is a tab, which shells have no easy way to write."""
    mark = "\t" if text == "\\t" else text
    if len(mark) == 1 and mark.isascii() and mark not in _RESERVED:
        return mark
    message = rf"--delimiter is one ASCII character, such as ';' or '\t', and not a quote or a line's end: not {text!r}"
    raise InterfaceError(message)
