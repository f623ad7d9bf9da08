"""Asking a server for one value, or for why it cannot be had."""

import time
from typing import Any
from urllib.parse import quote

import pytest

import longshore
from tests.mysql.reading import value

#: Each character that a URL gives a meaning to, and some that a shell does.
PASSWORD = "aa#@/:?&=%+ \\'\"é"


def literal(text: str) -> str:
    """Give a text as SQL has it."""
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def words(given: dict[str, str]) -> dict[str, Any]:
    """Give settings whose names are no names of Python's to `url`."""
    return dict(given)


def who(conn: Any, **arguments: Any) -> str:
    """Tell as whom the server sees us."""
    return str(value("SELECT user() AS u", conn, **arguments)).partition("@")[0]


def failure(conn: Any, kind: type[longshore.Error] = longshore.OperationalError) -> longshore.Error:
    """Return the error that connecting ends with: of this class, quick, with a remedy and without the password."""
    started = time.monotonic()
    with pytest.raises(kind) as caught:
        value("SELECT 1", conn)
    assert time.monotonic() - started < 5
    for secret in (PASSWORD, quote(PASSWORD, safe=""), "hidden"):
        assert secret not in str(caught.value)
        assert secret not in repr(caught.value)
    return caught.value
