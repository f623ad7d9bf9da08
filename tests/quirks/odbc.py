"""ODBC drivers, over servers that other sources have, too."""

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow as pa
import pytest

import longshore
from tests.quirks import mariadb, postgresql
from tests.quirks.columns import UUID
from tests.quirks.quirks import Column, Kind, Quirks, Refusal
from tests.servers import Missing

#: Where Debian has the drivers.
_DRIVERS = Path("/usr/lib/x86_64-linux-gnu/odbc")


def address(driver: str, package: str, **settings: object) -> str:
    """Give the address of a database through a driver; raises ``Missing`` where it is not installed."""
    if not (_DRIVERS / driver).exists():
        raise Missing(f"the ODBC driver {driver} is missing", f"apt install unixodbc {package}")
    return ";".join([f"odbc:Driver={_DRIVERS / driver}", *(f"{name}={value}" for name, value in settings.items())])


def _there(driver: str, package: str, **settings: object) -> str:
    from tests.fixtures import require

    with require(lambda: contextlib.nullcontext(address(driver, package, **settings))) as found:
        return found


def through(url: str) -> str:
    """Give the address of a database of PostgreSQL through its ODBC driver."""
    parts = urlsplit(url)
    place = {"Server": parts.hostname, "Port": parts.port, "Database": parts.path[1:], "UID": parts.username}
    return _there("psqlodbcw.so", "odbc-postgresql", **place)


@contextlib.contextmanager
def in_postgresql(request: pytest.FixtureRequest, directory: Path) -> Iterator[str]:
    """Give the address of an empty database of PostgreSQL through its ODBC driver."""
    with postgresql.QUIRKS.place(request, directory) as url:
        yield through(url)


@contextlib.contextmanager
def in_mariadb(
    request: pytest.FixtureRequest, directory: Path, *, server: Quirks = mariadb.QUIRKS, **more: str
) -> Iterator[str]:
    """Give the address of an empty database of MariaDB, or of MySQL, through MariaDB's ODBC driver."""
    with server.place(request, directory) as url:
        parts = urlsplit(url)
        place = {"Server": parts.hostname, "Port": parts.port, "UID": more.get("user", parts.username)}
        place |= {"PWD": more.get("password", parts.password or ""), "Database": more.get("database", parts.path[1:])}
        yield _there("libmaodbc.so", "odbc-mariadb", **place)


@contextlib.contextmanager
def in_sqlite(_: pytest.FixtureRequest, directory: Path) -> Iterator[str]:
    """Give the address of an empty file through SQLite's ODBC driver."""
    yield _there("libsqlite3odbc.so", "libsqliteodbc", Database=directory / "odbc.db")


POSTGRESQL = replace(
    postgresql.QUIRKS,
    source="odbc_postgresql",
    vendor="postgresql",
    place=in_postgresql,
    placeholder="?",
    # It reads by a cursor, whose FETCH has not the query's text.
    running="SELECT count(*) AS n FROM pg_stat_activity WHERE (query LIKE '%{marker}%' OR query LIKE 'fetch %') "
    "AND datname = current_database() AND state <> 'idle' AND pid <> pg_backend_pid()",
    left_out={"test_network": "the wire is libpq's, behind the driver"},
    types={**postgresql.QUIRKS.types, "json": Kind("json", pa.string()), "uuid": Kind("uuid", UUID)},
    # As the driver says of them: texts.
    more={
        native: column
        for native, column in postgresql.QUIRKS.more.items()
        if native in {"oid", "varchar(5)", "timetz", "inet", "int4range", "timestamptz"}
    },
    tells_not_null=False,
    tells_failed_casts=False,
    cannot={
        "partitions of one snapshot": Refusal("no snapshot that other processes can join"),
        "partitions": Refusal("an ODBC driver reads a query whole"),
        # Its driver asks for the first rows along with the columns.
        "a stream before its first row": Refusal("no answer within", longshore.TimeoutError),
        "writes over several connections": Refusal("writes over one connection", longshore.SerialWriteWarning),
    },
)

MARIADB = replace(
    mariadb.QUIRKS,
    source="odbc_mariadb",
    vendor="mariadb",
    place=in_mariadb,
    # No statement makes one like new, so that a pool connects again.
    session=None,
    # The driver fetches a result whole: one that ends, after two seconds.
    streaming="SELECT seq AS i, repeat('x', 100) AS t FROM seq_1_to_2000000",
    left_out={
        "test_network": "the wire is the driver's",
        **dict.fromkeys(
            ("test_stream_memory", "test_rows_need_no_more_memory_than_some_of_them"),
            "the driver fetches a result whole",
        ),
        **dict.fromkeys(
            ("test_a_dropped_stream_ends_its_query", "test_cancel_from_another_thread"),
            "the query of a stream has ended with its first rows; `test_cancel` stops those before",
        ),
        "test_a_table_by_its_name_in_sql": "a name in another database's quotes fails, and its transaction with it",
    },
    in_the_long_run=frozenset(
        {
            *("test_cancel", "test_copies_that_fail", "test_dbapi", "test_forks", "test_interruption"),
            *("test_sessions", "test_streams", "test_tasks"),
            # One row after the other, tens of thousands take ten seconds.
            *("test_executemany_is_all_or_nothing", "test_a_cancelled_executemany_leaves_no_transaction"),
        }
    ),
    types={
        **mariadb.QUIRKS.types,
        "time": Kind("time(6)", pa.time64("us")),
        "uuid": Kind("uuid", pa.string(), str),
        "json": Kind("json", pa.string()),
    },
    # As the driver says of them: bits are bytes, a time is one of day, a year has no sign.
    more={
        **{native: column for native, column in mariadb.QUIRKS.more.items() if native not in {"bit(64)", "time"}},
        "year": Column(pa.uint16(), (1901, 2155)),
    },
    tells_not_null=False,
    cannot={
        "a new table in a transaction": Refusal("would commit the open transaction", longshore.ProgrammingError),
        "partitions of one snapshot": Refusal("no snapshot that other processes can join"),
        "partitions": Refusal("an ODBC driver reads a query whole"),
        "types of parameters": Refusal("does not tell their types"),
        "a stream before its first row": Refusal("no answer within", longshore.TimeoutError),
        "scripts": Refusal("one statement at a time"),
        "a temporary table for rows": Refusal("no temporary table for rows"),
        "writes over several connections": Refusal("writes over one connection", longshore.SerialWriteWarning),
    },
)
