"""Tables on standard output, for people."""

import sys

from rich.console import Console
from rich.table import Table

from longshore.shell.speaking import say

__all__ = ["printed", "visible"]


def printed(table: Table, *, below: str | None = None) -> None:
    """Write a table to standard output, as wide as it is, or as the terminal; and a line below it."""
    console = Console(file=sys.stdout, highlight=False)
    if not console.is_terminal:
        console.width = max(console.width, console.measure(table).maximum)
    # rich would end the process where nobody reads.
    with console.capture() as drawn:
        console.print(table)
    say(drawn.get() + (f" {below}" if below is not None else ""))


def visible(text: str) -> str:
    r"""Give a text in one line, which can do nothing to the terminal.

    >>> visible("a\x1b[2Jb\n")
    'a\\x1b[2Jb\\n'
    """
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in text
    )
