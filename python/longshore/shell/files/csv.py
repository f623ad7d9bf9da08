"""CSV: a heading, a line for each row; NULL is an empty field, and the empty text is ``""``."""

import contextlib
import csv
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.csv as arrow_csv

import longshore
from longshore.errors import DataError
from longshore.shell.files.inference import InferredType, TextColumns
from longshore.shell.files.storage import Source
from longshore.warning import warn

#: The bytes of the longest row.
_BLOCK = 16 << 20
_DELIMITERS = {";": ";", "\t": r"\t", "|": "|", ",": ","}


def csv_columns(source: Source, delimiter: str) -> TextColumns:
    """Infer the columns' types of a whole file; raises ``DataError`` for a heading that names no columns."""
    names = _heading(source, delimiter)
    _check_quotes(source)
    texts = TextColumns({name: InferredType() for name in names}, lambda: _read(source, delimiter, names))
    for batch in texts.read():
        for name, array in zip(names, batch.columns, strict=True):
            texts.types[name].add(array)
    return texts


def _heading(source: Source, delimiter: str) -> list[str]:
    with source.text(newline="") as file:
        try:
            names = next(csv.reader(file, delimiter=delimiter, strict=True), [])
        except csv.Error as error:
            raise DataError(f"the heading of the csv file cannot be read: {error}") from error
    if not names:
        raise DataError("the csv file has no heading: its first line names the columns")
    for name in names:
        if names.count(name) > 1:
            raise DataError(f'two columns of the csv file are called "{name}"', column=name)
    if len(names) == 1:
        _warn_of_other_delimiters(source, names[0], delimiter)
    return names


def _warn_of_other_delimiters(source: Source, name: str, delimiter: str) -> None:
    """Warn of a single column whose name holds what others put between two."""
    found = next((written for mark, written in _DELIMITERS.items() if mark != delimiter and mark in name), None)
    if found is not None:
        message = f"{source.name} is read as one column, {name!r}: is it --delimiter '{found}'?"
        warn(message, longshore.Warning)


def _check_quotes(source: Source) -> None:
    """Raise ``DataError`` for a file that ends within quotes, which pyarrow takes for whole."""
    count = 0
    with source.bytes() as file:
        while piece := file.read(_BLOCK):
            count += piece.count(b'"')
    if count % 2:
        message = "a quote of the csv file is not closed: it has been cut, or a quote within a field is not doubled"
        raise DataError(message)


def _read(source: Source, delimiter: str, names: list[str]) -> Iterator[pa.RecordBatch]:
    with _naming_line(source, delimiter, len(names)), source.bytes() as file:
        reader = arrow_csv.open_csv(
            file,
            # The heading may have lines within quotes, which skip_rows would take for rows.
            read_options=arrow_csv.ReadOptions(block_size=_BLOCK, use_threads=False),
            # An empty line is a row of one NULL, where there is one column.
            parse_options=arrow_csv.ParseOptions(
                delimiter=delimiter, newlines_in_values=True, ignore_empty_lines=len(names) > 1
            ),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
        if reader.schema != pa.schema([(name, pa.string()) for name in names]):
            found = reader.schema.names
            raise DataError(f"the heading of the csv file can be read as {names} and as {found}: quote its names")
        with reader:
            yield from reader


@contextlib.contextmanager
def _naming_line(source: Source, delimiter: str, width: int) -> Iterator[None]:
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
