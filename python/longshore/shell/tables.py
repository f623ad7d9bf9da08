"""Tables on standard output, for people."""

import sys

from rich.console import Console
from rich.table import Table

from longshore.shell.failing import ClosedPipeError

__all__ = ["printed", "visible"]


def printed(table: Table, *, below: str | None = None) -> None:
    """Write a table to standard output, as wide as it is, or as the terminal; and a line below it."""
    console = Console(file=sys.stdout, highlight=False)
    if not console.is_terminal:
        console.width = max(console.width, console.measure(table).maximum)
    try:
        console.print(table)
        if below is not None:
            console.print(f" {below}", markup=False, soft_wrap=True)
    except BrokenPipeError as error:
        raise ClosedPipeError from error


def visible(text: str) -> str:
    r"""Give a text in one line, which can do nothing to the terminal.

    >>> visible("a\x1b[2Jb\n")
    'a\\x1b[2Jb\\n'
    """
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in text
    )
