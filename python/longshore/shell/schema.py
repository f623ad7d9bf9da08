"""``longshore schema``: the columns of a table or of a query."""

import json
from typing import Annotated, Any

import typer

import longshore
from longshore.connection import scheme_of
from longshore.errors import InterfaceError
from longshore.shell import arguments as given
from longshore.shell.files import needs_arrow
from longshore.shell.places import database
from longshore.shell.queries import statement
from longshore.shell.speaking import say
from longshore.writing import table_name

__all__ = ["schema"]

_BACKTICKS = ("mysql", "mariadb")
_Url = Annotated[str, typer.Argument(help="The database: URL, file, or env:NAME.", show_default=False)]
_Table = Annotated[str | None, typer.Argument(help="The table, after its schema and a dot.", show_default=False)]
_Query = Annotated[
    str | None, typer.Option(help="A query instead of a table, @FILE that holds it, or -.", show_default=False)
]


def schema(
    *,
    url: _Url,
    table: _Table = None,
    query: _Query = None,
    timeout: given.Timeout = None,
    as_json: given.Json = False,
) -> None:
    """Show the columns of a table, or of a query: names, the database's types, Arrow types, and whether NULL may be."""
    target = database(url, "URL")
    if (table is None) == (query is None):
        message = "give a table, or a query with --query"
        raise InterfaceError(message)
    needs_arrow()
    text = statement(query) if query is not None else f"SELECT * FROM {_quoted(table, target)}"  # noqa: S608  quoted
    columns = [_column(field) for field in longshore.schema(text, target, timeout=timeout)]
    if as_json:
        say(json.dumps({"table": table, "columns": columns}, ensure_ascii=False))
        return
    _show(columns)


def _quoted(table: str | None, target: str) -> str:
    """Put a table's name into a statement, with its case as it is."""
    mark = "`" if scheme_of(target) in _BACKTICKS else '"'
    parts = [part for part in table_name(table) if part is not None]
    return ".".join(f"{mark}{part.replace(mark, mark * 2)}{mark}" for part in parts)


def _column(field: Any) -> dict[str, Any]:
    native = (field.metadata or {}).get(b"native_type")
    return {
        "name": field.name,
        "native_type": None if native is None else native.decode(),
        "arrow_type": str(field.type),
        "nullable": field.nullable,
    }


def _show(columns: list[dict[str, Any]]) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from longshore.shell.tables import printed, visible

    shown = Table("column", "database", "Arrow", "NULL", box=box.SIMPLE_HEAD)
    for column in columns:
        words = (
            column["name"],
            column["native_type"] or "",
            column["arrow_type"],
            "" if column["nullable"] else "never",
        )
        shown.add_row(*(Text(visible(word)) for word in words))
    printed(shown)
