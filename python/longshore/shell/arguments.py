"""The arguments that several commands share: their options for typer, and what their texts mean."""

import json
import os
import sys
from collections.abc import Sequence
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any

import typer

from longshore.errors import InterfaceError
from longshore.shell.files import Format
from longshore.shell.output import file_path
from longshore.target import is_address, target


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


def partition_count(text: str | None) -> Any:
    """Return the number, or the text, which the verb refuses if it is not ``auto``."""
    return int(text) if text is not None and text.isdecimal() else text


_WORDS = {"true": True, "false": False, "none": None}


def named_values(given: Sequence[str] | None, option: str) -> dict[str, str] | None:
    """Return names with their values; raises ``InterfaceError`` for what has no name, and for one that is there twice.

    >>> named_values(["price=numeric(6,2)"], "--type")
    {'price': 'numeric(6,2)'}
    """
    if not given:
        return None
    taken: dict[str, str] = {}
    for text in given:
        name, mark, value = text.partition("=")
        if not name or not mark:
            message = f"{option} is name=value, not {text!r}"
            raise InterfaceError(message)
        if name in taken:
            message = f"{option} has {name!r} twice"
            raise InterfaceError(message)
        taken[name] = value
    return taken


def parameters(named: Sequence[str] | None, positional: Sequence[str] | None) -> dict[str, Any] | list[Any] | None:
    """Return the parameters of a query; raises ``InterfaceError`` where some have names and some have not.

    >>> parameters(["berth=7", "code=007", 'text="7"', "gone=null"], None)
    {'berth': 7, 'code': '007', 'text': '7', 'gone': None}
    """
    if named and positional:
        message = "a query's parameters have names, --param name=value, or an order, --arg value, but not both"
        raise InterfaceError(message)
    if positional:
        return [_value(text) for text in positional]
    taken = named_values(named, "--param")
    return None if taken is None else {name: _value(text) for name, text in taken.items()}


def options(given: Sequence[str] | None) -> dict[str, Any] | None:
    """Return the keys of ``options=``, each in its type.

    >>> options(["uuid=text", "ordered=true", "threads=2", "memory_limit=none"])
    {'uuid': 'text', 'ordered': True, 'threads': 2, 'memory_limit': None}
    """
    taken = named_values(given, "--option")
    return None if taken is None else {name: _option(value) for name, value in taken.items()}


def _option(value: str) -> Any:
    return int(value) if value.isdecimal() else _WORDS.get(value, value)


def _value(text: str) -> Any:
    """Take a number, a word or a quoted text of JSON's for what it is, and all else for a text."""
    try:
        value = json.loads(text, parse_float=_number, parse_constant=str)
    except (ValueError, RecursionError):
        return text
    return text if isinstance(value, list | dict) else value


def _number(text: str) -> float | Decimal:
    """Return the double, where it stands for just these digits, else the decimal."""
    exact = Decimal(text)
    return float(text) if Decimal(repr(float(text))) == exact else exact


def database(given: str | None, option: str) -> str:
    """Return what names a database: a URL, a file, or ``env:NAME`` or ``$NAME`` for a variable of the environment.

    Raises ``InterfaceError`` for what names none, and shows nothing of it: it may hold a password.
    """
    if not given:
        message = f"{option} is missing: give a URL, a file, or env:NAME for what the environment has"
        raise InterfaceError(message)
    try:
        target(given)
    except InterfaceError as error:
        message = f"{option}: {error}"
        raise InterfaceError(message, hint=error.hint) from None
    return given


def query_text(given: str) -> str:
    """Return the query's text.

    Raises ``InterfaceError`` where there is none, and ``OSError`` for a file that is not there.
    """
    if is_address(given):
        message = "the query is a URL: give the query first, and the URL with --from"
        raise InterfaceError(message)
    if os.path.isfile(given) and not any(map(str.isspace, given)):  # noqa: PTH113  a query may be too long for a path
        hint = f"@{given} is the query in the file; longshore sql \"FROM '{given}'\" reads a file of rows"
        message = f"the query {given!r} is the name of a file\nHint: {hint}"
        raise InterfaceError(message, hint=hint)
    text = given
    if given == "-":
        text = sys.stdin.read()
    elif given.startswith("@"):
        text = file_path(given[1:]).read_text(encoding="utf-8")
    if not text.strip():
        message = "the query is empty"
        raise InterfaceError(message)
    return text
