"""The options that several commands share."""

from enum import StrEnum
from typing import Annotated

import typer

from longshore.shell.files import Format

__all__ = [
    "Args",
    "Delimiter",
    "From",
    "IfExists",
    "Json",
    "Keys",
    "Layout",
    "Mode",
    "Options",
    "Out",
    "Params",
    "PartitionNum",
    "PartitionOn",
    "Query",
    "Quiet",
    "Rows",
    "Schema",
    "Target",
    "Timeout",
    "Types",
    "number_of_parts",
]


class Mode(StrEnum):
    """What happens to a table that is there already, or is not."""

    FAIL = "fail"
    APPEND = "append"
    REPLACE = "replace"
    TRUNCATE = "truncate"
    UPSERT = "upsert"


Query = Annotated[
    str, typer.Argument(help="The query, @FILE that holds it, or - for standard input.", show_default=False)
]
From = Annotated[
    str | None,
    typer.Option("--from", envvar="LONGSHORE_FROM", help="The database: URL, file, or env:NAME.", show_default=False),
]
Target = Annotated[
    str | None,
    typer.Option("--to", envvar="LONGSHORE_TO", help="The database: URL, file, or env:NAME.", show_default=False),
]
Json = Annotated[bool, typer.Option("--json", help="Speak JSON: one object for the result, one for an error.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")]
Params = Annotated[
    list[str] | None,
    typer.Option("--param", metavar="NAME=VALUE", help="A value for :NAME in the query.", show_default=False),
]
Args = Annotated[
    list[str] | None,
    typer.Option("--arg", metavar="VALUE", help="A value for the next $1, $2 or ? in the query.", show_default=False),
]
Schema = Annotated[
    list[str] | None,
    typer.Option("--schema", metavar="COLUMN=TYPE", help="The Arrow type of a column.", show_default=False),
]
Options = Annotated[
    list[str] | None,
    typer.Option("--option", metavar="KEY=VALUE", help="A key of the library's options.", show_default=False),
]
PartitionOn = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Read in parts, split by this column.", show_default=False)
]
PartitionNum = Annotated[
    str | None, typer.Option(metavar="N|auto", help="How many connections read a part each.", show_default=False)
]
Timeout = Annotated[float | None, typer.Option(metavar="SECONDS", help="The longest wait.", show_default=False)]
Layout = Annotated[
    Format | None, typer.Option("--format", help="The file's format; by default that of its name.", show_default=False)
]
Out = Annotated[
    str | None,
    typer.Option(
        "--to", metavar="FILE", help="The file, or - for standard output; without it, a preview.", show_default=False
    ),
]
Rows = Annotated[int | None, typer.Option(metavar="N", min=1, help="Rows of a preview.", show_default="20")]
Delimiter = Annotated[
    str | None,
    typer.Option(
        metavar="CHARACTER",
        help=r"What is between two fields of CSV: ';' or '\t'; else ','.",
        show_default=False,
    ),
]
IfExists = Annotated[Mode, typer.Option(help="What to do where the table is there, or is not.")]
Keys = Annotated[
    list[str] | None,
    typer.Option("--key", metavar="COLUMN", help="The key of an upsert or of a new table.", show_default=False),
]
Types = Annotated[
    list[str] | None,
    typer.Option(
        "--type", metavar="COLUMN=TYPE", help="The database's type of a new table's column.", show_default=False
    ),
]


def number_of_parts(given: str | None) -> "int | str | None":
    """Give the number; what is none is left to the verb, which says so."""
    return int(given) if given is not None and given.isdecimal() else given
