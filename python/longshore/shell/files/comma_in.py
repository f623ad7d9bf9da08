"""CSV as columns of text: a heading, and NULL where a field is empty and has no quotes."""

import contextlib
import csv
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.csv as pc

import longshore
from longshore.errors import DataError
from longshore.shell.files.guess import Guess
from longshore.shell.files.source import Source
from longshore.shell.files.typed import Texts
from longshore.warning import warn

__all__ = ["csv_texts"]

#: A row must not be longer.
_BLOCK = 16 << 20
_DELIMITERS = {";": ";", "\t": r"\t", "|": "|", ",": ","}


def csv_texts(source: Source, delimiter: str) -> Texts:
    """Look through a file; raises ``DataError`` for a heading that names no columns."""
    names = _heading(source, delimiter)
    _check_quotes(source)
    texts = Texts({name: Guess() for name in names}, lambda: _read(source, delimiter, names))
    for batch in texts.read():
        for name, array in zip(names, batch.columns, strict=True):
            texts.guesses[name].look(array)
    return texts


def _heading(source: Source, delimiter: str) -> list[str]:
    with source.text(newline="") as file:
        try:
            names = next(csv.reader(file, delimiter=delimiter, strict=True), [])
        except csv.Error as error:
            message = f"the heading of the csv file cannot be read: {error}"
            raise DataError(message) from error
    if not names:
        message = "the csv file has no heading: its first line names the columns"
        raise DataError(message)
    for name in names:
        if names.count(name) > 1:
            message = f'two columns of the csv file are called "{name}"'
            raise DataError(message, column=name)
    if len(names) == 1:
        _look_for_delimiters(source, names[0], delimiter)
    return names


def _look_for_delimiters(source: Source, name: str, delimiter: str) -> None:
    """Warn of a single column whose name holds what others put between two."""
    found = next((written for mark, written in _DELIMITERS.items() if mark != delimiter and mark in name), None)
    if found is not None:
        message = f"{source.name} is read as one column, {name!r}: is it --delimiter '{found}'?"
        warn(message, longshore.Warning)


def _check_quotes(source: Source) -> None:
    """Raise ``DataError`` for a file that ends within quotes: pyarrow takes it for whole, and it has been cut."""
    count = 0
    with source.bytes() as file:
        while piece := file.read(_BLOCK):
            count += piece.count(b'"')
    if count % 2:
        message = "a quote of the csv file is not closed: it has been cut, or a quote within a field is not doubled"
        raise DataError(message)


def _read(source: Source, delimiter: str, names: list[str]) -> Iterator[pa.RecordBatch]:
    with _located(source, delimiter, len(names)), source.bytes() as file:
        reader = pc.open_csv(
            file,
            # The heading may have lines within quotes, which skip_rows would take for rows.
            read_options=pc.ReadOptions(block_size=_BLOCK, use_threads=False),
            # An empty line is a row of one NULL, where there is one column.
            parse_options=pc.ParseOptions(
                delimiter=delimiter, newlines_in_values=True, ignore_empty_lines=len(names) > 1
            ),
            convert_options=pc.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
        if reader.schema != pa.schema([(name, pa.string()) for name in names]):
            found = reader.schema.names
            message = f"the heading of the csv file can be read as {names} and as {found}: quote its names"
            raise DataError(message)
        with reader:
            yield from reader


@contextlib.contextmanager
def _located(source: Source, delimiter: str, width: int) -> Iterator[None]:
    """Have an error of pyarrow's, which counts rows of a block at most, name the line."""
    try:
        yield
    except pa.ArrowInvalid as error:
        with source.text(newline="") as file, contextlib.suppress(csv.Error):
            # A byte that is not UTF-8 ends it as well, with an error that names its line.
            rows = csv.reader(file, delimiter=delimiter)
            first = 1
            for row in rows:
                if row and len(row) != width:
                    problem = f"line {first}: expected {width} fields, as the heading has, and found {len(row)}"
                    raise source.unreadable(problem) from error
                first = rows.line_num + 1
        raise
