"""``longshore sql``: SQL over files and attached databases."""

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

import longshore
from longshore.errors import ProgrammingError
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

__all__ = ["sql"]

#: Code that has no variables, since those of a command are not tables. Compiled, since Python takes a Ctrl-C within a
#: text that it evaluates for its own end.
_CALL = compile("__longshore__()", __name__, "eval")
_Attach = Annotated[
    list[str] | None,
    typer.Option(
        "--attach",
        metavar="NAME=URL",
        help="A database, and its name in the query: NAME.table; a URL, or env:NAME.",
        show_default=False,
    ),
]


def sql(
    *,
    query: given.Query,
    attach: _Attach = None,
    to: given.Out = None,
    layout: given.Layout = None,
    delimiter: given.Delimiter = None,
    rows: given.Rows = None,
    params: given.Params = None,
    args: given.Args = None,
    option: given.Options = None,
    as_json: given.Json = False,
) -> None:
    """Run SQL over files ('boats.parquet', '*.csv') and attached databases, into a file or onto the screen."""
    databases = {name: database(url, f"--attach {name}") for name, url in (pairs(attach, "--attach") or {}).items()}
    result = Result(to, layout, delimiter, rows, as_json=as_json, quiet=True)
    needs_arrow()
    call = partial(
        longshore.sql,
        statement(query),
        params=parameters(params, args),
        attach=databases or None,
        options=options(option),
        return_type="arrow_stream",
    )

    def run(_watcher: Watcher | None, _size: int | None) -> "Stream":
        stream: Stream | None = eval(_CALL, {"__builtins__": {}, "__longshore__": call})  # noqa: S307  code of this file
        if stream is None:
            message = "the last statement has no result to write or to show; what it does has been done"
            raise ProgrammingError(message)
        return stream

    with warned(as_json=as_json) as warnings:
        result.deliver(run, warnings)
