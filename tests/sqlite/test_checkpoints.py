"""Reads in parts next to checkpoints: one that waits for a reader, and those of writers that never rest."""

import contextlib
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import longshore
from tests.sqlite.conftest import Make

SECONDS = float(os.environ.get("LONGSHORE_SNAPSHOT_SECONDS", "2"))
ROWS = 3000

#: Other processes wait so long: a read next to them may not.
LONG = 10


def table_of(make: Make, width: int = 50, rows: int = ROWS) -> str:
    fill = f"WITH RECURSIVE r (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < {rows})"
    return make(
        "PRAGMA journal_mode = wal",
        "CREATE TABLE t (id INTEGER PRIMARY KEY, version INT NOT NULL, s TEXT NOT NULL)",
        f"{fill} INSERT INTO t SELECT i, 0, printf('%.{width}c', 'x') FROM r",
    )


def read(url: str, number: int | None) -> pa.Table:
    return longshore.read_sql("SELECT * FROM t", url, return_type="arrow", partition_num=number)


@contextlib.contextmanager
def process(script: str, *arguments: object) -> Iterator[None]:
    """Run a script in another process from the line that it prints on."""
    command = [sys.executable, "-c", script, *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline()
        try:
            yield
        finally:
            other.kill()


WAITING = """
import sqlite3, sys, threading
path, kind = sys.argv[1:]
reader = sqlite3.connect(path, isolation_level=None)
reader.execute("BEGIN")
reader.execute("SELECT count(*) FROM t").fetchall()
writer = sqlite3.connect(path, timeout=60, isolation_level=None)
writer.execute("UPDATE t SET version = version + 1")
threading.Timer(0.3, print, ["ready"], {"flush": True}).start()
writer.execute(f"PRAGMA wal_checkpoint({kind})").fetchall()
"""


@pytest.mark.parametrize("kind", ["TRUNCATE", "RESTART", "FULL"])
def test_parts_begin_while_a_checkpoint_waits(kind: str, path: Path, make: Make) -> None:
    url = table_of(make)
    with process(WAITING, path, kind), warnings.catch_warnings():
        warnings.simplefilter("error")
        start = time.monotonic()
        table = read(url, 3)
        assert time.monotonic() - start < LONG
        assert table.equals(read(url, 1))
        assert set(table["version"].to_pylist()) == {1}


def test_parts_that_no_one_asked_for_begin_while_a_checkpoint_waits(path: Path, make: Make) -> None:
    url = table_of(make, width=3500, rows=11_000)
    assert path.stat().st_size > 32 << 20
    with process(WAITING, path, "TRUNCATE"):
        start = time.monotonic()
        table = read(url, None)
        assert time.monotonic() - start < LONG
        assert table["id"].num_chunks > 1
        assert table.equals(read(url, 1))


#: A writer's commit and its checkpoint, again and again; `VACUUM` and the other journal as well.
WRITING = """
import random, sqlite3, sys
path, rest = sys.argv[1:]
connection = sqlite3.connect(path, timeout=60, isolation_level=None)
connection.execute("PRAGMA wal_autocheckpoint = 20")
print("ready", flush=True)
while True:
    try:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("UPDATE t SET version = version + 1 WHERE id % 3 <> 0")
        connection.execute("UPDATE t SET version = version + 1 WHERE id % 3 = 0")
        connection.execute("DELETE FROM t WHERE id % 10 = 3")
        connection.execute("INSERT INTO t SELECT id + 1, version, s FROM t WHERE id % 10 = 2")
        connection.execute("COMMIT")
        connection.execute(random.choice(rest.split(";"))).fetchall()
    except sqlite3.OperationalError:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
"""


@pytest.mark.parametrize("how", ["PRAGMA wal_checkpoint(TRUNCATE);SELECT 1", "PRAGMA wal_checkpoint(FULL);VACUUM"])
def test_parts_next_to_writers_that_checkpoint(how: str, path: Path, make: Make) -> None:
    url = table_of(make)
    ids = read(url, 1)["id"]
    versions: list[int] = []
    serial = 0
    with process(WRITING, path, how), process(WRITING, path, how):
        end = time.monotonic() + SECONDS
        # Most come to one snapshot, at once or again.
        while time.monotonic() < end + (60 if len(set(versions)) < 2 or serial > len(versions) / 2 else 0):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", longshore.SerialReadWarning)
                table = read(f"{url}?busy_timeout=60", 3)
            assert all("one snapshot" in str(warning.message) for warning in caught)
            serial += len(caught)
            assert table.sort_by("id")["id"].equals(ids)
            assert len(set(table["version"].to_pylist())) == 1
            versions.append(table["version"][0].as_py())
    assert versions == sorted(versions)
    assert len(set(versions)) > 1
    assert serial <= len(versions) / 2
