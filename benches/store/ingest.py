"""Ingest: lineitem into a new place."""

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq

import longshore
from benches.markdown import Goal
from benches.store.section import Clients, Figures, Section, over
from benches.store.tables import open_store, rows_of
from tests.servers import cache

TMPFS = Path("/dev/shm")  # noqa: S108  the memory itself, as a disk that costs nothing


def _ingest(form: str, root: Path | None, write: Callable[[Any, Path], None], _url: str) -> Figures:
    """Write a frame, and then the same bytes as plain files, each of which is synced."""
    with open_store() as store:
        data = store.read("lineitem", return_type=form)
    if form == "arrow":
        # In memory, as a query leaves it.
        data = rows_of("lineitem")
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


def _ingest_goals(clients: Clients) -> Iterator[Goal]:
    for form in ("arrow", "pandas"):
        ours = clients.get(f"store, {form}, disk", {})
        yield Goal(
            f"{form}, over writing and syncing the same bytes",
            over(ours.get("seconds"), ours.get("same bytes")),
            at_most=1.5,
        )
        mine, other = (clients.get(f"{name}, {form}, tmpfs", {}).get("seconds") for name in ("store", "DuckDB"))
        yield Goal(f"{form}, times as fast as DuckDB, both on tmpfs", over(other, mine), at_least=4)


SECTION = Section({name: partial(_ingest, *arguments) for name, arguments in INGESTS.items()}, _ingest_goals)
