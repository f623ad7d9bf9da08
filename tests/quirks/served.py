"""Our own Flight SQL server in front of other sources, and our client for it."""

import contextlib
import os
import socket
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import longshore
from tests.cutter import http2_messages
from tests.quirks import duckdb, postgresql, store
from tests.quirks.quirks import Quirks, Refusal

#: Of Linux's states of a connection.
_ESTABLISHED = b"\x01"
#: The servers by their ports.
_SERVERS: dict[int, longshore.Server] = {}


def _server(url: str) -> longshore.Server:
    return _SERVERS[urlsplit(url).port or 0]


def _runs(url: str, _marker: str) -> bool:
    """Tell whether the server runs anything, or has the rest of it."""
    return _server(url)._core.held > 0  # noqa: SLF001  what clients hold is told to tests alone


def _sessions(url: str) -> int:
    """Count what clients hold and their connections."""
    server = _server(url)
    return _connections(server.port) + server._core.held  # noqa: SLF001


def _connections(port: int) -> int:
    """Count this process's established connections at a port: to read the kernel's table takes four milliseconds."""
    count = 0
    for descriptor in os.listdir("/proc/self/fd"):  # noqa: PTH208
        # One may be closed meanwhile.
        with contextlib.suppress(OSError):
            if not os.readlink(f"/proc/self/fd/{descriptor}").startswith("socket:"):  # noqa: PTH115
                continue
            with socket.socket(fileno=os.dup(int(descriptor))) as found:
                if found.family in (socket.AF_INET, socket.AF_INET6) and found.getsockname()[1] == port:
                    count += found.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1) == _ESTABLISHED
    return count


def _served(quirks: Quirks, settings: str = "", cannot: Mapping[str, Refusal] = {}, **more: object) -> Quirks:
    """Return the quirks of a source behind the server."""

    @contextlib.contextmanager
    def behind(request: pytest.FixtureRequest, directory: Path) -> Iterator[str]:
        with quirks.place(request, directory) as url, longshore.serve(url, port=0) as server:
            _SERVERS[server.port] = server
            yield f"{server.url}/{settings}"

    changed = {
        "source": f"served_{quirks.source}",
        "place": behind,
        "vendor": quirks.vendor or quirks.source,
        "running": _runs,
        "sessions": _sessions,
        # Any setting will do: without TLS the scheme says it.
        "plain": "?cookies=true",
        "messages": http2_messages,
        # The status that ends a stream is the last, after data in one frame or two; the client says that it goes.
        "last_words": {"down": 40, "up": 1000},
        "masks": (0xFF, 0x01),
        "users": (),
        "fills_partitions": False,
        "cannot": {**{what: why for what, why in quirks.cannot.items() if what not in _CAN}, **_CANNOT, **cannot},
    }
    return replace(quirks, **{**changed, **more})  # type: ignore[arg-type]


#: The promises that the server and its client keep, whatever the source.
_CAN = {
    "types of parameters",
    "partitions of one snapshot",
    "a connection in a forked child",
    "a password",
    "a network",
}
_CANNOT = {
    "partitions": Refusal("the server parts a result as it comes, not by a column's values"),
    "partitions by a column": Refusal("the server parts a result as it comes, not by a column's values"),
    "a temporary table for rows": Refusal("no temporary table for rows"),
    "scripts": Refusal("one statement at a time"),
    "writes over several connections": Refusal("writes over one connection", longshore.SerialWriteWarning),
}

#: The modules that do not depend on what is served.
_SAME = frozenset(
    {"test_arguments", "test_copies", "test_dbapi", "test_dbapi_compliance", "test_executemany"}
    | {"test_forks", "test_frames_into_tables"}
    | {"test_interruption", "test_network", "test_secrets", "test_sessions", "test_streams"}
    | {"test_stream_memory"}
    | {"test_tasks", "test_verbs"}
)
_LEFT_OUT = {"test_warnings": "a result of any query comes in parts"}
_NOT_PREPARED = {"test_preparing": "parameters' types are told as JDBC's driver binds them: `tests/flight_server`"}

DUCKDB = _served(duckdb.QUIRKS, left_out=_LEFT_OUT | _NOT_PREPARED)
# Its engine is the same.
STORE = _served(
    store.QUIRKS,
    # Flight SQL has a number for "not this value", and none for the reason.
    cannot={"a current schema": Refusal("does not take", longshore.ProgrammingError)},
    left_out=_LEFT_OUT | _NOT_PREPARED,
    in_the_long_run=_SAME | {"test_cancel"},
)
POSTGRESQL = _served(
    postgresql.QUIRKS,
    "?placeholders=$1",
    # What its rows are no longer wanted of is cancelled, which fails PostgreSQL's transaction.
    cannot={
        "test_rows_that_are_given_up_leave_the_transaction": Refusal(
            "current transaction is aborted", longshore.OperationalError
        )
    },
    plain="&cookies=true",
    no_users="",
    # The server's sessions are no client's.
    session=None,
    left_out=_LEFT_OUT,
    in_the_long_run=_SAME,
    lists_see_one_snapshot=False,
)

ALL = (DUCKDB, STORE, POSTGRESQL)
