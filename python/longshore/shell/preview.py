"""The first rows of a result, readable."""

import json
from collections.abc import Sequence
from typing import Literal

import pyarrow as pa
from rich import box
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from longshore import _core
from longshore.errors import Error
from longshore.shell.output import print_table, printable, row_count, terminal_width, write_output

_LONGEST = 200
_WIDEST = 40
#: The width that rich puts between two columns.
_GAP = 3
_UNSCALED = pa.decimal128(38, 20)


def show_preview(
    schema: pa.Schema,
    batches: Sequence[pa.RecordBatch],
    rows: int,
    *,
    warnings: Sequence[str] = (),
    as_json: bool = False,
) -> None:
    """Show the first rows of the batches, and whether there are more."""
    whole = pa.Table.from_batches(batches, schema)
    first = whole.slice(0, rows)
    columns = [
        _texts(field, column.combine_chunks(), as_json=as_json)
        for field, column in zip(schema, first.columns, strict=True)
    ]
    more = whole.num_rows > rows
    if as_json:
        write_output(_document(schema, columns, first.num_rows, more=more, warnings=warnings))
        return
    cells = [[_cell(text) for text in column] for column in columns]
    headings = [Text(f"{printable(field.name)}\n{field.type}") for field in schema]
    fitting = _fitting(headings, cells)
    table = Table(box=box.SIMPLE_HEAD)
    for field, heading in zip(schema, headings[:fitting], strict=False):
        widest = None if fitting == 1 else _WIDEST
        table.add_column(heading, justify=_side(field.type), overflow="ellipsis", no_wrap=True, max_width=widest)
    for row in zip(*cells[:fitting], strict=True):
        table.add_row(*row)
    count = row_count(first.num_rows)
    caption = f"the first {count} of more; the rest was not read" if more else f"{count} in all"
    hidden = "" if fitting == len(columns) else f"; {fitting} of {len(columns)} columns fit"
    print_table(table, below=caption + hidden)


def _fitting(headings: Sequence[Text], columns: Sequence[Sequence[Text]]) -> int:
    """Return how many columns, from the left, are readable at the terminal's width."""
    left, fitting = terminal_width(), 0
    for heading, cells in zip(headings, columns, strict=True):
        lines = [*str(heading).split("\n"), *map(str, cells)]
        left -= min(max(cell_len(line) for line in lines), _WIDEST) + _GAP
        if left < 0:
            break
        fitting += 1
    return max(fitting, min(1, len(columns)))


def _side(kind: pa.DataType) -> Literal["left", "right"]:
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    return "right" if is_number else "left"


def _texts(field: pa.Field, array: pa.Array, *, as_json: bool) -> list[str | None]:
    try:
        (texts,) = _core.file_texts(pa.RecordBatch.from_arrays([array], schema=pa.schema([field])), as_json)
    except Error:
        # What no file could say exactly is only looked at here.
        values = [None if value is None else str(value) for value in array.to_pylist()]
        return [json.dumps(value) for value in values] if as_json else values
    if field.type == _UNSCALED and not as_json:
        # The zeros are the stream's, whose numerics without a scale have twenty decimals.
        return [text and text.rstrip("0").removesuffix(".") for text in texts]
    return texts


def _cell(text: str | None) -> Text:
    if text is None:
        return Text("NULL", style="dim")
    return Text(printable(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"))


def _document(
    schema: pa.Schema, columns: Sequence[Sequence[str | None]], count: int, *, more: bool, warnings: Sequence[str]
) -> str:
    """Return the preview as one object; rows are lists, for names may be there twice."""
    names = json.dumps([{"name": field.name, "type": str(field.type)} for field in schema], ensure_ascii=False)
    rows = ",".join(f"[{','.join(str(cell) for cell in cells)}]" for cells in zip(*columns, strict=True))
    rest = f'"shown": {count}, "more": {json.dumps(more)}, "warnings": {json.dumps(warnings, ensure_ascii=False)}'
    return f'{{"columns": {names}, "rows": [{rows}], {rest}}}'
