"""The clients that are compared: each reads a query into one kind of frame.

Those that read in parts take `partition_num` and `partition_on` too. `modules` is what a client imports when it reads.
"""

import asyncio
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from benches import drain, drain_mysql


@dataclass(frozen=True)
class Peer:
    """A client and the frame that it makes."""

    client: str
    frame: str
    modules: tuple[str, ...]
    read: Callable[..., Any]

    def prepare(self) -> None:
        """Import what the client needs, so that it belongs to the baseline."""
        for module in self.modules:
            importlib.import_module(module)


def _longshore(frame: str, **options: Any) -> Callable[..., Any]:
    def read(query: str, url: str, **partition: Any) -> Any:
        import longshore

        return longshore.read_sql(query, url, return_type=frame, options=options, **partition)  # type: ignore[call-overload]

    return read


def _connectorx(frame: str, **options: Any) -> Callable[..., Any]:
    def read(query: str, url: str, **partition: Any) -> Any:
        import connectorx

        return connectorx.read_sql(url, query, return_type=frame, **options, **partition)

    return read


def _adbc(method: str) -> Callable[..., Any]:
    def read(query: str, url: str) -> Any:
        from adbc_driver_postgresql import dbapi

        with dbapi.connect(url) as connection, connection.cursor() as cursor:
            cursor.execute(query)
            return getattr(cursor, method)()

    return read


def _asyncpg(query: str, url: str) -> Any:
    import asyncpg

    async def fetch() -> Any:
        connection = await asyncpg.connect(url)
        try:
            return await connection.fetch(query)
        finally:
            await connection.close()

    return asyncio.run(fetch())


def _pandas(scheme: str) -> Callable[..., Any]:
    def read(query: str, url: str) -> Any:
        import pandas as pd
        import sqlalchemy

        engine = sqlalchemy.create_engine(scheme + url[url.index("://") :])
        return pd.read_sql(sqlalchemy.text(query), engine)

    return read


POSTGRESQL = (
    Peer("drain", "-", (), drain.drain),
    Peer("drain, patient", "-", (), partial(drain.drain, patient=True)),
    Peer("longshore", "arrow", ("longshore", "pyarrow"), _longshore("arrow")),
    Peer("ADBC", "arrow", ("adbc_driver_postgresql.dbapi", "pyarrow"), _adbc("fetch_arrow_table")),
    Peer("ConnectorX", "arrow", ("connectorx", "pyarrow"), _connectorx("arrow")),
    Peer("longshore", "pandas", ("longshore", "pandas", "pyarrow"), _longshore("pandas")),
    Peer("ADBC", "pandas", ("adbc_driver_postgresql.dbapi", "pandas", "pyarrow"), _adbc("fetch_df")),
    Peer("ConnectorX", "pandas", ("connectorx", "pandas", "pyarrow"), _connectorx("pandas")),
    Peer("longshore", "polars", ("longshore", "polars"), _longshore("polars")),
    Peer("asyncpg", "records", ("asyncpg",), _asyncpg),
    Peer("pandas", "pandas", ("pandas", "sqlalchemy", "psycopg", "pyarrow"), _pandas("postgresql+psycopg")),
)
MYSQL = (
    Peer("drain", "-", (), drain_mysql.drain),
    Peer("drain, text", "-", (), partial(drain_mysql.drain, protocol="text")),
    Peer("longshore", "arrow", ("longshore", "pyarrow"), _longshore("arrow")),
    Peer("longshore, text", "arrow", ("longshore", "pyarrow"), _longshore("arrow", protocol="text")),
    Peer("ConnectorX", "arrow", ("connectorx", "pyarrow"), _connectorx("arrow")),
    Peer("ConnectorX, text", "arrow", ("connectorx", "pyarrow"), _connectorx("arrow", protocol="text")),
    Peer("longshore", "pandas", ("longshore", "pandas", "pyarrow"), _longshore("pandas")),
    Peer("ConnectorX", "pandas", ("connectorx", "pandas", "pyarrow"), _connectorx("pandas")),
    Peer("longshore", "polars", ("longshore", "polars"), _longshore("polars")),
    Peer("pandas", "pandas", ("pandas", "sqlalchemy", "pymysql", "pyarrow"), _pandas("mysql+pymysql")),
)
#: Who reads what a URL of this scheme names.
PEERS = {"postgresql": POSTGRESQL, "mysql": MYSQL}


def peers(url: str) -> tuple[Peer, ...]:
    """Return the clients for a URL."""
    return PEERS[url.partition("://")[0]]
