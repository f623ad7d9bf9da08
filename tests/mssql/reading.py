"""Reads from the test server: what every session begins with is answered, and then what a test says."""

import datetime as dt
from typing import Any

import pyarrow as pa

import longshore
from tests.servers import MSSQL
from tests.tds.tokens import Column, Count, Part, Raw, Rows, environment
from tests.tds.types import Type

#: The types of `environment` that tell of a transaction, and the number of one.
BEGUN, COMMITTED, ROLLED_BACK = 8, 9, 10
NUMBER = bytes(range(1, 9))

QUERY = "SELECT v FROM boats"


def naive(*parts: int) -> dt.datetime:
    """Return a datetime without a time zone, which most of SQL Server's have not."""
    return dt.datetime(*parts)  # type: ignore[arg-type]  # noqa: DTZ001


def begun() -> Raw:
    """Return that a transaction has begun."""
    return Raw(environment(BEGUN, NUMBER, b""))


def ended(how: int = COMMITTED) -> Raw:
    """Return that it has ended."""
    return Raw(environment(how, b"", NUMBER))


def prepare(server: MSSQL) -> None:
    """Have the server answer what every session says by itself."""
    server.answer("SET TEXTSIZE", Count(), kind="batch", match="starts")
    server.answer("SET TRANSACTION ISOLATION LEVEL READ COMMITTED", Count(), kind="batch")
    server.answer("BEGIN TRANSACTION", begun(), Count())
    server.answer("COMMIT TRANSACTION", ended(), Count())
    server.answer("IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION", ended(ROLLED_BACK), Count())


def url(server: MSSQL, **settings: str) -> str:
    """Return the server's URL, without encryption unless the settings say otherwise."""
    port = settings.pop("port", str(server.port))
    rest = "&".join(f"{key}={value}" for key, value in {"encrypt": "off", **settings}.items())
    return f"mssql://sa:{server.password}@127.0.0.1:{port}/master?{rest}"


def answer(server: MSSQL, *said: Part, query: str = QUERY) -> None:
    """Have the server answer a query."""
    prepare(server)
    server.answer(query, *said)


def rows(kind: Type, *values: Any, compressed: bool = False) -> Rows:
    """Return a column `v` of a type."""
    return Rows([Column("v", kind)], [(value,) for value in values], compressed=compressed)


def read(server: MSSQL, query: str = QUERY, **keywords: Any) -> pa.Table:
    """Read a query into Arrow."""
    return longshore.read_sql(query, url(server), return_type="arrow", **keywords)
