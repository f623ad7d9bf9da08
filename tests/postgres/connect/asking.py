"""Asking a server for one value, or for why it cannot be had."""

import time
from urllib.parse import quote

import pytest

import longshore

#: Each character that a URL gives a meaning to, and some that a shell or the password file does.
PASSWORD = "aa#@/:?&=%+ \\'\"é"
Connection = str | dict[str, object]


def read(connection: Connection, query: str = "SELECT 1 AS one") -> object:
    """Return the only value of the query's result."""
    (value,) = longshore.read_sql(query, connection, return_type="arrow").to_pydict()["one"]
    return value


def failure(connection: Connection, kind: type[longshore.Error] = longshore.OperationalError) -> longshore.Error:
    """Return the error that connecting ends with: of this class, quick, with a remedy and without the password."""
    started = time.monotonic()
    with pytest.raises(kind) as raised:
        read(connection)
    assert time.monotonic() - started < 5
    for secret in (PASSWORD, quote(PASSWORD, safe=""), "hidden"):
        assert secret not in str(raised.value)
        assert secret not in repr(raised.value)
    return raised.value


def hosts(*ports: int, **parameters: str) -> str:
    """Return the URL of several servers at 127.0.0.1."""
    places = ",".join(f"127.0.0.1:{port}" for port in ports)
    query = "&".join(f"{key}={quote(value, safe='')}" for key, value in parameters.items())
    return f"postgresql://{places}/postgres?{query}"
