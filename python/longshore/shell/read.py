"""``longshore read``: a query's result into a file, or its first rows onto the screen."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import longshore
from longshore.errors import InterfaceError
from longshore.shell import arguments as given
from longshore.shell.files import STANDARD, Format, format_of, needs_arrow
from longshore.shell.pairs import options, pairs, parameters
from longshore.shell.places import database, is_place
from longshore.shell.queries import statement
from longshore.shell.speaking import clock, finished, warned
from longshore.shell.watching import Watcher, watching

if TYPE_CHECKING:
    from longshore.stream import Stream

__all__ = ["read"]

_FIRST = 20
_Out = Annotated[
    str | None,
    typer.Option(
        "--to", metavar="FILE", help="The file, or - for standard output; without it, a preview.", show_default=False
    ),
]
_Rows = Annotated[int | None, typer.Option(metavar="N", min=1, help="Rows of a preview.", show_default=str(_FIRST))]


def read(
    *,
    query: given.Query,
    from_: given.From = None,
    to: _Out = None,
    layout: given.Layout = None,
    rows: _Rows = None,
    params: given.Params = None,
    args: given.Args = None,
    schema: given.Schema = None,
    partition_on: given.PartitionOn = None,
    partition_num: given.PartitionNum = None,
    timeout: given.Timeout = None,
    option: given.Options = None,
    as_json: given.Json = False,
    quiet: given.Quiet = False,
) -> None:
    """Read a query into a parquet, csv, arrow, arrows or json file, or show its first rows."""
    url = database(from_, "--from")
    form = _form(to, layout, rows)
    needs_arrow()
    began = time.monotonic()
    chosen = {
        "params": parameters(params, args),
        "schema": pairs(schema, "--schema"),
        "partition_on": partition_on,
        "partition_num": given.number_of_parts(partition_num),
        "timeout": timeout,
        "options": options(option),
    }
    text = statement(query)
    with warned(as_json=as_json) as warnings:
        if to is None or form is None:
            _show(text, url, rows or _FIRST, chosen, as_json=as_json)
            return
        with watching(shown=not (quiet or as_json) and _is_free(to)) as watcher:
            count, size = _save(_stream(text, url, chosen, watcher), to, form)
    seconds = time.monotonic() - began
    figures = {
        "rows": count,
        "bytes": size,
        "bytes_read": watcher.bytes,
        "seconds": seconds,
        "file": to,
        "format": form.value,
        "warnings": warnings,
    }
    if to != STANDARD or as_json:
        sentence = f"{count:,} rows, {size / 1e6:,.1f} MB, into {to} in {clock(seconds)}"
        finished(figures, sentence, as_json=as_json, aside=to == STANDARD)


def _form(to: str | None, layout: Format | None, rows: int | None) -> Format | None:
    """Give the format of the file, and none for a preview."""
    if to is None:
        if layout is not None:
            message = "--format is for --to: a preview has no format"
            raise InterfaceError(message)
        return None
    if rows is not None:
        message = "--rows is for a preview, without --to; a file has them all: LIMIT in the query leaves some out"
        raise InterfaceError(message)
    if is_place(to):
        message = "--to of read is a file; longshore copy writes into a database"
        raise InterfaceError(message)
    form = format_of(to, layout)
    if form not in {Format.CSV, Format.JSON} and to == STANDARD and _is_terminal():
        message = f"{form.value} is nothing for a terminal: redirect standard output, or give --format csv"
        raise InterfaceError(message)
    if to != STANDARD and not Path(to).absolute().parent.is_dir():
        raise FileNotFoundError(2, "there is no such directory", str(Path(to).absolute().parent))
    return form


def _is_terminal() -> bool:
    import sys

    return sys.stdout.isatty()


def _is_free(to: str) -> bool:
    """Whether a bar would not run into the data."""
    return to != STANDARD or not _is_terminal()


def _stream(query: str, url: str, chosen: dict[str, Any], watcher: Watcher | None, size: int | None = None) -> "Stream":
    progress: Any = watcher if watcher is not None else False
    return longshore.read_sql(query, url, return_type="arrow_stream", progress=progress, batch_size=size, **chosen)


def _save(stream: "Stream", to: str, form: Format) -> tuple[int, int]:
    """Write the whole stream, and give the numbers of its rows and of the file's bytes."""
    from longshore.shell.files.sink import opened
    from longshore.shell.files.writers import writer

    count = 0
    with stream, opened(to) as sink:
        out = writer(form, sink, stream.schema)
        try:
            for batch in stream:
                out.write(batch)
                count += batch.num_rows
        except BaseException:
            out.abandon()
            raise
        out.close()
    return count, sink.bytes


def _show(query: str, url: str, rows: int, chosen: dict[str, Any], *, as_json: bool) -> None:
    """Show the first rows; the stream is left there, which cancels the query."""
    from longshore.shell.preview import shown

    # One more tells whether there are more, and comes in a batch of its own.
    with _stream(query, url, chosen, None, rows + 1) as stream:
        schema, batches, count = stream.schema, [], 0
        for batch in stream:
            batches.append(batch)
            count += batch.num_rows
            if count > rows:
                break
    shown(schema, batches, rows, as_json=as_json)
