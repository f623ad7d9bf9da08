"""``longshore copy``: a query of one database into a table of another."""

import time
from typing import Annotated, Any

import typer

import longshore
from longshore.shell import arguments as given
from longshore.shell.pairs import options, pairs, parameters
from longshore.shell.places import database
from longshore.shell.queries import statement
from longshore.shell.speaking import clock, finished, rows_of, warned
from longshore.shell.watching import watching

__all__ = ["copy"]

_Table = Annotated[
    str, typer.Option("--table", "-t", help="The table, after its schema and a dot.", show_default=False)
]


def copy(
    *,
    query: given.Query,
    table: _Table,
    from_: given.From = None,
    to: given.Target = None,
    if_exists: given.IfExists = given.Mode.FAIL,
    key: given.Keys = None,
    types: given.Types = None,
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
    """Copy a query's result into a table of the same database or of another: all of it, or nothing."""
    source, target = database(from_, "--from"), database(to, "--to")
    number: Any = given.number_of_parts(partition_num)
    text = statement(query)
    began = time.monotonic()
    with warned(as_json=as_json) as warnings, watching(shown=not (quiet or as_json)) as watcher:
        count = longshore.copy(
            text,
            source,
            table,
            target,
            if_exists=if_exists.value,
            key=key or None,
            types=pairs(types, "--type"),
            params=parameters(params, args),
            schema=pairs(schema, "--schema"),
            partition_on=partition_on,
            partition_num=number,
            timeout=timeout,
            progress=watcher,
            options=options(option),
        )
    seconds = time.monotonic() - began
    figures = {"rows": count, "bytes": watcher.bytes, "seconds": seconds, "table": table, "warnings": warnings}
    finished(figures, f"{rows_of(count)} into {table} in {clock(seconds)}", as_json=as_json)
