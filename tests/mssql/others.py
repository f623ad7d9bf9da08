"""Other clients of SQL Server in Python, and what each makes of a value."""

import datetime as dt
from collections.abc import Callable
from typing import Any

import mssql_python
import pymssql
import pytds

from tests.conformance.mssql_cases.case import MSSQLCase
from tests.servers import MSSQL
from tests.tds.types import Type


def _pytds(server: MSSQL) -> Any:
    return pytds.connect(
        dsn=server.host,
        port=server.port,
        user=server.user,
        password=server.password,
        database=server.database,
        autocommit=True,
    )


def _pymssql(server: MSSQL) -> Any:
    return pymssql.connect(
        server=server.host,
        port=str(server.port),
        user=server.user,
        password=server.password,
        database=server.database,
        autocommit=True,
        conn_properties="",
    )


def _mssql_python(server: MSSQL) -> Any:
    return mssql_python.connect(odbc(server), autocommit=True)


def odbc(server: MSSQL, port: int | None = None, **settings: str) -> str:
    """Return a connection string of Microsoft's ODBC driver."""
    told = {
        "Server": f"{server.host},{port or server.port}",
        "UID": server.user,
        "PWD": f"{{{server.password}}}",
        "Encrypt": "no",
        "TrustServerCertificate": "yes",
        **settings,
    }
    return ";".join(f"{key}={value}" for key, value in told.items())


#: python-tds has a TDS of its own, pymssql FreeTDS's, mssql-python Microsoft's ODBC driver.
CLIENTS: dict[str, Callable[[MSSQL], Any]] = {
    "python-tds": _pytds,
    "pymssql": _pymssql,
    "mssql-python": _mssql_python,
}
_NO_TYPE = "it does not know the type, and a server would have sent it text"
#: The types that are not read with a client, and why.
UNREAD: dict[str, dict[str, str]] = {
    "python-tds": {"json": _NO_TYPE, "vector": _NO_TYPE, "UTF8": "it does not ask for it"},
    "pymssql": {"json": _NO_TYPE, "vector": _NO_TYPE, "sql_variant": "it shows bytes without their type"},
    "mssql-python": {"json": _NO_TYPE, "vector": _NO_TYPE, "sql_variant": "it takes the first value's type for all"},
}


def reads(client: str, case: MSSQLCase) -> bool:
    """Whether a client can show a case's values."""
    return not any(part in case.name for part in UNREAD[client])


def shown(client: str, kind: Type, value: Any) -> Any:
    """Return what a client shows of a value: Python's own classes have six digits behind the second."""
    if kind.name == "sql_variant":
        return shown(client, *value)
    if client == "mssql-python" and isinstance(value, str) and kind.length in {"plp", "pointer"}:
        # It takes the one for a mark of the byte order, and the other for the text's end.
        return value.removeprefix("\ufeff").rstrip("\0")
    return _temporal(kind.name, value)


def _temporal(name: str, value: Any) -> Any:
    if name == "date":
        return dt.date.fromisoformat(value)
    if name.startswith("time"):
        return _clock(value)
    if name.startswith("datetimeoffset"):
        stamp, _, offset = value.rpartition(" ")
        hours, minutes = offset[1:].split(":")
        zone = dt.timedelta(hours=int(hours), minutes=int(minutes)) * (-1 if offset[0] == "-" else 1)
        return _stamp(stamp).replace(tzinfo=dt.timezone(zone))
    return _stamp(value) if name.startswith(("datetime", "smalldatetime")) else value


def _stamp(value: str) -> dt.datetime:
    day, clock = value.split(" ")
    return dt.datetime.combine(dt.date.fromisoformat(day), _clock(clock))


def _clock(value: str) -> dt.time:
    seconds, _, fraction = value.partition(".")
    return dt.time.fromisoformat(seconds).replace(microsecond=int(fraction[:6].ljust(6, "0")))
