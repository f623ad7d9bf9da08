"""The arguments that several commands share: their options for typer, and what their texts mean."""

import json
import os
import sys
from collections.abc import Sequence
from decimal import Decimal
from enum import StrEnum
from functools import partial
from typing import Annotated, Any

import typer

from longshore.errors import InterfaceError
from longshore.shell.files import Format
from longshore.shell.output import file_path
from longshore.target import is_address, target


class Mode(StrEnum):
    """The treatment of a table that is there already, or is not."""

    FAIL = "fail"
    APPEND = "append"
    REPLACE = "replace"
    TRUNCATE = "truncate"
    UPSERT = "upsert"


_Argument = partial(typer.Argument, show_default=False)
_Option = partial(typer.Option, show_default=False)
_DATABASE = "The database: URL, file, or env:NAME."

# Of databases and queries:
Query = Annotated[str, _Argument(help="The query, @FILE that holds it, or - for standard input.")]
From = Annotated[str | None, _Option("--from", envvar="LONGSHORE_FROM", help=_DATABASE)]
Target = Annotated[str | None, _Option("--to", envvar="LONGSHORE_TO", help=_DATABASE)]
Url = Annotated[str, _Argument(help=_DATABASE)]
Attach = Annotated[
    list[str] | None,
    _Option(
        "--attach",
        metavar="NAME=URL",
        help="A database, and its name in the query: NAME.table; a URL, or env:NAME.",
    ),
]
Params = Annotated[list[str] | None, _Option("--param", metavar="NAME=VALUE", help="A value for :NAME in the query.")]
Args = Annotated[
    list[str] | None, _Option("--arg", metavar="VALUE", help="A value for the next $1, $2 or ? in the query.")
]
Schema = Annotated[list[str] | None, _Option("--schema", metavar="COLUMN=TYPE", help="The Arrow type of a column.")]
Options = Annotated[list[str] | None, _Option("--option", metavar="KEY=VALUE", help="A key of the library's options.")]
PartitionOn = Annotated[str | None, _Option(metavar="COLUMN", help="Read in parts, split by this column.")]
PartitionNum = Annotated[str | None, _Option(metavar="N|auto", help="How many connections read a part each.")]
Timeout = Annotated[float | None, _Option(metavar="SECONDS", help="The longest wait.")]

# Of files and output:
File = Annotated[str, _Argument(help="The file, or - for standard input.")]
Out = Annotated[
    str | None,
    _Option("--to", metavar="FILE", help="The file, or - for standard output; without it, a preview."),
]
Layout = Annotated[Format | None, _Option("--format", help="The file's format; by default that of its name.")]
Delimiter = Annotated[
    str | None, _Option(metavar="CHARACTER", help=r"What is between two fields of CSV: ';' or '\t'; else ','.")
]
Rows = Annotated[int | None, typer.Option(metavar="N", min=1, help="Rows of a preview.", show_default="20")]
Json = Annotated[bool, typer.Option("--json", help="Speak JSON: one object for the result, one for an error.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")]

# Of tables that are written:
Table = Annotated[str, _Option("--table", "-t", help="The table, after its schema and a dot.")]
IfExists = Annotated[Mode, typer.Option(help="What to do where the table is there, or is not.")]
Keys = Annotated[list[str] | None, _Option("--key", metavar="COLUMN", help="The key of an upsert or of a new table.")]
Types = Annotated[
    list[str] | None,
    _Option("--type", metavar="COLUMN=TYPE", help="The database's type of a new table's column."),
]

_WORDS = {"true": True, "false": False, "none": None}


def partition_count(text: str | None) -> Any:
    """Return the number, or the text, which the verb refuses if it is not ``auto``."""
    return int(text) if text is not None and text.isdecimal() else text


def named_values(texts: Sequence[str] | None, option: str) -> dict[str, str] | None:
    """Return names with their values; raises ``InterfaceError`` for a text without a name, and for a repeated one.

    >>> named_values(["price=numeric(6,2)"], "--type")
    {'price': 'numeric(6,2)'}
    """
    if not texts:
        return None
    values: dict[str, str] = {}
    for text in texts:
        name, mark, value = text.partition("=")
        if not name or not mark:
            raise InterfaceError(f"{option} is name=value, not {text!r}")
        if name in values:
            raise InterfaceError(f"{option} has {name!r} twice")
        values[name] = value
    return values


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
    values = named_values(named, "--param")
    return None if values is None else {name: _value(text) for name, text in values.items()}


def options(texts: Sequence[str] | None) -> dict[str, Any] | None:
    """Return the keys of ``options=``, each in its type.

    >>> options(["uuid=text", "ordered=true", "threads=2", "memory_limit=none"])
    {'uuid': 'text', 'ordered': True, 'threads': 2, 'memory_limit': None}
    """
    values = named_values(texts, "--option") or {}
    return {name: int(text) if text.isdecimal() else _WORDS.get(text, text) for name, text in values.items()} or None


def _value(text: str) -> Any:
    """Return a number, a word or a quoted text of JSON's as its value, and all else as text."""
    try:
        value = json.loads(text, parse_float=_number, parse_constant=str)
    except (ValueError, RecursionError):
        return text
    return text if isinstance(value, list | dict) else value


def _number(text: str) -> float | Decimal:
    """Return the double if it has just these digits, else the decimal."""
    exact = Decimal(text)
    return float(text) if Decimal(repr(float(text))) == exact else exact


def database(text: str | None, option: str) -> str:
    """Check a database's URL, file, or variable of the environment (``env:NAME`` or ``$NAME``), and return it.

    Raises ``InterfaceError`` for what is none of them, and shows nothing of it: it may hold a password.
    """
    if not text:
        raise InterfaceError(f"{option} is missing: give a URL, a file, or env:NAME for what the environment has")
    try:
        target(text)
    except InterfaceError as error:
        raise InterfaceError(f"{option}: {error}", hint=error.hint) from None
    return text


def query_text(text: str) -> str:
    """Return the query itself, of its file, or of standard input.

    Raises ``InterfaceError`` where it is empty, and ``OSError`` for a file that does not exist.
    """
    if is_address(text):
        raise InterfaceError("the query is a URL: give the query first, and the URL with --from")
    if os.path.isfile(text) and not any(map(str.isspace, text)):  # noqa: PTH113  a query may be too long for a path
        hint = f"@{text} is the query in the file; longshore sql \"FROM '{text}'\" reads a file of rows"
        raise InterfaceError(f"the query {text!r} is the name of a file", hint=hint)
    query = text
    if text == "-":
        query = sys.stdin.read()
    elif text.startswith("@"):
        query = file_path(text[1:]).read_text(encoding="utf-8")
    if not query.strip():
        raise InterfaceError("the query is empty")
    return query
