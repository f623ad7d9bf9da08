"""Reading TPC-H's lineitem out of SQLite beside the peers: `python -m benches.sqlite --scale 1`.

Each read runs in a process of its own; the clients take turns, and the medians are printed. The limit is a loop in C
that steps through the rows and reads every column, compiled here against the system's library (`apt install
libsqlite3-dev`), or against a folder with `sqlite3.h` and `sqlite3.c` that `--amalgamation` names.
"""

import argparse
import contextlib
import json
import sqlite3
import statistics
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

QUERY = "SELECT * FROM lineitem"
LOOP = Path(__file__).with_name("loop.c")
COLUMNS = """
    l_orderkey BIGINT NOT NULL, l_partkey BIGINT NOT NULL, l_suppkey BIGINT NOT NULL, l_linenumber INTEGER NOT NULL,
    l_quantity DECIMAL(15, 2) NOT NULL, l_extendedprice DECIMAL(15, 2) NOT NULL, l_discount DECIMAL(15, 2) NOT NULL,
    l_tax DECIMAL(15, 2) NOT NULL, l_returnflag CHAR(1) NOT NULL, l_linestatus CHAR(1) NOT NULL,
    l_shipdate DATE NOT NULL, l_commitdate DATE NOT NULL, l_receiptdate DATE NOT NULL,
    l_shipinstruct CHAR(25) NOT NULL, l_shipmode CHAR(10) NOT NULL, l_comment VARCHAR(44) NOT NULL
"""


def main() -> None:
    """Measure and print; with a client's name, read once in this process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--amalgamation", type=Path)
    parser.add_argument("--once", nargs=2, metavar=("CLIENT", "FILE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.once:
        client, file = arguments.once
        print(json.dumps(measured(PEERS[client], file)))
        return
    file = loaded(arguments.scale)
    loop = compiled(file.parent, arguments.amalgamation)
    names = [name for name in PEERS if not arguments.only or name in arguments.only]
    runs: dict[str, list[dict[str, float]]] = {}
    for _ in range(arguments.rounds):
        if loop:
            runs.setdefault("loop in C", []).append(looped(loop, file))
        for name in names:
            command = [sys.executable, "-W", "ignore", "-m", "benches.sqlite", "--once", name, str(file)]
            run = subprocess.run(command, capture_output=True, text=True, check=False)
            if run.returncode:
                sys.stderr.write(f"{name} failed: {run.stderr.strip().splitlines()[-1:]}\n")
                continue
            runs.setdefault(name, []).append(json.loads(run.stdout.splitlines()[-1]))
    for name, figures in runs.items():
        wall, cpu = (statistics.median(run[key] for run in figures) for key in ("wall", "cpu"))
        print(f"{name:32} {wall:8.3f} s  {cpu:8.3f} s of the processor  {figures[0]['rows']:.0f} rows")


def loaded(scale: float) -> Path:
    """Return a file with the table, filled once and kept."""
    file = Path.home() / ".cache" / "longshore" / f"lineitem-{scale:g}.sqlite"
    if file.exists():
        return file
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_suffix(".unfinished")
    unfinished.unlink(missing_ok=True)
    program = Path(sysconfig.get_path("scripts"), "tpchgen-cli")
    command = [str(program), "csv", f"--scale-factor={scale:g}", "--tables=lineitem", "--stdout", "--quiet"]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as generator,
        contextlib.closing(sqlite3.connect(unfinished)) as connection,
    ):
        import csv

        assert generator.stdout is not None  # noqa: S101  it is a pipe
        rows = csv.reader(generator.stdout)
        next(rows)
        connection.execute(f"CREATE TABLE lineitem ({COLUMNS})")
        connection.executemany(f"INSERT INTO lineitem VALUES ({', '.join('?' * 16)})", rows)
        connection.commit()
    if generator.returncode:
        message = "tpchgen-cli failed"
        raise RuntimeError(message)
    unfinished.rename(file)
    return file


def compiled(folder: Path, amalgamation: Path | None) -> Path | None:
    """Return the loop in C; None where no library is there to compile it against."""
    program = folder / "sqlite-loop"
    library = ["-lsqlite3"]
    if amalgamation:
        library = [f"-I{amalgamation}", str(amalgamation / "sqlite3.c"), "-w", "-lm", "-ldl", "-lpthread"]
    command = ["cc", "-O2", "-o", str(program), str(LOOP), *library]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        sys.stderr.write(f"no loop in C: {run.stderr.strip().splitlines()[:1]}\n")
        return None
    return program


def looped(loop: Path, file: Path) -> dict[str, float]:
    """Run the loop once."""
    run = subprocess.run([str(loop), str(file), QUERY], capture_output=True, text=True, check=True)
    wall, cpu, rows = map(float, run.stdout.split())
    return {"wall": wall, "cpu": cpu, "rows": rows}


def measured(read: Callable[[str], Any], file: str) -> dict[str, float]:
    """Read once; what is imported first does not count."""
    read(":memory:")
    wall, cpu = time.perf_counter(), time.process_time()
    result = read(file)
    return {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu, "rows": len(result)}


def _query(file: str) -> str:
    return "SELECT 1 AS one" if file == ":memory:" else QUERY


def _longshore(frame: str, parts: int | None = None) -> Callable[[str], Any]:
    def read(file: str) -> Any:
        import longshore

        number = None if file == ":memory:" else parts
        return longshore.read_sql(  # type: ignore[call-overload]
            _query(file), f"sqlite:///{file}", return_type=frame, partition_num=number
        )

    return read


def _connectorx(frame: str, parts: int | None = None) -> Callable[[str], Any]:
    def read(file: str) -> Any:
        import connectorx

        if file == ":memory:":
            return []
        partition: dict[str, Any] = {"partition_on": "l_orderkey", "partition_num": parts} if parts else {}
        return connectorx.read_sql(f"sqlite://{Path(file).resolve()}", QUERY, return_type=frame, **partition)

    return read


def _adbc(file: str) -> Any:
    from adbc_driver_sqlite import dbapi

    with dbapi.connect(file) as connection, connection.cursor() as cursor:
        cursor.execute(_query(file))
        return cursor.fetch_arrow_table()


def _pandas(file: str) -> Any:
    import pandas as pd

    with contextlib.closing(sqlite3.connect(file)) as connection:
        return pd.read_sql(_query(file), connection)


def _polars(file: str) -> Any:
    import polars as pl

    with contextlib.closing(sqlite3.connect(file)) as connection:
        return pl.read_database(_query(file), connection, infer_schema_length=None)


PEERS: dict[str, Callable[[str], Any]] = {
    "longshore arrow": _longshore("arrow"),
    "longshore arrow, 2 parts": _longshore("arrow", 2),
    "longshore pandas": _longshore("pandas"),
    "longshore polars": _longshore("polars"),
    "ADBC arrow": _adbc,
    "ConnectorX arrow": _connectorx("arrow"),
    "ConnectorX arrow, 2 parts": _connectorx("arrow", 2),
    "ConnectorX pandas": _connectorx("pandas"),
    "pandas": _pandas,
    "polars": _polars,
}

if __name__ == "__main__":
    main()
