"""Upserts: rows with a key that is there."""

import contextlib
import random
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pyarrow as pa

import longshore
from benches.markdown import Goal
from benches.store.section import Clients, Figures, Section, over
from benches.store.tables import KEY, open_duckdb, open_store, place, rows_of

UPSERTED = 1_000


def _changed_rows() -> pa.Table:
    """Return rows of lineitem, at random, with other values."""
    rows = rows_of("lineitem")
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
    with open_store() as store:
        yield lambda rows: store.write("keyed", rows, if_exists="upsert", key=KEY)


@contextlib.contextmanager
def _upsert_duckdb() -> Iterator[Callable[[Any], Any]]:
    with open_duckdb(read_only=False) as connection:
        yield lambda rows: connection.register("rows", rows).execute("INSERT OR REPLACE INTO keyed FROM rows")


@contextlib.contextmanager
def _upsert_sqlite() -> Iterator[Callable[[Any], Any]]:
    url = f"sqlite:///{place() / 'keyed.sqlite'}"
    yield lambda rows: longshore.write_sql(rows, "keyed", url, if_exists="upsert", key=KEY)


UPSERTS = {"store": _upsert_store, "DuckDB": _upsert_duckdb, "SQLite": _upsert_sqlite}


def _upsert_goals(clients: Clients) -> Iterator[Goal]:
    for which in ("first", "again"):
        figure = over(clients.get("store", {}).get(which), 0.001)
        yield Goal(f"{UPSERTED:,} keyed rows into 6 million, {which}, milliseconds", figure, at_most=50)


SECTION = Section({name: partial(_upsert, opened) for name, opened in UPSERTS.items()}, _upsert_goals)
