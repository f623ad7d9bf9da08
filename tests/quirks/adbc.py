"""ADBC drivers, over servers and files that other sources have, too."""

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import pytest

import longshore
from tests.quirks import postgresql
from tests.quirks.quirks import Refusal

Place = Callable[[pytest.FixtureRequest, Path], AbstractContextManager[str]]


def driven(driver: str, place: Place, scheme: str) -> Place:
    """Return what gives the URL of a database through a driver."""

    @contextlib.contextmanager
    def through(request: pytest.FixtureRequest, directory: Path) -> Iterator[str]:
        with place(request, directory) as url:
            yield f"adbc:driver={driver};uri={{{scheme}{url.partition(':')[2]}}}"

    return through


#: Types that the driver hands on as the bytes of PostgreSQL's protocol.
_OPAQUE = {"xid8", "timetz", "inet", "int4range"}

POSTGRESQL = replace(
    postgresql.QUIRKS,
    source="adbc_postgresql",
    place=driven("adbc_driver_postgresql", postgresql.QUIRKS.place, "postgresql:"),
    left_out={"test_network": "the wire is libpq's, behind the driver"},
    more={native: column for native, column in postgresql.QUIRKS.more.items() if native not in _OPAQUE},
    tells_not_null=False,
    tells_failed_casts=False,
    cannot={
        "partitions of one snapshot": Refusal("no snapshot that other processes can join"),
        "partitions": Refusal("an ADBC driver reads a query whole"),
        "writes over several connections": Refusal("writes over one connection", longshore.SerialWriteWarning),
        # A write that fails within it leaves it to be rolled back.
        **dict.fromkeys(
            ("a transaction", "a new table in a transaction"), Refusal("first rollback", longshore.ProgrammingError)
        ),
        "scripts": Refusal("one statement at a time"),
        # Its driver asks for the first rows along with the columns.
        "a stream before its first row": Refusal("no answer within", longshore.TimeoutError),
        # It gives a parameter the type of Python's value.
        "json as a parameter": Refusal("is of type json but expression is of type text", longshore.ProgrammingError),
    },
)
