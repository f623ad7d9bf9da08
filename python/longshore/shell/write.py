"""``longshore write``: a file into a table."""

import time
from typing import Annotated, Any

import typer

import longshore
from longshore.shell import arguments as given
from longshore.shell.files import layout_of, needs_arrow
from longshore.shell.pairs import options, pairs
from longshore.shell.places import database
from longshore.shell.speaking import clock, finished, rows_of, warned
from longshore.shell.watching import watching

__all__ = ["write"]

_File = Annotated[str, typer.Argument(help="The file, or - for standard input.", show_default=False)]
_Table = Annotated[
    str, typer.Option("--table", "-t", help="The table, after its schema and a dot.", show_default=False)
]


def write(
    *,
    file: _File,
    table: _Table,
    to: given.Target = None,
    layout: given.Layout = None,
    delimiter: given.Delimiter = None,
    if_exists: given.IfExists = given.Mode.FAIL,
    key: given.Keys = None,
    types: given.Types = None,
    schema: given.Schema = None,
    timeout: given.Timeout = None,
    option: given.Options = None,
    as_json: given.Json = False,
    quiet: given.Quiet = False,
) -> None:
    """Write a parquet, csv, arrow, arrows or json file into a table: all of it, or nothing."""
    url = database(to, "--to")
    form = layout_of(file, layout, delimiter)
    needs_arrow()
    from longshore.shell.files.readers import batches

    began = time.monotonic()
    progress: Any
    with (
        warned(as_json=as_json) as warnings,
        batches(file, form, pairs(schema, "--schema") or {}) as (rows, size),
        watching(shown=not (quiet or as_json)) as progress,
    ):
        count = longshore.write_sql(
            rows,
            table,
            url,
            if_exists=if_exists.value,
            key=key or None,
            types=pairs(types, "--type"),
            timeout=timeout,
            progress=progress,
            options=options(option),
        )
    seconds = time.monotonic() - began
    figures = {
        "rows": count,
        "bytes": size,
        "seconds": seconds,
        "table": table,
        "file": file,
        "format": form.format.value,
        "warnings": warnings,
    }
    finished(figures, f"{rows_of(count)} into {table} in {clock(seconds)}", as_json=as_json)
