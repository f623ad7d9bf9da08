"""Appends: many small ones, and a read of all."""

import contextlib
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

import longshore
from benches.markdown import Goal
from benches.store.section import Clients, Figures, Section, over
from benches.store.tables import rows_of
from tests.servers import cache

BATCHES, BATCH_ROWS, HUNDRED = 1_000, 1_000, 100

#: The functions that append rows, read a table, and count its chunks.
_Appending = tuple[Callable[[Any], Any], Callable[[str], Any], Callable[[str], int | None]]


def _append(opened: Callable[[Path, pa.Schema], contextlib.AbstractContextManager[_Appending]], _url: str) -> Figures:
    rows = rows_of("lineitem").slice(0, BATCHES * BATCH_ROWS)
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


def _append_goals(clients: Clients) -> Iterator[Goal]:
    figures = clients.get("store", {})
    yield Goal(
        "a batch at the end over one at the start",
        over(figures.get("last hundred"), figures.get("first hundred")),
        at_most=1,
    )
    chunks = figures.get("chunks") or 0
    yield Goal("a full read, milliseconds", over(figures.get("read"), 0.001), at_most=20 + 0.05 * chunks)
    yield Goal("chunks", chunks, at_most=200)


SECTION = Section({name: partial(_append, opened) for name, opened in APPENDS.items()}, _append_goals)
