"""The commands: ``read``, ``write``, ``copy``, ``sql``, ``schema`` and ``sources``."""

import json
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

import longshore
from longshore.arguments import table_name
from longshore.connectable import scheme_of
from longshore.errors import InterfaceError, ProgrammingError
from longshore.shell import arguments
from longshore.shell.arguments import database, named_values, options, parameters, query_text
from longshore.shell.files import STANDARD, FileLayout, Format, layout_of, needs_arrow
from longshore.shell.output import (
    ProgressListener,
    collect_warnings,
    duration,
    file_path,
    print_texts,
    printable,
    report,
    row_count,
    write_output,
)
from longshore.target import is_address
from longshore.texts import quoted_name

if TYPE_CHECKING:
    from longshore.stream import Stream

_PREVIEW_ROWS = 20


#: Opens the stream of a result; takes ``progress=`` and ``batch_size=``, as ``read_sql`` does.
OpenStream = Callable[..., Any]


def _deliver(
    open_stream: OpenStream, to: str | None, layout: FileLayout | None, rows: int | None, *, as_json: bool, quiet: bool
) -> None:
    """Write the rows of a result into a file, or show the first of them."""
    if to is None or layout is None:
        _preview(open_stream, rows or _PREVIEW_ROWS, as_json=as_json)
        return
    has_bar = not (quiet or as_json) and (to != STANDARD or not sys.stdout.isatty())
    began = time.monotonic()
    with collect_warnings(as_json=as_json) as warnings, ProgressListener(shown=has_bar) as listener:
        count, size = _write_file(partial(open_stream, progress=listener), to, layout)
    seconds = time.monotonic() - began
    figures: dict[str, Any] = {
        "rows": count,
        "bytes": size,
        "bytes_read": listener.bytes,
        "seconds": seconds,
        "file": to,
        "format": layout.format.value,
        "warnings": warnings,
    }
    if to != STANDARD or as_json:
        sentence = f"{row_count(count)}, {size / 1e6:,.1f} MB, into {to} in {duration(seconds)}"
        report(figures, sentence, as_json=as_json, aside=to == STANDARD)


def _preview(open_stream: OpenStream, rows: int, *, as_json: bool) -> None:
    """Show the first rows; the stream is closed there, which cancels the query."""
    from longshore.shell.preview import show_preview

    # One more tells whether there are more, and comes in a batch of its own.
    with collect_warnings(as_json=as_json) as warnings, open_stream(batch_size=rows + 1) as stream:
        schema, batches, count = stream.schema, [], 0
        for batch in stream:
            batches.append(batch)
            count += batch.num_rows
            if count > rows:
                break
    show_preview(schema, batches, rows, warnings=warnings, as_json=as_json)


def _write_file(open_stream: Callable[[], "Stream"], to: str, layout: FileLayout) -> tuple[int, int]:
    """Write a whole stream, and return the numbers of its rows and of the file's bytes."""
    # A query must not wait for the imports.
    from longshore.shell.files.storage import open_sink
    from longshore.shell.files.writers import write_batches

    with open_stream() as stream, open_sink(to, layout.compression) as (file, sink):
        count = write_batches(stream, layout, file)
    return count, sink.bytes


def _file_layout(to: str | None, layout: Format | None, delimiter: str | None, rows: int | None) -> FileLayout | None:
    """Return the layout of the file, and none for a preview."""
    if to is None:
        for name, value in {"--format": layout, "--delimiter": delimiter}.items():
            if value is not None:
                raise InterfaceError(f"{name} is for --to: a preview has no format")
        return None
    if rows is not None:
        message = "--rows is for a preview, without --to; a file has them all: LIMIT in the query leaves some out"
        raise InterfaceError(message)
    if is_address(to):
        raise InterfaceError("--to of a query is a file; longshore copy writes into a database")
    file_layout = layout_of(to, layout, delimiter)
    if file_layout.format not in {Format.CSV, Format.JSON} and to == STANDARD and sys.stdout.isatty():
        raise InterfaceError(
            f"{file_layout.format.value} cannot be shown on a terminal: redirect standard output, or give --format csv"
        )
    if to != STANDARD and not file_path(to).absolute().parent.is_dir():
        raise FileNotFoundError(2, "there is no such directory", str(file_path(to).absolute().parent))
    return file_layout


def read(
    *,
    query: arguments.Query,
    from_: arguments.From = None,
    to: arguments.Out = None,
    layout: arguments.Layout = None,
    delimiter: arguments.Delimiter = None,
    rows: arguments.Rows = None,
    params: arguments.Params = None,
    args: arguments.Args = None,
    schema: arguments.Schema = None,
    partition_on: arguments.PartitionOn = None,
    partition_num: arguments.PartitionNum = None,
    timeout: arguments.Timeout = None,
    option: arguments.Options = None,
    as_json: arguments.Json = False,
    quiet: arguments.Quiet = False,
) -> None:
    """Read a query into a parquet, csv, arrow, arrows or json file, or show its first rows."""
    url = database(from_, "--from")
    file_layout = _file_layout(to, layout, delimiter, rows)
    needs_arrow()
    read_stream = partial(
        longshore.read_sql,
        query_text(query),
        url,
        return_type="arrow_stream",
        params=parameters(params, args),
        schema=named_values(schema, "--schema"),
        partition_on=partition_on,
        partition_num=arguments.partition_count(partition_num),
        timeout=timeout,
        options=options(option),
    )
    _deliver(read_stream, to, file_layout, rows, as_json=as_json, quiet=quiet)


def write(
    *,
    file: arguments.File,
    table: arguments.Table,
    to: arguments.Target = None,
    layout: arguments.Layout = None,
    delimiter: arguments.Delimiter = None,
    if_exists: arguments.IfExists = arguments.Mode.FAIL,
    key: arguments.Keys = None,
    types: arguments.Types = None,
    schema: arguments.Schema = None,
    timeout: arguments.Timeout = None,
    option: arguments.Options = None,
    as_json: arguments.Json = False,
    quiet: arguments.Quiet = False,
) -> None:
    """Write a parquet, csv, arrow, arrows or json file into a table: all of it, or nothing."""
    url = database(to, "--to")
    form = layout_of(file, layout, delimiter)
    needs_arrow()
    from longshore.shell.files.batches import open_batches

    began = time.monotonic()
    progress: Any
    with (
        collect_warnings(as_json=as_json) as warnings,
        open_batches(file, form, named_values(schema, "--schema") or {}) as (rows, size),
        ProgressListener(shown=not (quiet or as_json)) as progress,
    ):
        count = longshore.write_sql(
            rows,
            table,
            url,
            if_exists=if_exists.value,
            key=key or None,
            types=named_values(types, "--type"),
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
    report(figures, f"{row_count(count)} into {table} in {duration(seconds)}", as_json=as_json)


def copy(
    *,
    query: arguments.Query,
    table: arguments.Table,
    from_: arguments.From = None,
    to: arguments.Target = None,
    if_exists: arguments.IfExists = arguments.Mode.FAIL,
    key: arguments.Keys = None,
    types: arguments.Types = None,
    params: arguments.Params = None,
    args: arguments.Args = None,
    schema: arguments.Schema = None,
    partition_on: arguments.PartitionOn = None,
    partition_num: arguments.PartitionNum = None,
    timeout: arguments.Timeout = None,
    option: arguments.Options = None,
    as_json: arguments.Json = False,
    quiet: arguments.Quiet = False,
) -> None:
    """Copy a query's result into a table of the same database or of another: all of it, or nothing."""
    source, target = database(from_, "--from"), database(to, "--to")
    text = query_text(query)
    began = time.monotonic()
    with collect_warnings(as_json=as_json) as warnings, ProgressListener(shown=not (quiet or as_json)) as listener:
        count = longshore.copy(
            text,
            source,
            table,
            target,
            if_exists=if_exists.value,
            key=key or None,
            types=named_values(types, "--type"),
            params=parameters(params, args),
            schema=named_values(schema, "--schema"),
            partition_on=partition_on,
            partition_num=arguments.partition_count(partition_num),
            timeout=timeout,
            progress=listener,
            options=options(option),
        )
    seconds = time.monotonic() - began
    figures = {"rows": count, "bytes": listener.bytes, "seconds": seconds, "table": table, "warnings": warnings}
    report(figures, f"{row_count(count)} into {table} in {duration(seconds)}", as_json=as_json)


#: Code that has no variables, since those of a command are not tables. Compiled, since Python takes a Ctrl-C within a
#: text that it evaluates for its own end.
_CALL = compile("__longshore__()", __name__, "eval")


def sql(
    *,
    query: arguments.Query,
    attach: arguments.Attach = None,
    to: arguments.Out = None,
    layout: arguments.Layout = None,
    delimiter: arguments.Delimiter = None,
    rows: arguments.Rows = None,
    params: arguments.Params = None,
    args: arguments.Args = None,
    option: arguments.Options = None,
    as_json: arguments.Json = False,
) -> None:
    """Run SQL over files ('boats.parquet', '*.csv') and attached databases, into a file or onto the screen."""
    databases = {
        name: database(url, f"--attach {name}") for name, url in (named_values(attach, "--attach") or {}).items()
    }
    file_layout = _file_layout(to, layout, delimiter, rows)
    needs_arrow()
    call = partial(
        longshore.sql,
        query_text(query),
        params=parameters(params, args),
        attach=databases or None,
        options=options(option),
        return_type="arrow_stream",
    )

    def open_stream(**_terms: object) -> "Stream":
        stream: Stream | None = eval(_CALL, {"__builtins__": {}, "__longshore__": call})  # noqa: S307  code of this file
        if stream is None:
            raise ProgrammingError("the last statement has no result to write or to show; what it does has been done")
        return stream

    _deliver(open_stream, to, file_layout, rows, as_json=as_json, quiet=True)


_BACKTICKS = ("mysql", "mariadb")
_OptionalTable = Annotated[
    str | None, typer.Argument(help="The table, after its schema and a dot.", show_default=False)
]
_SchemaQuery = Annotated[
    str | None, typer.Option(help="A query instead of a table, @FILE that holds it, or -.", show_default=False)
]


def schema(
    *,
    url: arguments.Url,
    table: _OptionalTable = None,
    query: _SchemaQuery = None,
    timeout: arguments.Timeout = None,
    as_json: arguments.Json = False,
) -> None:
    """Show the columns of a table, or of a query: names, the database's types, Arrow types, and whether NULL may be."""
    target = database(url, "URL")
    if (table is None) == (query is None):
        raise InterfaceError("give a table, or a query with --query")
    needs_arrow()
    text = query_text(query) if query is not None else f"SELECT * FROM {_quoted_name(table, target)}"  # noqa: S608  quoted
    columns = [_column_fields(field) for field in longshore.schema(text, target, timeout=timeout)]
    if as_json:
        write_output(json.dumps({"table": table, "columns": columns}, ensure_ascii=False))
        return
    _show_columns(columns)


def _quoted_name(table: str | None, target: str) -> str:
    """Put a table's name into a statement, with its case as it is."""
    mark = "`" if scheme_of(target) in _BACKTICKS else '"'
    return ".".join(quoted_name(part, mark) for part in table_name(table) if part is not None)


def _column_fields(field: Any) -> dict[str, Any]:
    native = (field.metadata or {}).get(b"native_type")
    return {
        "name": field.name,
        "native_type": None if native is None else native.decode(),
        "arrow_type": str(field.type),
        "nullable": field.nullable,
    }


def _show_columns(columns: list[dict[str, Any]]) -> None:
    rows = []
    for column in columns:
        null = "" if column["nullable"] else "never"
        texts = (column["name"], column["native_type"] or "", column["arrow_type"], null)
        rows.append([printable(text) for text in texts])
    print_texts(("column", "database", "Arrow", "NULL"), rows)


def sources(*, as_json: arguments.Json = False) -> None:
    """List the sources: what an address starts with, what it is for, and what installs one that is missing."""
    known = longshore.list_sources()
    if as_json:
        write_output(json.dumps({"sources": [{**each._asdict(), "remedy": each.remedy} for each in known]}))
        return
    rows = [(f"{each.scheme}:", each.database, each.remedy or "yes") for each in known]
    print_texts(("address", "for", "installed"), rows)
