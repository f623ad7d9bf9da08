"""``longshore read``: a query's result into a file, or its first rows onto the screen."""

from typing import TYPE_CHECKING, Any

import longshore
from longshore.shell import arguments as given
from longshore.shell.files import needs_arrow
from longshore.shell.pairs import options, pairs, parameters
from longshore.shell.places import database
from longshore.shell.queries import statement
from longshore.shell.results import Result
from longshore.shell.speaking import warned
from longshore.shell.watching import Watcher

if TYPE_CHECKING:
    from longshore.stream import Stream

__all__ = ["read"]


def read(
    *,
    query: given.Query,
    from_: given.From = None,
    to: given.Out = None,
    layout: given.Layout = None,
    delimiter: given.Delimiter = None,
    rows: given.Rows = None,
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
    result = Result(to, layout, delimiter, rows, as_json=as_json, quiet=quiet)
    needs_arrow()
    chosen: dict[str, Any] = {
        "params": parameters(params, args),
        "schema": pairs(schema, "--schema"),
        "partition_on": partition_on,
        "partition_num": given.number_of_parts(partition_num),
        "timeout": timeout,
        "options": options(option),
    }
    text = statement(query)

    def run(watcher: Watcher | None, size: int | None) -> "Stream":
        progress: Any = watcher if watcher is not None else False
        stream: Stream = longshore.read_sql(
            text, url, return_type="arrow_stream", progress=progress, batch_size=size, **chosen
        )
        return stream

    with warned(as_json=as_json) as warnings:
        result.deliver(run, warnings)
