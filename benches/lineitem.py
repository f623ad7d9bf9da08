"""TPC-H's lineitem in a private PostgreSQL, loaded once and kept in the cache.

    with measured_server() as server:
        url = loaded(1, server)

The tables are `lineitem`, with TPC-H's types, and `lineitem_float`, whose numeric columns are double precision.
`kept` keeps databases of other tables next to them.
"""

import contextlib
import fcntl
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import psutil

from tests.servers import Endpoint, Missing, PostgreSQL, cache

COLUMNS = """
    l_orderkey bigint NOT NULL,
    l_partkey bigint NOT NULL,
    l_suppkey bigint NOT NULL,
    l_linenumber integer NOT NULL,
    l_quantity {number} NOT NULL,
    l_extendedprice {number} NOT NULL,
    l_discount {number} NOT NULL,
    l_tax {number} NOT NULL,
    l_returnflag char(1) NOT NULL,
    l_linestatus char(1) NOT NULL,
    l_shipdate date NOT NULL,
    l_commitdate date NOT NULL,
    l_receiptdate date NOT NULL,
    l_shipinstruct char(25) NOT NULL,
    l_shipmode char(10) NOT NULL,
    l_comment varchar(44) NOT NULL
"""
TABLES = {"lineitem": "numeric(15,2)", "lineitem_float": "double precision"}
MEBIBYTE = 1 << 20


@contextlib.contextmanager
def measured_server() -> Iterator[PostgreSQL]:
    """Start the PostgreSQL of the measurements, whose data stays in the cache. One run at a time has it."""
    server = PostgreSQL()
    server.data = cache() / f"measured-{server.version}"
    server.config = {
        "shared_buffers": f"{buffers()}MB",
        # Its data is kept, so it has to be right after a loss of power too.
        "fsync": "on",
        "full_page_writes": "on",
        # Nothing is to run next to a measurement.
        "autovacuum": "off",
    }
    with alone(server.data.with_suffix(".lock")), server:
        yield server


def loaded(scale: float, server: Endpoint) -> str:
    """Return the URL of the database that holds the tables at this scale; where it is not there yet, load it."""
    return kept(f"tpch_{scale:g}".replace(".", "_"), server, partial(_load_tables, scale, server))


def kept(database: str, server: Endpoint, load: Callable[[str], None]) -> str:
    """Return the URL of a database; where it is not there yet, make it and have ``load`` fill it."""
    if not server.psql(f"SELECT 1 FROM pg_database WHERE datname = '{database}'"):
        # The name is given last. A load that was cut short has none, and its database is dropped, its files with it.
        server.psql(f"DROP DATABASE IF EXISTS {database}_loading WITH (FORCE); CREATE DATABASE {database}_loading")
        load(f"{database}_loading")
        server.psql(f"ALTER DATABASE {database}_loading RENAME TO {database}")
    return server.url(database=database)


def _load_tables(scale: float, server: Endpoint, database: str) -> None:
    for table, number in TABLES.items():
        say(f"loading {table} at scale factor {scale:g}")
        _load(scale, server, database, table, number)


def _load(scale: float, server: Endpoint, database: str, table: str, number: str) -> None:
    command = [tpchgen(), "csv", f"--scale-factor={scale:g}", "--tables=lineitem", "--stdout", "--quiet"]
    # A table filled in the transaction that made it is not logged, and FREEZE spares its readers the hint bits.
    sql = f"""
        BEGIN;
        CREATE TABLE {table} ({COLUMNS.format(number=number)});
        COPY {table} FROM STDIN (FORMAT csv, HEADER, FREEZE);
        COMMIT
    """
    with subprocess.Popen(command, stdout=subprocess.PIPE) as generator:
        server.psql(sql, database=database, stdin=generator.stdout)
    if generator.returncode:
        message = f"{' '.join(command)} ended with {generator.returncode}"
        raise RuntimeError(message)
    server.psql(f"ANALYZE {table}; CHECKPOINT", database=database)


def tpchgen() -> str:
    """Return the program that makes the data."""
    program = Path(sysconfig.get_path("scripts"), "tpchgen-cli")
    if not program.exists():
        reason = "tpchgen-cli is not installed"
        raise Missing(reason, "pip install tpchgen-cli")
    return str(program)


def buffers() -> int:
    """Return how many MiB the server may keep: scale factor 1 stays in 4 GiB, for a scan of over a quarter does not."""
    return min(4096, psutil.virtual_memory().total // MEBIBYTE // 4)


@contextlib.contextmanager
def alone(path: Path) -> Iterator[None]:
    """Have the file locked, so that one run at a time goes on."""
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another run to end")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def say(text: str) -> None:
    """Tell how far it is."""
    sys.stderr.write(f"{text}\n")
