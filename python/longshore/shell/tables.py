"""Tables on standard output, for people."""

import sys

from rich.console import Console
from rich.table import Table

from longshore.shell.speaking import say
from longshore.shell.streams import named

__all__ = ["printed", "terminal_width", "visible"]

#: Where there is no terminal, everything is written.
_ENDLESS = 1 << 20


def printed(table: Table, *, below: str | None = None) -> None:
    """Write a table to standard output, as wide as it is, or as the terminal; and a line below it."""
    console = Console(file=sys.stdout, highlight=False)
    if not console.is_terminal:
        console.width = _ENDLESS
    # rich would end the process where nobody reads.
    with named("standard output"), console.capture() as drawn:
        console.print(table)
    say(drawn.get() + (f" {below}" if below is not None else ""))


def terminal_width() -> int:
    """Give the columns of the terminal that standard output is, or very many."""
    console = Console(file=sys.stdout)
    return console.width if console.is_terminal else _ENDLESS


def visible(text: str) -> str:
    r"""Give a text in one line, which can do nothing to the terminal.

    >>> visible("a\x1b[2Jb\n")
    'a\\x1b[2Jb\\n'
    """
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in text
    )
