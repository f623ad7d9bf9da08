"""Texts of callers: what UTF-8 can hold, what is not a connection instead, and what of it an error may show."""

import difflib
import re
from collections.abc import Iterable, Sequence
from typing import NoReturn

from longshore import _core
from longshore.errors import InterfaceError

_PASSWORD = r"(?:pass(?:word|wd)?|pwd|token|secret)\s*="  # noqa: S105  a pattern
_HIDDEN = re.compile(rf"://|{_PASSWORD}", re.IGNORECASE)
#: A name or a value may well be a URL, but hardly one with a login.
_LOGIN = re.compile(rf"://[^\s/@]*(?::.*)?@|{_PASSWORD}", re.IGNORECASE | re.DOTALL)
#: Not the start of any statement; a server's error may show all that follows.
_CONNECTION = re.compile(r"\s*[A-Za-z][\w+.-]*\s*(?:://|=)")
_HINT = "look at the order of the arguments"

#: Of a longer text or list, an error shows the beginning.
_CHARACTERS = 200
_ITEMS = 5


def display(value: object) -> str:
    """Give a value for an error's text: a name, a number or a list of them as it is; of anything else, only the type.

    >>> display("boats"), display([1, None]), display({"password": "rope"}), display("mysql://me:rope@host/x")
    ("'boats'", '[1, None]', 'a dict', 'a URL')
    """
    if isinstance(value, str):
        return _shorten(str(value))
    if value is None or type(value) in {bool, int, float}:
        return repr(value)
    if type(value) in {list, tuple} and isinstance(value, Sequence):
        items = [display(item) for item in value[:_ITEMS]] + ["..."] * (len(value) > _ITEMS)
        return f"[{', '.join(items)}]" if isinstance(value, list) else f"({', '.join(items)})"
    if isinstance(value, bytes | bytearray | memoryview):
        return "bytes"
    name = type(value).__name__
    return f"{'an' if name[0] in 'AEIOUaeiou' else 'a'} {name}"


def encodable(text: str, name: str) -> str:
    """Give ``text`` back; raises ``InterfaceError`` where UTF-8 has no form of it.

    >>> encodable("SELECT 1", "query")
    'SELECT 1'
    """
    at = _lone_surrogate(text)
    if at is None:
        return text
    raise InterfaceError(f"{name} holds a lone surrogate, {text[at]!a}, at character {at + 1}: UTF-8 cannot encode it")


def statement_text(text: str, name: str) -> str:
    """Give a statement back; raises ``InterfaceError``, which shows nothing of it, where it is a connection."""
    if _CONNECTION.match(text):
        _refuse(f"{name} looks like a connection")
    return encodable(text, name)


def first_word(statement: str) -> str:
    """Give the first word of a statement in capitals; nothing where it has none.

    >>> first_word("/* all */ (select 1)"), first_word(" ; -- nothing")
    ('SELECT', '')
    """
    return next(iter(_core.sql_words(statement, 1)), "")


def table_text(text: str, name: str) -> str:
    """Give a table's name back; raises ``InterfaceError``, which shows nothing of it, where it may be a connection."""
    if _HIDDEN.search(text):
        hint = f"{_HINT}; a name with :// or = in it is put in double quotes"
        _refuse(f"{name} looks like a connection", hint)
    return encodable(text, name)


def path_text(text: str, name: str) -> str:
    """Give a path back; raises ``InterfaceError``, which shows nothing of it, where it may be a connection."""
    if _HIDDEN.search(text):
        _refuse(f"{name} looks like a connection", "give the path of a directory")
    return encodable(text, name)


def name_text(text: str, name: str) -> str:
    """Give a name back; raises ``InterfaceError``, which shows nothing of it, where it is a connection with a login."""
    if _LOGIN.search(text):
        _refuse(f"{name} looks like a connection with a password")
    return encodable(text, name)


def column_name(label: object) -> str:
    """Give a column's label as a name; raises ``InterfaceError`` for what no column can be called.

    >>> column_name("berth"), column_name(0)
    ('berth', '0')
    """
    name = encodable(str(label), "a column's name")
    if "\0" in name:
        raise InterfaceError(f"the column {name!r} has a zero byte in its name, where Arrow's names end")
    return name


def _lone_surrogate(text: str) -> int | None:
    # The codec's exception holds the whole text: it must not be the context of another.
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return error.start
    return None


def _refuse(message: str, hint: str = _HINT) -> NoReturn:
    raise InterfaceError(message, hint=hint)


def _shorten(text: str) -> str:
    if "://" in text:
        return "a URL"
    if _HIDDEN.search(text):
        return "a text with a password"
    return repr(text) if len(text) <= _CHARACTERS else f"{text[:_CHARACTERS]!r}..."


def quoted_name(name: str, mark: str = '"') -> str:
    """Give a name in quotes, which are doubled within it; the SQL standard has these."""
    return mark + name.replace(mark, 2 * mark) + mark


def closest(name: str, known: Iterable[str]) -> str | None:
    """Give the known name that is probably meant."""
    return next(iter(difflib.get_close_matches(name, [*known], n=1)), None)
