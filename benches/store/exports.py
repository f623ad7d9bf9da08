"""Exports: all of lineitem."""

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

import longshore
from benches import lineitem_sqlite
from benches.markdown import Goal
from benches.store.section import Clients, Figures, Section, over
from benches.store.tables import open_duckdb, open_store, parquet, place


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
    store = open_store()
    return lambda name: store.read(name, return_type=form)


def _of_polars(_url: str) -> Callable[[str], Any]:
    store = open_store()
    mapped = {name: store.read(name, return_type="arrow") for name in ("nation", "lineitem")}
    return lambda name: pl.from_arrow(mapped[name])


def _of_duckdb(method: str, _url: str) -> Callable[[str], Any]:
    connection = open_duckdb()
    return lambda name: getattr(connection.table(name), method)()


def _of_sqlite(_url: str) -> Callable[[str], Any]:
    url = lineitem_sqlite.loaded(1)
    return lambda name: longshore.read_sql(f"SELECT * FROM lineitem LIMIT {25 if name == 'nation' else -1}", url)


def _of_postgresql(url: str) -> Callable[[str], Any]:
    limits = {"nation": "LIMIT 25"}
    return lambda name: longshore.read_sql(f"SELECT * FROM lineitem {limits.get(name, '')}", url)


def _of_sql(form: str, _url: str) -> Callable[[str], Any]:
    url = f"store:///{place() / 'lake'}"
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
    "Parquet, Arrow": lambda _url: lambda name: pq.read_table(parquet(name)),
    "Parquet, pandas": lambda _url: lambda name: pd.read_parquet(parquet(name)),
    "SQLite": _of_sqlite,
    "PostgreSQL": _of_postgresql,
}


def _export_goals(clients: Clients) -> Iterator[Goal]:
    seconds = {name: figures.get("seconds") for name, figures in clients.items()}
    arrow, pandas = seconds.get("store, Arrow"), seconds.get("store, pandas")
    yield Goal("to Arrow, milliseconds", over(arrow, 0.001), at_most=20)
    yield Goal("to pandas, seconds", pandas, at_most=0.3)
    mapped = clients.get("store, Arrow", {})
    grown = over(mapped.get("anonymous"), mapped.get("bytes"))
    yield Goal("to Arrow, growth of anonymous memory, % of the table", over(grown, 0.01), at_most=1)
    ours, theirs = seconds.get("store, polars"), seconds.get("pl.from_arrow")
    above = (ours - theirs) * 1000 if ours is not None and theirs is not None else None
    by_sql = over(seconds.get("store by SQL, Arrow"), 0.001)
    yield Goal("SELECT * FROM lineitem by read_sql to Arrow, milliseconds", by_sql, at_most=20)
    yield Goal("to polars, milliseconds above pl.from_arrow of the mapped table", above, at_most=10)
    yield Goal("to Arrow, times as fast as DuckDB's file", over(seconds.get("DuckDB, Arrow"), arrow), at_least=10)
    yield Goal("to pandas, times as fast as DuckDB's file", over(seconds.get("DuckDB, pandas"), pandas), at_least=10)


SECTION = Section({name: partial(_export, opened) for name, opened in EXPORTS.items()}, _export_goals)
