"""TPC-H's lineitem in a SQLite file, loaded once and kept in the cache; see `benches.lineitem`."""

import contextlib
import csv
import io
import sqlite3
import subprocess
from pathlib import Path

from benches.lineitem import COLUMNS, TABLES, alone, say, tpchgen
from tests.servers import cache


def loaded(scale: float) -> str:
    """Return the URL of the file that holds the tables at this scale; where it is not there yet, make it."""
    file = cache() / f"tpch_{scale:g}.sqlite"
    with alone(file.with_suffix(".lock")):
        if not file.exists():
            new = file.with_suffix(".new")
            new.unlink(missing_ok=True)
            _load_tables(scale, new)
            # The name is given last: a load that was cut short has another.
            new.rename(file)
    return f"sqlite:///{file}"


def _load_tables(scale: float, file: Path) -> None:
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as connection:
        # A file that is thrown away where the load does not come to its end needs no journal.
        connection.execute("PRAGMA journal_mode = OFF")
        connection.execute("PRAGMA synchronous = OFF")
        for table, number in TABLES.items():
            say(f"loading {table} at scale factor {scale:g} into SQLite")
            connection.execute(f"CREATE TABLE {table} ({COLUMNS.format(number=number)})")
            connection.execute("BEGIN")
            _load(scale, connection, table)
            connection.execute("COMMIT")


def _load(scale: float, connection: sqlite3.Connection, table: str) -> None:
    command = [tpchgen(), "csv", f"--scale-factor={scale:g}", "--tables=lineitem", "--stdout", "--quiet"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as generator:
        if generator.stdout is None:
            return
        rows = csv.reader(io.TextIOWrapper(generator.stdout, encoding="utf-8", newline=""))
        marks = ", ".join("?" for _ in next(rows))
        connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)
    if generator.returncode:
        message = f"{' '.join(command)} ended with {generator.returncode}"
        raise RuntimeError(message)
