"""The clients that are compared: each reads a query into one kind of frame.

Those that read in parts take `partition_num` and `partition_on` too.
"""

import asyncio
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from benches import drain, drain_mssql, drain_mysql, drain_sqlite
from longshore.odbc.drivers import SETTINGS as ODBC_SETTINGS


@dataclass(frozen=True)
class Peer:
    """A client and the frame that it makes.

    `modules`: what it imports when it reads. `limit`: the client that it is compared with.
    """

    client: str
    frame: str
    modules: tuple[str, ...]
    read: Callable[..., Any]
    limit: str = "drain"

    def prepare(self) -> None:
        """Import what the client needs, so that it belongs to the baseline."""
        for module in self.modules:
            importlib.import_module(module)


def _longshore(frame: str, **options: Any) -> Callable[..., Any]:
    def read(query: str, url: str, **partition: Any) -> Any:
        import longshore

        return longshore.read_sql(query, url, return_type=frame, options=options, **partition)

    return read


def _connectorx(frame: str, **options: Any) -> Callable[..., Any]:
    def read(query: str, url: str, **partition: Any) -> Any:
        import connectorx

        # Its URLs of files have two slashes before the path.
        place = url.replace("sqlite:////", "sqlite:///")
        # It encrypts the login all the same.
        place = place.replace("encrypt=off", "encrypt=false&trust_server_certificate=true")
        return connectorx.read_sql(place, query, return_type=frame, **options, **partition)

    return read


def _adbc(driver: str, method: str) -> Callable[..., Any]:
    def read(query: str, url: str) -> Any:
        dbapi = importlib.import_module(f"{driver}.dbapi")
        place = drain_sqlite.path(url) if url.startswith("sqlite:") else url
        with dbapi.connect(place) as connection, connection.cursor() as cursor:
            cursor.execute(query)
            return getattr(cursor, method)()

    return read


def _driver(query: str, url: str) -> Any:
    import longshore.adbc

    with longshore.adbc.connect(url) as connection, connection.cursor() as cursor:
        return cursor.execute(query).fetch_arrow_table()


def _read_sql(query: str, url: str) -> Any:
    import pandas as pd

    import longshore.adbc

    connection: Any = longshore.adbc.connect(url)
    with connection:
        return pd.read_sql(query, connection)


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


def _arrow_odbc(query: str, url: str) -> Any:
    import arrow_odbc
    import pyarrow as pa

    # The driver's settings, and texts in UTF-16, as Longshore has them.
    more = ";".join(f"{name}={value}" for name, value in ODBC_SETTINGS["psqlodbc"].items())
    connection = arrow_odbc.connect(f"{url.removeprefix('odbc:')};{more}")
    encoding = arrow_odbc.TextEncoding.UTF16
    reader = connection.read_arrow_batches(query, payload_text_encoding=encoding, max_text_size=512)
    return pa.Table.from_batches(reader, reader.schema)


ARROW, PANDAS = ("longshore", "pyarrow"), ("longshore", "pandas", "pyarrow")
CONNECTORX_ARROW, CONNECTORX_PANDAS = ("connectorx", "pyarrow"), ("connectorx", "pandas", "pyarrow")
TWO = "drain, 2 parts"
#: Longshore finds a column by itself.
IN_TWO: dict[str, Any] = {"partition_num": 2}
IN_TWO_ON: dict[str, Any] = {"partition_num": 2, "partition_on": "l_orderkey"}
#: Reads whose parts are a client of their own; those of PostgreSQL have a benchmark of their own.
PARTS = (
    Peer("longshore, 2 parts", "arrow", ARROW, partial(_longshore("arrow"), **IN_TWO), TWO),
    Peer("ConnectorX, 2 parts", "arrow", CONNECTORX_ARROW, partial(_connectorx("arrow"), **IN_TWO_ON), TWO),
    Peer("longshore, 2 parts", "pandas", PANDAS, partial(_longshore("pandas"), **IN_TWO), TWO),
    Peer("ConnectorX, 2 parts", "pandas", CONNECTORX_PANDAS, partial(_connectorx("pandas"), **IN_TWO_ON), TWO),
)

POSTGRESQL = (
    Peer("drain", "-", (), drain.drain),
    Peer("drain, patient", "-", (), partial(drain.drain, patient=True)),
    Peer("longshore", "arrow", ARROW, _longshore("arrow")),
    Peer(
        "ADBC",
        "arrow",
        ("adbc_driver_postgresql.dbapi", "pyarrow"),
        _adbc("adbc_driver_postgresql", "fetch_arrow_table"),
    ),
    Peer("ConnectorX", "arrow", CONNECTORX_ARROW, _connectorx("arrow")),
    Peer("longshore", "pandas", PANDAS, _longshore("pandas")),
    Peer(
        "ADBC",
        "pandas",
        ("adbc_driver_postgresql.dbapi", "pandas", "pyarrow"),
        _adbc("adbc_driver_postgresql", "fetch_df"),
    ),
    Peer("ConnectorX", "pandas", CONNECTORX_PANDAS, _connectorx("pandas")),
    Peer("longshore", "polars", ("longshore", "polars"), _longshore("polars")),
    Peer("asyncpg", "records", ("asyncpg",), _asyncpg),
    Peer("pandas", "pandas", ("pandas", "sqlalchemy", "psycopg", "pyarrow"), _pandas("postgresql+psycopg")),
)
MYSQL = (
    Peer("drain", "-", (), drain_mysql.drain),
    Peer("drain, text", "-", (), partial(drain_mysql.drain, protocol="text")),
    Peer("longshore", "arrow", ARROW, _longshore("arrow")),
    Peer("longshore, text", "arrow", ARROW, _longshore("arrow", protocol="text")),
    Peer("ConnectorX", "arrow", CONNECTORX_ARROW, _connectorx("arrow")),
    Peer("ConnectorX, text", "arrow", CONNECTORX_ARROW, _connectorx("arrow", protocol="text")),
    Peer("longshore", "pandas", PANDAS, _longshore("pandas")),
    Peer("ConnectorX", "pandas", CONNECTORX_PANDAS, _connectorx("pandas")),
    Peer("longshore", "polars", ("longshore", "polars"), _longshore("polars")),
    Peer("pandas", "pandas", ("pandas", "sqlalchemy", "pymysql", "pyarrow"), _pandas("mysql+pymysql")),
    Peer(TWO, "-", (), partial(drain_mysql.drain, partition_num=2), TWO),
    *PARTS,
)
#: By itself, Longshore reads a large file in as many parts as there are cores.
ONE = "longshore, 1 part"
IN_ONE: dict[str, Any] = {"partition_num": 1}
SQLITE = (
    Peer("drain", "-", (), drain_sqlite.drain),
    Peer("longshore", "arrow", ARROW, _longshore("arrow")),
    Peer(ONE, "arrow", ARROW, partial(_longshore("arrow"), **IN_ONE)),
    Peer("ADBC", "arrow", ("adbc_driver_sqlite.dbapi", "pyarrow"), _adbc("adbc_driver_sqlite", "fetch_arrow_table")),
    Peer("ConnectorX", "arrow", CONNECTORX_ARROW, _connectorx("arrow")),
    Peer("longshore", "pandas", PANDAS, _longshore("pandas")),
    Peer(ONE, "pandas", PANDAS, partial(_longshore("pandas"), **IN_ONE)),
    Peer("ConnectorX", "pandas", CONNECTORX_PANDAS, _connectorx("pandas")),
    Peer("longshore", "polars", ("longshore", "polars"), _longshore("polars")),
    Peer("pandas", "pandas", ("pandas", "sqlalchemy", "pyarrow"), _pandas("sqlite")),
    Peer(TWO, "-", (), partial(drain_sqlite.drain, partition_num=2), TWO),
    *PARTS,
)
MSSQL = (
    Peer("drain", "-", (), drain_mssql.drain),
    Peer("longshore", "arrow", ARROW, _longshore("arrow")),
    Peer("ConnectorX", "arrow", CONNECTORX_ARROW, _connectorx("arrow")),
    Peer("longshore", "pandas", PANDAS, _longshore("pandas")),
    Peer("ConnectorX", "pandas", CONNECTORX_PANDAS, _connectorx("pandas")),
    Peer("longshore", "polars", ("longshore", "polars"), _longshore("polars")),
)
#: Longshore as an ADBC driver, which has a benchmark of its own.
MANAGER = ("longshore.adbc", "adbc_driver_manager.dbapi", "pandas", "pyarrow")
DRIVER = (
    Peer("longshore.adbc", "arrow", MANAGER, _driver),
    Peer("longshore.adbc", "arrow.to_pandas()", MANAGER, lambda query, url: _driver(query, url).to_pandas()),
    # pandas looks for SQLAlchemy whatever it is given.
    Peer("longshore.adbc", "pandas.read_sql", (*MANAGER, "pandas.io.sql", "sqlalchemy"), _read_sql),
)
ODBC = (
    Peer("arrow-odbc", "-", ("arrow_odbc", "pyarrow"), _arrow_odbc, "arrow-odbc"),
    Peer("longshore", "arrow", ("longshore.sources.odbc", "pyarrow"), _longshore("arrow"), "arrow-odbc"),
    Peer("longshore", "pandas", ("longshore.sources.odbc", "pandas", "pyarrow"), _longshore("pandas"), "arrow-odbc"),
)
#: Who reads what a URL of this scheme names.
PEERS = {"postgresql": POSTGRESQL, "mysql": MYSQL, "mssql": MSSQL, "sqlite": SQLITE, "odbc": ODBC}


def peers(url: str) -> tuple[Peer, ...]:
    """Return the clients for a URL."""
    return PEERS[url.partition(":")[0]]
