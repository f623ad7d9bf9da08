"""CSV as columns of text: a heading, and NULL where a field is empty and has no quotes."""

import csv
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pc

from longshore.errors import DataError
from longshore.shell.files.guess import Guess
from longshore.shell.files.typed import Texts

__all__ = ["csv_texts"]

#: A row must not be longer.
_BLOCK = 16 << 20


def csv_texts(place: Path) -> Texts:
    """Look through a file; raises ``DataError`` for a heading that names no columns."""
    names = _heading(place)
    _check_quotes(place)
    texts = Texts({name: Guess() for name in names}, lambda: _read(place, names))
    for batch in texts.read():
        for name, array in zip(names, batch.columns, strict=True):
            texts.guesses[name].look(array)
    return texts


def _heading(place: Path) -> list[str]:
    with place.open(encoding="utf-8-sig", newline="") as file:
        try:
            names = next(csv.reader(file, strict=True), [])
        except csv.Error as error:
            message = f"the heading of the csv file is none: {error}"
            raise DataError(message) from error
    if not names:
        message = "the csv file has no heading: its first line names the columns"
        raise DataError(message)
    for name in names:
        if names.count(name) > 1:
            message = f'two columns of the csv file are called "{name}"'
            raise DataError(message, column=name)
    return names


def _check_quotes(place: Path) -> None:
    """Raise ``DataError`` for a file that ends within quotes: pyarrow takes it for whole, and it has been cut."""
    count = 0
    with place.open("rb") as file:
        while piece := file.read(_BLOCK):
            count += piece.count(b'"')
    if count % 2:
        message = "a quote of the csv file is not closed: it has been cut, or a quote within a field is not doubled"
        raise DataError(message)


def _read(place: Path, names: list[str]) -> Iterator[pa.RecordBatch]:
    reader = pc.open_csv(
        place,
        # The heading may have lines within quotes, which skip_rows would take for rows.
        read_options=pc.ReadOptions(block_size=_BLOCK, use_threads=False),
        # An empty line is a row of one NULL, where there is one column.
        parse_options=pc.ParseOptions(newlines_in_values=True, ignore_empty_lines=len(names) > 1),
        convert_options=pc.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
    if reader.schema != pa.schema([(name, pa.string()) for name in names]):
        message = f"the heading of the csv file can be read as {names} and as {reader.schema.names}: quote its names"
        raise DataError(message)
    with reader:
        yield from reader
