"""Ten million rows around all databases, PostgreSQL to MariaDB to SQLite to PostgreSQL: `python -m benches.copy`.

Each copy runs in a process of its own, and so do its two ends alone: the reading, thrown away, and the writing of the
same rows, which lie in a file of Arrow's; both write into a place without the table, for to drop an old one is work,
too. What comes back is compared with what left, by a hash of each row.
"""

import argparse
import datetime as dt
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import longshore
from benches import lineitem, lineitem_mariadb
from benches.read import RESULTS, machine
from tests.servers import cache

if TYPE_CHECKING:
    from collections.abc import Iterator

#: One of each kind of type that all three databases have.
VOYAGES = """CREATE TABLE voyages AS SELECT n::bigint AS id, (n * 7919 % 100003)::int AS berth,
(n::numeric * 1.37)::numeric(15, 2) AS tons, n * 0.1::float8 AS draught, '2001-01-01'::date + (n % 9000)::int AS booked,
'2001-01-01'::timestamp + n * interval '1.000001 s' AS sailed, 'voyage ' || md5(n::text) AS name,
CASE WHEN n % 5 = 0 THEN NULL ELSE decode(lpad(to_hex(n), 16, '0'), 'hex') END AS seal
FROM generate_series(1::bigint, {rows}) AS n"""
HASH = "SELECT count(*)::text || ' ' || sum(hashtextextended(v::text, 0)::numeric)::text AS digest FROM {table} AS v"
QUERY = "SELECT * FROM {table}"


@dataclass(frozen=True)
class Leg:
    """A copy: a table of one place, and its name at another."""

    name: str
    source: str
    table: str
    target: str
    to: str


def main() -> None:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    rows = parser.parse_args().rows
    with places() as (postgresql, mariadb, sqlite):
        execute(postgresql, VOYAGES.format(rows=rows))
        legs = (
            Leg("PostgreSQL to MariaDB", postgresql, "voyages", mariadb, "voyages"),
            Leg("MariaDB to SQLite", mariadb, "voyages", sqlite, "voyages"),
            Leg("SQLite to PostgreSQL", sqlite, "voyages", postgresql, "returned"),
        )
        data = cache() / "voyages.arrow"
        once("keep", postgresql, "voyages", str(data), "")
        figures = {leg.name: measured(leg, data) for leg in legs}
        left, back = (digest(postgresql, table) for table in ("voyages", "returned"))
        data.unlink()
    if left != back:
        message = f"what came back is not what left: {left} and {back}"
        raise RuntimeError(message)
    report = {
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "machine": machine(),
        "rows": rows,
        "digest": left,
        "legs": figures,
    }
    (RESULTS / "copy.json").write_text(json.dumps(report, indent=2) + "\n")
    print(markdown(report))


@contextmanager
def places() -> "Iterator[tuple[str, str, str]]":
    """Give the URLs of three empty places."""
    file = cache() / "voyages.sqlite"
    file.unlink(missing_ok=True)
    with lineitem.measured_server() as server, lineitem_mariadb.measured_mariadb() as mariadb:
        server.psql("DROP DATABASE IF EXISTS voyages WITH (FORCE); CREATE DATABASE voyages")
        mariadb.sql("DROP DATABASE IF EXISTS voyages; CREATE DATABASE voyages; SET GLOBAL local_infile = 1")
        try:
            yield server.url(database="voyages"), mariadb.url(database="voyages"), f"sqlite:///{file}?mode=rwc"
        finally:
            server.psql("DROP DATABASE voyages WITH (FORCE)")
            mariadb.sql("DROP DATABASE voyages")
            file.unlink(missing_ok=True)


def execute(url: str, sql: str) -> None:
    """Run a statement."""
    with longshore.connect(url) as connection:
        connection.execute(sql)


def digest(url: str, table: str) -> str:
    """Return the number of rows of a table, and the sum of their hashes."""
    found = longshore.read_sql(HASH.format(table=table), url, return_type="arrow")
    return str(found["digest"][0])


def measured(leg: Leg, data: Path) -> dict[str, dict[str, float]]:
    """Copy, and do each end alone."""
    write = once("write", leg.target, leg.to, str(data), "")
    clear(leg.target, leg.to)
    copied = once("copy", leg.source, leg.table, leg.target, leg.to)
    return {"write": write, "copy": copied, "read": once("read", leg.source, leg.table, "", "")}


def clear(url: str, table: str) -> None:
    """Take a table away, and with SQLite the room in the file that it leaves behind."""
    execute(url, f"DROP TABLE {table}")
    if url.startswith("sqlite"):
        with longshore.connect(url, autocommit=True) as connection:
            connection.execute("VACUUM")


def once(verb: str, *arguments: str) -> dict[str, float]:
    """Do one thing in a process of its own."""
    sys.stderr.write(f"{verb} {' '.join(arguments[:2])}\n")
    command = [sys.executable, "-W", "ignore", "-m", "benches.copy", verb, *arguments]
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    figures: dict[str, float] = json.loads(run.stdout)
    return figures


def copy(source: str, table: str, target: str, to: str) -> None:
    """Copy a table."""
    longshore.copy(QUERY.format(table=table), source, to, target)


def read(source: str, table: str, *_: str) -> None:
    """Read a table, and throw it away."""
    for _batch in longshore.read_sql(QUERY.format(table=table), source, return_type="arrow_stream"):
        pass


def write(target: str, to: str, data: str, _: str) -> None:
    """Write the rows of a file."""
    import pyarrow as pa

    with pa.memory_map(data) as mapped:
        longshore.write_sql(pa.ipc.open_file(mapped).read_all(), to, target)


def keep(source: str, table: str, data: str, _: str) -> None:
    """Keep a table's rows in a file."""
    import pyarrow as pa

    stream = pa.RecordBatchReader.from_stream(
        longshore.read_sql(QUERY.format(table=table), source, return_type="arrow_stream")
    )
    with pa.OSFile(data, "wb") as sink, pa.ipc.new_file(sink, stream.schema) as file:
        for batch in stream:
            file.write(batch)


VERBS: dict[str, Callable[..., None]] = {"copy": copy, "read": read, "write": write, "keep": keep}


def run(verb: str, *arguments: str) -> None:
    """Do one thing, and print its figures."""
    start = time.perf_counter()
    VERBS[verb](*arguments)
    wall, used = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps({"wall": wall, "cpu": used.ru_utime + used.ru_stime, "rss": used.ru_maxrss * 1024}))


def markdown(report: dict[str, Any]) -> str:
    """Show the report as the documentation has it."""
    lines = [
        f"{report['date']}, {report['machine']}, {report['rows']:,} rows",
        "",
        "| copy | seconds | reading alone | writing alone | x the slower | peak MiB |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for name, leg in report["legs"].items():
        read, write, copy = (leg[verb]["wall"] for verb in ("read", "write", "copy"))
        peak = leg["copy"]["rss"] / (1 << 20)
        lines.append(f"| {name} | {copy:.1f} | {read:.1f} | {write:.1f} | {copy / max(read, write):.2f} | {peak:.0f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1] in VERBS:
        run(*sys.argv[1:])
    else:
        main()
