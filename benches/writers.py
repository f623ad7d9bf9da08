"""The clients that write: `python -m benches.writers SOURCE NAME DATA URL` writes once and prints its figures."""

import csv
import json
import sqlite3
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import adbc_driver_postgresql.dbapi
import adbc_driver_sqlite.dbapi
import polars as pl
import psutil
import psycopg
import pyarrow as pa
import pymysql
import sqlalchemy

import longshore
from benches.drain_sqlite import path

TABLE = "written"


@dataclass(frozen=True)
class Writer:
    """A way to write a table. `prepare` comes before the clock starts, and gives what `write` takes."""

    name: str
    prepare: Callable[[pa.Table, Path, str], Any]
    write: Callable[[Any, str], object]
    is_slow: bool = False


def _empty(data: pa.Table, url: str) -> None:
    """Make the table without rows: to drop those of the writer before is not a work of the next."""
    longshore.write_sql(data.slice(0, 0), TABLE, url, if_exists="replace")


def _table(data: pa.Table, _file: Path, _url: str) -> pa.Table:
    return data


def _doubles(data: pa.Table, _file: Path, _url: str) -> pa.Table:
    """Give the table without decimals, which pandas has as objects only and ADBC's SQLite not at all."""
    # By way of text: pyarrow's own cast is not to the nearest double, and what is not a cent is refused as one.
    for at, field in enumerate(data.schema):
        if pa.types.is_decimal(field.type):
            data = data.set_column(at, field.name, data.column(at).cast(pa.string()).cast(pa.float64()))
    return data


def _frame(data: pa.Table, file: Path, url: str) -> Any:
    return _doubles(data, file, url).to_pandas(date_as_object=False)


def _reals(data: pa.Table, file: Path, url: str) -> pa.Table:
    """Give the table without decimals, and have the database's columns be of its types."""
    data = _doubles(data, file, url)
    _empty(data, url)
    return data


def _real_frame(data: pa.Table, file: Path, url: str) -> Any:
    return _reals(data, file, url).to_pandas(date_as_object=False)


def _longshore(data: Any, url: str) -> None:
    longshore.write_sql(data, TABLE, url, if_exists="truncate" if url.startswith("postgresql") else "append")


def _longshore_in_parallel(data: Any, url: str) -> None:
    longshore.write_sql(data, TABLE, url, if_exists="replace", parallel=2)


def _psql(url: str, sql: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(sql.encode())


def _copied(data: pa.Table, file: Path, url: str) -> Path:
    """Have the server write the file that it is to load."""
    binary = file.with_suffix(".copy")
    if not binary.exists():
        longshore.write_sql(data, TABLE, url, if_exists="replace")
        with (
            psycopg.connect(url) as connection,
            connection.cursor() as cursor,
            binary.open("wb") as opened,
            cursor.copy(f"COPY {TABLE} TO STDOUT (FORMAT binary)") as rows,
        ):
            opened.writelines(rows)
        _empty(data, url)
    return binary


def _copied_halves(data: pa.Table, file: Path, url: str) -> list[Path]:
    """Have the server write two files, each of half the rows."""
    half = len(data) // 2
    halves = {"first": data.slice(0, half), "second": data.slice(half)}
    return [_copied(rows, file.with_stem(f"{file.stem}-{name}"), url) for name, rows in halves.items()]


def _copy(binary: Path, url: str) -> None:
    _psql(url, f"BEGIN; TRUNCATE {TABLE}; COPY {TABLE} FROM '{binary}' (FORMAT binary); COMMIT")


def _copy_halves(halves: list[Path], url: str) -> None:
    _psql(url, f"CREATE TABLE staging (LIKE {TABLE})")
    with ThreadPoolExecutor() as threads:
        list(threads.map(lambda half: _psql(url, f"COPY staging FROM '{half}' (FORMAT binary)"), halves))
    _psql(url, f"BEGIN; DROP TABLE {TABLE}; ALTER TABLE staging RENAME TO {TABLE}; COMMIT")


def _adbc_postgresql(data: pa.Table, url: str) -> None:
    with adbc_driver_postgresql.dbapi.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute(f"TRUNCATE {TABLE}")
        cursor.adbc_ingest(TABLE, data, mode="append")
        connection.commit()


def _to_sql(scheme: str) -> Callable[[Any, str], None]:
    def write(frame: Any, url: str) -> None:
        engine = sqlalchemy.create_engine(scheme + url[url.index("://") :].partition("?")[0])
        frame.to_sql("written_by_pandas", engine, if_exists="replace", index=False, chunksize=10_000)

    return write


def _polars(data: pa.Table, _file: Path, _url: str) -> Any:
    return pl.from_arrow(data)


def _write_database(frame: Any, url: str) -> None:
    frame.write_database("written_by_polars", url, engine="adbc", if_table_exists="replace")


def _exported(data: pa.Table, file: Path, _url: str) -> Path:
    """Write the file that MariaDB is to load."""
    text = file.with_suffix(".csv")
    if not text.exists():
        with text.open("w", newline="") as opened:
            csv.writer(opened, lineterminator="\n").writerows(
                zip(*(column.to_pylist() for column in data), strict=True)
            )
    return text


def _load_data(text: Path, url: str) -> None:
    parts = urlsplit(url)
    place: dict[str, Any] = {"host": parts.hostname, "port": parts.port, "user": parts.username}
    with (
        pymysql.connect(**place, database=parts.path[1:], local_infile=True) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute(
            f"LOAD DATA LOCAL INFILE '{text}' INTO TABLE {TABLE} FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '\"'"
        )
        connection.commit()


def _adbc_sqlite(data: pa.Table, url: str) -> None:
    with adbc_driver_sqlite.dbapi.connect(path(url)) as connection, connection.cursor() as cursor:
        cursor.adbc_ingest("written_by_adbc", data, mode="replace")
        connection.commit()


def _rows(data: pa.Table, _file: Path, _url: str) -> list[tuple[Any, ...]]:
    columns = [
        column.cast(pa.string()).to_pylist()
        if pa.types.is_date(column.type) or pa.types.is_decimal(column.type)
        else column.to_pylist()
        for column in data.columns
    ]
    return list(zip(*columns, strict=True))


def _sqlite3(rows: list[tuple[Any, ...]], url: str) -> None:
    with sqlite3.connect(path(url)) as connection:
        connection.execute("DROP TABLE IF EXISTS bound")
        connection.execute(f"CREATE TABLE bound ({', '.join(f'c{number}' for number in range(len(rows[0])))})")
        connection.executemany(f"INSERT INTO bound VALUES ({', '.join('?' for _ in rows[0])})", rows)


SOURCES = {
    "postgresql": (
        Writer("COPY FROM file", _copied, _copy),
        Writer("longshore", _table, _longshore),
        Writer("longshore from pandas", _frame, _longshore),
        Writer("COPY FROM two files at once", _copied_halves, _copy_halves),
        Writer("longshore, parallel=2", _table, _longshore_in_parallel),
        Writer("ADBC", _table, _adbc_postgresql),
        Writer("polars.write_database", _polars, _write_database, is_slow=True),
        Writer("pandas.to_sql", _frame, _to_sql("postgresql+psycopg"), is_slow=True),
    ),
    "mariadb": (
        Writer("LOAD DATA of a file", _exported, _load_data),
        Writer("longshore", _table, _longshore),
        Writer("longshore from pandas", _frame, _longshore),
        Writer("pandas.to_sql", _frame, _to_sql("mysql+pymysql"), is_slow=True),
    ),
    "sqlite": (
        Writer("sqlite3.executemany", _rows, _sqlite3),
        Writer("longshore", _reals, _longshore),
        Writer("longshore from pandas", _real_frame, _longshore),
        Writer("ADBC", _doubles, _adbc_sqlite),
        Writer("pandas.to_sql", _frame, _to_sql("sqlite"), is_slow=True),
    ),
}


def main(source: str, name: str, file: str, url: str) -> None:
    """Write once, and print seconds of the clock and of the processor."""
    # Read, not mapped: the file's pages are not a writer's to fetch.
    with pa.OSFile(file) as opened:
        data = pa.ipc.open_file(opened).read_all()
    writer = next(writer for writer in SOURCES[source] if writer.name == name)
    _empty(data, url)
    prepared = writer.prepare(data, Path(file), url)
    process = psutil.Process()
    before, start = process.cpu_times(), time.perf_counter()
    writer.write(prepared, url)
    wall, after = time.perf_counter() - start, process.cpu_times()
    cpu = after.user + after.system - before.user - before.system
    print(json.dumps({"wall": wall, "cpu": cpu}))


if __name__ == "__main__":
    main(*sys.argv[1:])
