"""The embedded store next to DuckDB's file, Parquet, SQLite and PostgreSQL: `python -m benches.store`.

TPC-H at scale factor 1: the export, ingest and queries of MonetDBLite's paper, then changes. Each piece of work has a
process of its own, which has imported and opened all before it is measured; the clients take turns. The medians are
printed, with what was to be reached, and kept in benches/results.

    python -m benches.store --sections exports queries --rounds 5
"""

import argparse
import contextlib
import datetime as dt
import json
import math
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

import longshore
from benches import lineitem_sqlite
from benches.lineitem import alone, say, tpchgen
from benches.markdown import Goal, cell, table
from benches.read import RESULTS, machine
from benches.sources import SOURCES
from tests.servers import cache

TABLES = ("region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem")
KEY = ["l_orderkey", "l_linenumber"]
#: A range of the column that `shipped`, lineitem's rows, is sorted by.
RANGE = """
    SELECT count(*), sum(l_quantity), max(l_comment) FROM shipped
    WHERE l_shipdate BETWEEN DATE '1995-03-01' AND DATE '1995-03-31'"""
UPSERTED, BATCHES, BATCH_ROWS, HUNDRED = 1_000, 1_000, 1_000, 100
MEBIBYTE = 1 << 20
#: A figure that is not a number of seconds: whether both engines have answered alike.
SAME = "same rows"
TMPFS = Path("/dev/shm")  # noqa: S108  the memory itself, as a disk that costs nothing

Figures = dict[str, float | None]
Work = Callable[[str], Figures]
#: The functions that append rows, read a table, and count its chunks.
_Appending = tuple[Callable[[Any], Any], Callable[[str], Any], Callable[[str], int | None]]

#: The 22 queries of TPC-H, with the parameters by which it has its answers validated.
QUERIES = {
    1: """
        SELECT l_returnflag, l_linestatus, sum(l_quantity) AS quantity, sum(l_extendedprice) AS base_price,
            sum(l_extendedprice * (1 - l_discount)) AS discounted,
            sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS charged, avg(l_quantity) AS mean_quantity,
            avg(l_extendedprice) AS mean_price, avg(l_discount) AS mean_discount, count(*) AS orders
        FROM lineitem WHERE l_shipdate <= DATE '1998-12-01' - INTERVAL 90 DAY GROUP BY ALL ORDER BY 1, 2""",
    2: """
        SELECT s_acctbal, s_name, n_name, p_partkey, p_mfgr, s_address, s_phone, s_comment
        FROM part, supplier, partsupp, nation, region
        WHERE p_partkey = ps_partkey AND s_suppkey = ps_suppkey AND p_size = 15 AND p_type LIKE '%BRASS'
            AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'EUROPE'
            AND ps_supplycost = (
                SELECT min(ps_supplycost) FROM partsupp, supplier, nation, region
                WHERE p_partkey = ps_partkey AND s_suppkey = ps_suppkey AND s_nationkey = n_nationkey
                    AND n_regionkey = r_regionkey AND r_name = 'EUROPE')
        ORDER BY s_acctbal DESC, n_name, s_name, p_partkey LIMIT 100""",
    3: """
        SELECT l_orderkey, sum(l_extendedprice * (1 - l_discount)) AS revenue, o_orderdate, o_shippriority
        FROM customer, orders, lineitem
        WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey AND l_orderkey = o_orderkey
            AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15'
        GROUP BY l_orderkey, o_orderdate, o_shippriority ORDER BY revenue DESC, o_orderdate LIMIT 10""",
    4: """
        SELECT o_orderpriority, count(*) AS orders FROM orders
        WHERE o_orderdate >= DATE '1993-07-01' AND o_orderdate < DATE '1993-10-01'
            AND EXISTS (FROM lineitem WHERE l_orderkey = o_orderkey AND l_commitdate < l_receiptdate)
        GROUP BY o_orderpriority ORDER BY o_orderpriority""",
    5: """
        SELECT n_name, sum(l_extendedprice * (1 - l_discount)) AS revenue
        FROM customer, orders, lineitem, supplier, nation, region
        WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey
            AND c_nationkey = s_nationkey AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey
            AND r_name = 'ASIA' AND o_orderdate >= DATE '1994-01-01' AND o_orderdate < DATE '1995-01-01'
        GROUP BY n_name ORDER BY revenue DESC""",
    6: """
        SELECT sum(l_extendedprice * l_discount) AS revenue FROM lineitem
        WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01'
            AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24""",
    7: """
        SELECT supplier_nation, customer_nation, year, sum(volume) AS revenue
        FROM (
            SELECT sellers.n_name AS supplier_nation, buyers.n_name AS customer_nation,
                extract(year FROM l_shipdate) AS year, l_extendedprice * (1 - l_discount) AS volume
            FROM supplier, lineitem, orders, customer, nation AS sellers, nation AS buyers
            WHERE s_suppkey = l_suppkey AND o_orderkey = l_orderkey AND c_custkey = o_custkey
                AND s_nationkey = sellers.n_nationkey AND c_nationkey = buyers.n_nationkey
                AND ((sellers.n_name = 'FRANCE' AND buyers.n_name = 'GERMANY')
                    OR (sellers.n_name = 'GERMANY' AND buyers.n_name = 'FRANCE'))
                AND l_shipdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31')
        GROUP BY ALL ORDER BY 1, 2, 3""",
    8: """
        SELECT year, sum(CASE WHEN nation = 'BRAZIL' THEN volume ELSE 0 END) / sum(volume) AS share
        FROM (
            SELECT extract(year FROM o_orderdate) AS year, l_extendedprice * (1 - l_discount) AS volume,
                sellers.n_name AS nation
            FROM part, supplier, lineitem, orders, customer, nation AS buyers, nation AS sellers, region
            WHERE p_partkey = l_partkey AND s_suppkey = l_suppkey AND l_orderkey = o_orderkey
                AND o_custkey = c_custkey AND c_nationkey = buyers.n_nationkey
                AND buyers.n_regionkey = r_regionkey AND r_name = 'AMERICA'
                AND s_nationkey = sellers.n_nationkey
                AND o_orderdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31'
                AND p_type = 'ECONOMY ANODIZED STEEL')
        GROUP BY year ORDER BY year""",
    9: """
        SELECT nation, year, sum(amount) AS profit
        FROM (
            SELECT n_name AS nation, extract(year FROM o_orderdate) AS year,
                l_extendedprice * (1 - l_discount) - ps_supplycost * l_quantity AS amount
            FROM part, supplier, lineitem, partsupp, orders, nation
            WHERE s_suppkey = l_suppkey AND ps_suppkey = l_suppkey AND ps_partkey = l_partkey
                AND p_partkey = l_partkey AND o_orderkey = l_orderkey AND s_nationkey = n_nationkey
                AND p_name LIKE '%green%')
        GROUP BY ALL ORDER BY nation, year DESC""",
    10: """
        SELECT c_custkey, c_name, sum(l_extendedprice * (1 - l_discount)) AS revenue, c_acctbal, n_name, c_address,
            c_phone, c_comment
        FROM customer, orders, lineitem, nation
        WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND o_orderdate >= DATE '1993-10-01'
            AND o_orderdate < DATE '1994-01-01' AND l_returnflag = 'R' AND c_nationkey = n_nationkey
        GROUP BY ALL ORDER BY revenue DESC LIMIT 20""",
    11: """
        SELECT ps_partkey, sum(ps_supplycost * ps_availqty) AS worth FROM partsupp, supplier, nation
        WHERE ps_suppkey = s_suppkey AND s_nationkey = n_nationkey AND n_name = 'GERMANY'
        GROUP BY ps_partkey HAVING worth > (
            SELECT sum(ps_supplycost * ps_availqty) * 0.0001 FROM partsupp, supplier, nation
            WHERE ps_suppkey = s_suppkey AND s_nationkey = n_nationkey AND n_name = 'GERMANY')
        ORDER BY worth DESC""",
    12: """
        SELECT l_shipmode,
            sum(CASE WHEN o_orderpriority IN ('1-URGENT', '2-HIGH') THEN 1 ELSE 0 END) AS high,
            sum(CASE WHEN o_orderpriority NOT IN ('1-URGENT', '2-HIGH') THEN 1 ELSE 0 END) AS low
        FROM orders, lineitem
        WHERE o_orderkey = l_orderkey AND l_shipmode IN ('MAIL', 'SHIP') AND l_commitdate < l_receiptdate
            AND l_shipdate < l_commitdate AND l_receiptdate >= DATE '1994-01-01'
            AND l_receiptdate < DATE '1995-01-01'
        GROUP BY l_shipmode ORDER BY l_shipmode""",
    13: """
        SELECT orders, count(*) AS customers
        FROM (
            SELECT c_custkey, count(o_orderkey) AS orders
            FROM customer LEFT JOIN orders ON c_custkey = o_custkey AND o_comment NOT LIKE '%special%requests%'
            GROUP BY c_custkey)
        GROUP BY orders ORDER BY customers DESC, orders DESC""",
    14: """
        SELECT 100.00 * sum(CASE WHEN p_type LIKE 'PROMO%' THEN l_extendedprice * (1 - l_discount) ELSE 0 END)
            / sum(l_extendedprice * (1 - l_discount)) AS promoted
        FROM lineitem, part
        WHERE l_partkey = p_partkey AND l_shipdate >= DATE '1995-09-01' AND l_shipdate < DATE '1995-10-01'""",
    15: """
        WITH revenues AS (
            SELECT l_suppkey AS number, sum(l_extendedprice * (1 - l_discount)) AS revenue FROM lineitem
            WHERE l_shipdate >= DATE '1996-01-01' AND l_shipdate < DATE '1996-04-01' GROUP BY l_suppkey)
        SELECT s_suppkey, s_name, s_address, s_phone, revenue FROM supplier, revenues
        WHERE s_suppkey = number AND revenue = (SELECT max(revenue) FROM revenues) ORDER BY s_suppkey""",
    16: """
        SELECT p_brand, p_type, p_size, count(DISTINCT ps_suppkey) AS suppliers FROM partsupp, part
        WHERE p_partkey = ps_partkey AND p_brand <> 'Brand#45' AND p_type NOT LIKE 'MEDIUM POLISHED%'
            AND p_size IN (49, 14, 23, 45, 19, 3, 36, 9)
            AND ps_suppkey NOT IN (SELECT s_suppkey FROM supplier WHERE s_comment LIKE '%Customer%Complaints%')
        GROUP BY ALL ORDER BY suppliers DESC, p_brand, p_type, p_size""",
    17: """
        SELECT sum(l_extendedprice) / 7.0 AS yearly FROM lineitem, part
        WHERE p_partkey = l_partkey AND p_brand = 'Brand#23' AND p_container = 'MED BOX'
            AND l_quantity < (SELECT 0.2 * avg(l_quantity) FROM lineitem WHERE l_partkey = p_partkey)""",
    18: """
        SELECT c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, sum(l_quantity) AS quantity
        FROM customer, orders, lineitem
        WHERE o_orderkey IN (SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING sum(l_quantity) > 300)
            AND c_custkey = o_custkey AND o_orderkey = l_orderkey
        GROUP BY ALL ORDER BY o_totalprice DESC, o_orderdate LIMIT 100""",
    19: """
        SELECT sum(l_extendedprice * (1 - l_discount)) AS revenue FROM lineitem, part
        WHERE p_partkey = l_partkey AND l_shipmode IN ('AIR', 'AIR REG') AND l_shipinstruct = 'DELIVER IN PERSON'
            AND ((p_brand = 'Brand#12' AND p_container IN ('SM CASE', 'SM BOX', 'SM PACK', 'SM PKG')
                    AND l_quantity BETWEEN 1 AND 11 AND p_size BETWEEN 1 AND 5)
                OR (p_brand = 'Brand#23' AND p_container IN ('MED BAG', 'MED BOX', 'MED PKG', 'MED PACK')
                    AND l_quantity BETWEEN 10 AND 20 AND p_size BETWEEN 1 AND 10)
                OR (p_brand = 'Brand#34' AND p_container IN ('LG CASE', 'LG BOX', 'LG PACK', 'LG PKG')
                    AND l_quantity BETWEEN 20 AND 30 AND p_size BETWEEN 1 AND 15))""",
    20: """
        SELECT s_name, s_address FROM supplier, nation
        WHERE s_suppkey IN (
                SELECT ps_suppkey FROM partsupp
                WHERE ps_partkey IN (SELECT p_partkey FROM part WHERE p_name LIKE 'forest%')
                    AND ps_availqty > (
                        SELECT 0.5 * sum(l_quantity) FROM lineitem
                        WHERE l_partkey = ps_partkey AND l_suppkey = ps_suppkey
                            AND l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01'))
            AND s_nationkey = n_nationkey AND n_name = 'CANADA'
        ORDER BY s_name""",
    21: """
        SELECT s_name, count(*) AS waits FROM supplier, lineitem AS late, orders, nation
        WHERE s_suppkey = late.l_suppkey AND o_orderkey = late.l_orderkey AND o_orderstatus = 'F'
            AND late.l_receiptdate > late.l_commitdate
            AND EXISTS (
                FROM lineitem AS other
                WHERE other.l_orderkey = late.l_orderkey AND other.l_suppkey <> late.l_suppkey)
            AND NOT EXISTS (
                FROM lineitem AS other
                WHERE other.l_orderkey = late.l_orderkey AND other.l_suppkey <> late.l_suppkey
                    AND other.l_receiptdate > other.l_commitdate)
            AND s_nationkey = n_nationkey AND n_name = 'SAUDI ARABIA'
        GROUP BY s_name ORDER BY waits DESC, s_name LIMIT 100""",
    22: """
        SELECT code, count(*) AS customers, sum(c_acctbal) AS balance
        FROM (
            SELECT c_phone[:2] AS code, c_acctbal FROM customer
            WHERE code IN ('13', '31', '23', '29', '30', '18', '17')
                AND c_acctbal > (
                    SELECT avg(c_acctbal) FROM customer
                    WHERE c_acctbal > 0.00 AND c_phone[:2] IN ('13', '31', '23', '29', '30', '18', '17'))
                AND NOT EXISTS (FROM orders WHERE o_custkey = c_custkey))
        GROUP BY code ORDER BY code""",
}


def main() -> None:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sections", nargs="*", choices=SECTIONS, default=list(SECTIONS))
    parser.add_argument("--clients", nargs="*", help="clients by name; all by default")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--one", nargs=3, metavar=("SECTION", "CLIENT", "URL"), help="one piece of work; prints its figures"
    )
    arguments = parser.parse_args()
    if arguments.one:
        section, client, url = arguments.one
        print(json.dumps(SECTIONS[section][client](url)))
        return
    file = RESULTS / "store.json"
    # Sections are measured apart; what was not asked for stays as it was.
    report: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    with alone(cache() / "store.lock"):
        prepare()
        for section in arguments.sections:
            report[section] = {
                "date": dt.datetime.now(dt.UTC).date().isoformat(),
                "machine": machine(),
                "rounds": arguments.rounds,
                "clients": measured(section, arguments.rounds, arguments.clients),
            }
    RESULTS.mkdir(exist_ok=True)
    file.write_text(json.dumps(report, indent=2) + "\n")
    print("\n".join(line for section, part in report.items() for line in shown(section, part)))


def measured(section: str, rounds: int, only: Sequence[str] | None) -> dict[str, Figures]:
    """Return the medians of each client's figures; in each round every client has its turn."""
    clients = [name for name in SECTIONS[section] if not only or name in only]
    runs: dict[str, list[Figures]] = {name: [] for name in clients}
    with contextlib.ExitStack() as stack:
        # An installed package is compiled.
        compiled = stack.enter_context(tempfile.TemporaryDirectory())
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": compiled, "PYTHONDONTWRITEBYTECODE": ""}
        package = str(Path(longshore.__file__).parent)
        subprocess.run([sys.executable, "-m", "compileall", "-q", package], env=environment, check=True)
        url = ""
        if "PostgreSQL" in clients:
            url = stack.enter_context(SOURCES["postgresql"].open(1)).url
        for number in range(rounds):
            for name in clients:
                say(f"{section}, round {number + 1}: {name}")
                command = [sys.executable, "-W", "ignore", "-m", "benches.store", "--one", section, name, url]
                run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, env=environment)
                runs[name].append({} if run.returncode else json.loads(run.stdout.splitlines()[-1]))
    return {name: _medians(found) for name, found in runs.items()}


def _medians(runs: Sequence[Figures]) -> Figures:
    names = dict.fromkeys(name for run in runs for name in run)
    found = {name: [value for run in runs if (value := run.get(name)) is not None] for name in names}
    return {
        name: (min if name.endswith(SAME) else statistics.median)(values) if values else None
        for name, values in found.items()
    }


# The tables.


def _place() -> Path:
    return cache() / "store"


def _parquet(name: str) -> Path:
    return cache() / "tpch-parquet" / f"{name}.parquet"


def _rows(name: str) -> pa.Table:
    """Return a table in memory, whose texts are utf8, as queries return them: pyarrow sorts and takes no views."""
    rows = pq.read_table(_parquet(name))
    texts = [field.with_type(pa.string()) if field.type == pa.string_view() else field for field in rows.schema]
    return rows.cast(pa.schema(texts)).replace_schema_metadata(None)


def prepare() -> None:
    """Make the tables in each form; what is there stays."""
    missing = [name for name in TABLES if not _parquet(name).exists()]
    if missing:
        command = [tpchgen(), "parquet", "--scale-factor=1", f"--tables={','.join(missing)}", "--quiet"]
        subprocess.run([*command, f"--output-dir={_parquet('lineitem').parent}"], check=True)
    if _place().exists():
        return
    new = _place().with_suffix(".new")
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir()
    data = {name: _rows(name) for name in TABLES}
    data["shipped"] = data["lineitem"].sort_by("l_shipdate")
    with longshore.open(new / "lake") as store, duckdb.connect(new / "tpch.duckdb") as connection:
        for name, rows in data.items():
            say(f"{name} into a store, and into DuckDB's file")
            store.write(name, rows)
            connection.register("rows", rows)
            connection.execute(f"CREATE TABLE {name} AS FROM rows")
        say("a table with a key")
        store.write("keyed", data["lineitem"], key=KEY)
        connection.execute(f"CREATE TABLE keyed AS FROM lineitem; ALTER TABLE keyed ADD PRIMARY KEY ({', '.join(KEY)})")
    longshore.write_sql(data["lineitem"], "keyed", f"sqlite:///{new / 'keyed.sqlite'}?mode=rwc", key=KEY)
    # The name is given last: what was cut short has another.
    new.rename(_place())


def _store() -> longshore.Store:
    return longshore.open(_place() / "lake")


def _file(*, read_only: bool = True) -> duckdb.DuckDBPyConnection:
    return duckdb.connect(_place() / "tpch.duckdb", read_only=read_only)


# Exports: all of lineitem.


def _export(opened: Callable[[str], Callable[[str], Any]], url: str) -> Figures:
    """Read a small table, so that all is imported, and then lineitem."""
    read = opened(url)
    # It stays, so that what is measured does not take its memory over.
    small = read("nation")
    before, start = _anonymous(), time.perf_counter()
    frame = read("lineitem")
    seconds = time.perf_counter() - start
    grown = _anonymous() - before
    size = frame.nbytes if isinstance(frame, pa.Table) else None
    del small, frame
    return {"seconds": seconds, "anonymous": grown, "bytes": size}


def _anonymous() -> int:
    """Return the bytes of this process that no file backs."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) * 1024


def _of_store(form: str, _url: str) -> Callable[[str], Any]:
    store = _store()
    return lambda name: store.read(name, return_type=form)


def _of_polars(_url: str) -> Callable[[str], Any]:
    store = _store()
    mapped = {name: store.read(name, return_type="arrow") for name in ("nation", "lineitem")}
    return lambda name: pl.from_arrow(mapped[name])


def _of_duckdb(method: str, _url: str) -> Callable[[str], Any]:
    connection = _file()
    return lambda name: getattr(connection.table(name), method)()


def _of_sqlite(_url: str) -> Callable[[str], Any]:
    url = lineitem_sqlite.loaded(1)
    return lambda name: longshore.read_sql(f"SELECT * FROM lineitem LIMIT {25 if name == 'nation' else -1}", url)


def _of_postgresql(url: str) -> Callable[[str], Any]:
    limits = {"nation": "LIMIT 25"}
    return lambda name: longshore.read_sql(f"SELECT * FROM lineitem {limits.get(name, '')}", url)


def _of_sql(form: str, _url: str) -> Callable[[str], Any]:
    url = f"store:///{_place() / 'lake'}"
    return lambda name: longshore.read_sql(f"SELECT * FROM {name}", url, return_type=form)


EXPORTS: dict[str, Callable[[str], Callable[[str], Any]]] = {
    "store, Arrow": partial(_of_store, "arrow"),
    "store, pandas": partial(_of_store, "pandas"),
    "store, polars": partial(_of_store, "polars"),
    "store by SQL, Arrow": partial(_of_sql, "arrow"),
    "store by SQL, pandas": partial(_of_sql, "pandas"),
    "pl.from_arrow": _of_polars,
    "DuckDB, Arrow": partial(_of_duckdb, "to_arrow_table"),
    "DuckDB, pandas": partial(_of_duckdb, "df"),
    "Parquet, Arrow": lambda _url: lambda name: pq.read_table(_parquet(name)),
    "Parquet, pandas": lambda _url: lambda name: pd.read_parquet(_parquet(name)),
    "SQLite": _of_sqlite,
    "PostgreSQL": _of_postgresql,
}


# Ingest: lineitem into a new place.


def _ingest(form: str, root: Path | None, write: Callable[[Any, Path], None], _url: str) -> Figures:
    """Write a frame, and then the same bytes as plain files, each of which is synced."""
    with _store() as store:
        data = store.read("lineitem", return_type=form)
    if form == "arrow":
        # In memory, as a query leaves it.
        data = _rows("lineitem")
    with tempfile.TemporaryDirectory(dir=root or cache()) as folder:
        start = time.perf_counter()
        write(data, Path(folder) / "written")
        seconds = time.perf_counter() - start
        written = Path(folder) / "written"
        files = [path for path in (written, *written.rglob("*")) if path.is_file()]
        contents = [path.read_bytes() for path in files]
        size = sum(map(len, contents))
        start = time.perf_counter()
        for number, content in enumerate(contents):
            _write_synced(Path(folder) / str(number), content)
        plain = time.perf_counter() - start
    return {"seconds": seconds, "same bytes": plain, "bytes": size, "MB/s": size / seconds / 1_000_000}


def _write_synced(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _into_store(data: Any, path: Path) -> None:
    with longshore.open(path) as store:
        store.write("lineitem", data)


def _into_duckdb(data: Any, path: Path) -> None:
    with duckdb.connect(path) as connection:
        connection.register("data", data)
        connection.execute("CREATE TABLE lineitem AS FROM data")


def _into_parquet(data: Any, path: Path) -> None:
    pq.write_table(data, path)
    with path.open("rb") as file:
        os.fsync(file.fileno())


INGESTS: dict[str, tuple[str, Path | None, Callable[[Any, Path], None]]] = {
    f"{name}, {form}, {disk}": (form, root, write)
    for form in ("arrow", "pandas")
    for disk, root in (("disk", None), ("tmpfs", TMPFS))
    for name, write in (("store", _into_store), ("DuckDB", _into_duckdb))
} | {"Parquet, arrow, disk": ("arrow", None, _into_parquet)}


# Queries: both engines in one process, in turns.


def _queries(_url: str) -> Figures:
    queries = {f"Q{number}": query for number, query in QUERIES.items()} | {"range": RANGE}
    figures: Figures = {}
    with _store() as store, _file() as connection:
        engines: dict[str, Callable[[str], Any]] = {
            "store": lambda query: store.sql(query, return_type="arrow"),
            "DuckDB": lambda query: connection.sql(query).to_arrow_table(),
        }
        for name, query in queries.items():
            answers = {engine: run(query) for engine, run in engines.items()}
            figures[f"{name}, {SAME}"] = _are_same(*answers.values())
            seconds: dict[str, list[float]] = {engine: [] for engine in engines}
            for _ in range(3):
                for engine, run in engines.items():
                    start = time.perf_counter()
                    run(query)
                    seconds[engine].append(time.perf_counter() - start)
            figures |= {f"{name}, {engine}": statistics.median(found) for engine, found in seconds.items()}
    return figures


def _are_same(ours: pa.Table, theirs: pa.Table) -> bool:
    """Whether two tables have the same rows; floats are added up in another order."""

    def same(one: object, other: object) -> bool:
        if isinstance(one, float) and isinstance(other, float):
            return math.isclose(one, other, rel_tol=1e-9)
        return one == other

    rows = [[tuple(row.values()) for row in answer.to_pylist()] for answer in (ours, theirs)]
    return len(rows[0]) == len(rows[1]) and all(
        len(one) == len(other) and all(map(same, one, other)) for one, other in zip(*rows, strict=True)
    )


# Changes.


def _changed_rows() -> pa.Table:
    """Return rows of lineitem, at random, with other values."""
    rows = _rows("lineitem")
    rows = rows.take(random.sample(range(len(rows)), UPSERTED))
    at = rows.column_names.index("l_comment")
    return rows.set_column(
        at, rows.field(at), pa.array([f"changed {number}" for number in range(len(rows))], rows.field(at).type)
    )


def _upsert(opened: Callable[[], contextlib.AbstractContextManager[Callable[[Any], Any]]], _url: str) -> Figures:
    rows = _changed_rows()
    with opened() as upsert:
        seconds = []
        for _ in range(2):
            start = time.perf_counter()
            upsert(rows)
            seconds.append(time.perf_counter() - start)
    return {"first": seconds[0], "again": seconds[1]}


@contextlib.contextmanager
def _upsert_store() -> Iterator[Callable[[Any], Any]]:
    with _store() as store:
        yield lambda rows: store.write("keyed", rows, if_exists="upsert", key=KEY)


@contextlib.contextmanager
def _upsert_duckdb() -> Iterator[Callable[[Any], Any]]:
    with _file(read_only=False) as connection:
        yield lambda rows: connection.register("rows", rows).execute("INSERT OR REPLACE INTO keyed FROM rows")


@contextlib.contextmanager
def _upsert_sqlite() -> Iterator[Callable[[Any], Any]]:
    url = f"sqlite:///{_place() / 'keyed.sqlite'}"
    yield lambda rows: longshore.write_sql(rows, "keyed", url, if_exists="upsert", key=KEY)


UPSERTS = {"store": _upsert_store, "DuckDB": _upsert_duckdb, "SQLite": _upsert_sqlite}


def _append(opened: Callable[[Path, pa.Schema], contextlib.AbstractContextManager[_Appending]], _url: str) -> Figures:
    rows = _rows("lineitem").slice(0, BATCHES * BATCH_ROWS)
    seconds = []
    with (
        tempfile.TemporaryDirectory(dir=cache()) as folder,
        opened(Path(folder) / "written", rows.schema) as (append, read, chunks),
    ):
        for start in range(0, len(rows), BATCH_ROWS):
            batch = rows.slice(start, BATCH_ROWS)
            begun = time.perf_counter()
            append(batch)
            seconds.append(time.perf_counter() - begun)
        begun = time.perf_counter()
        found = read("lineitem")
        reading = time.perf_counter() - begun
        count = chunks("lineitem")
        if found.num_rows != len(rows):
            raise AssertionError(found.num_rows)
    first, last = (statistics.median(each) for each in (seconds[:HUNDRED], seconds[-HUNDRED:]))
    return {"first hundred": first, "last hundred": last, "all": sum(seconds), "read": reading, "chunks": count}


@contextlib.contextmanager
def _append_store(path: Path, schema: pa.Schema) -> Iterator[_Appending]:
    with longshore.open(path) as store:
        store.write("lineitem", schema.empty_table())
        yield (
            lambda rows: store.write("lineitem", rows, if_exists="append"),
            lambda name: store.read(name, return_type="arrow"),
            lambda name: len(store.files(name)),
        )


@contextlib.contextmanager
def _append_duckdb(path: Path, schema: pa.Schema) -> Iterator[_Appending]:
    with duckdb.connect(path) as connection:
        connection.register("rows", schema.empty_table()).execute("CREATE TABLE lineitem AS FROM rows")
        yield (
            lambda rows: connection.register("rows", rows).execute("INSERT INTO lineitem FROM rows"),
            lambda name: connection.table(name).to_arrow_table(),
            lambda _name: None,
        )


APPENDS = {"store": _append_store, "DuckDB": _append_duckdb}

SECTIONS: dict[str, dict[str, Work]] = {
    "exports": {name: partial(_export, opened) for name, opened in EXPORTS.items()},
    "ingest": {name: partial(_ingest, *arguments) for name, arguments in INGESTS.items()},
    "queries": {"store and DuckDB": _queries},
    "upserts": {name: partial(_upsert, opened) for name, opened in UPSERTS.items()},
    "appends": {name: partial(_append, opened) for name, opened in APPENDS.items()},
}


# What is printed.


def shown(section: str, part: dict[str, Any]) -> list[str]:
    """Return one section's table, with what was to be reached below it."""
    clients: dict[str, Figures] = part["clients"]
    title = f"{part['date']}, {part['machine']}, TPC-H at scale factor 1, medians of {part['rounds']}"
    if section == "queries":
        heads, lines = _query_lines(clients["store and DuckDB"])
    else:
        names = list(dict.fromkeys(name for figures in clients.values() for name in figures))
        heads = [section, *(_head(name) for name in names)]
        lines = [[client, *(_number(name, figures.get(name)) for name in names)] for client, figures in clients.items()]
    return [title, "", *table(heads, lines, texts=1), *map(str, GOALS[section](clients)), ""]


def _head(name: str) -> str:
    if name in {"anonymous", "bytes"}:
        return f"{name}, MiB"
    return name if name in {"seconds", "chunks", "MB/s"} else f"{name}, s"


def _number(name: str, value: float | None) -> str:
    if name in {"anonymous", "bytes"}:
        return cell(value, digits=0, unit=MEBIBYTE)
    return cell(value, digits=0 if name in {"chunks", "MB/s"} else 4)


def _query_lines(figures: Figures) -> tuple[list[str], list[list[str]]]:
    lines = []
    for name in _query_names(figures):
        ours, theirs = (figures[f"{name}, {engine}"] for engine in ("store", "DuckDB"))
        same = "yes" if figures[f"{name}, {SAME}"] else "no"
        lines.append([name, same, cell(ours, digits=4), cell(theirs, digits=4), cell(_over(ours, theirs))])
    return ["query", SAME, "store, s", "DuckDB, s", "x DuckDB"], lines


def _query_names(figures: Figures) -> list[str]:
    return [name.partition(",")[0] for name in figures if name.endswith(SAME)]


def _over(one: float | None, other: float | None) -> float | None:
    return one / other if one is not None and other else None


def _export_goals(clients: dict[str, Figures]) -> Iterator[Goal]:
    seconds = {name: figures.get("seconds") for name, figures in clients.items()}
    arrow, pandas = seconds.get("store, Arrow"), seconds.get("store, pandas")
    yield Goal("to Arrow, milliseconds", _over(arrow, 0.001), at_most=20)
    yield Goal("to pandas, seconds", pandas, at_most=0.3)
    mapped = clients.get("store, Arrow", {})
    grown = _over(mapped.get("anonymous"), mapped.get("bytes"))
    yield Goal("to Arrow, growth of anonymous memory, % of the table", _over(grown, 0.01), at_most=1)
    ours, theirs = seconds.get("store, polars"), seconds.get("pl.from_arrow")
    above = (ours - theirs) * 1000 if ours is not None and theirs is not None else None
    by_sql = _over(seconds.get("store by SQL, Arrow"), 0.001)
    yield Goal("SELECT * FROM lineitem by read_sql to Arrow, milliseconds", by_sql, at_most=20)
    yield Goal("to polars, milliseconds above pl.from_arrow of the mapped table", above, at_most=10)
    yield Goal("to Arrow, times as fast as DuckDB's file", _over(seconds.get("DuckDB, Arrow"), arrow), at_least=10)
    yield Goal("to pandas, times as fast as DuckDB's file", _over(seconds.get("DuckDB, pandas"), pandas), at_least=10)


def _ingest_goals(clients: dict[str, Figures]) -> Iterator[Goal]:
    for form in ("arrow", "pandas"):
        ours = clients.get(f"store, {form}, disk", {})
        yield Goal(
            f"{form}, over writing and syncing the same bytes",
            _over(ours.get("seconds"), ours.get("same bytes")),
            at_most=1.5,
        )
        mine, other = (clients.get(f"{name}, {form}, tmpfs", {}).get("seconds") for name in ("store", "DuckDB"))
        yield Goal(f"{form}, times as fast as DuckDB, both on tmpfs", _over(other, mine), at_least=4)


def _query_goals(clients: dict[str, Figures]) -> Iterator[Goal]:
    figures = clients["store and DuckDB"]
    names = _query_names(figures)
    over = {name: _over(figures[f"{name}, store"], figures[f"{name}, DuckDB"]) for name in names}
    yield Goal(
        "queries with the same rows", sum(bool(figures[f"{name}, {SAME}"]) for name in names), at_least=len(names)
    )
    yield Goal("Q1 over DuckDB's file", over["Q1"], at_most=1.5)
    ratios = [value for name, value in over.items() if value and name != "range"]
    yield Goal("geometric mean of 22 over DuckDB's file", statistics.geometric_mean(ratios), at_most=1.35)
    yield Goal("a range of the sort column over DuckDB's file", over["range"], at_most=1)


def _upsert_goals(clients: dict[str, Figures]) -> Iterator[Goal]:
    for which in ("first", "again"):
        figure = _over(clients.get("store", {}).get(which), 0.001)
        yield Goal(f"{UPSERTED:,} keyed rows into 6 million, {which}, milliseconds", figure, at_most=50)


def _append_goals(clients: dict[str, Figures]) -> Iterator[Goal]:
    figures = clients.get("store", {})
    yield Goal(
        "a batch at the end over one at the start",
        _over(figures.get("last hundred"), figures.get("first hundred")),
        at_most=1,
    )
    chunks = figures.get("chunks") or 0
    yield Goal("a full read, milliseconds", _over(figures.get("read"), 0.001), at_most=20 + 0.05 * chunks)
    yield Goal("chunks", chunks, at_most=200)


GOALS: dict[str, Callable[[dict[str, Figures]], Iterator[Goal]]] = {
    "exports": _export_goals,
    "ingest": _ingest_goals,
    "queries": _query_goals,
    "upserts": _upsert_goals,
    "appends": _append_goals,
}

if __name__ == "__main__":
    main()
