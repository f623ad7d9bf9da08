"""Reading files: errors in their own words, parameters, transactions, time-outs, parts, and locks."""

import contextlib
import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import longshore
from tests.sqlite.conftest import Make

#: The user that owns nothing, on every Linux.
UNPRIVILEGED = 65534


def read(url: Any, query: str | list[str] = "SELECT * FROM t", **arguments: Any) -> pa.Table:
    return longshore.read_sql(query, url, return_type="arrow", **arguments)


def test_a_missing_file_is_an_error_and_stays_missing(path: Path) -> None:
    with pytest.raises(longshore.OperationalError, match="there is no file"):
        read(f"sqlite:///{path}", "SELECT 1")
    assert not path.exists()
    assert read(f"sqlite:///{path}?mode=rwc", "SELECT 1").num_rows == 1


def test_what_is_no_database_is_named(path: Path, make: Make) -> None:
    with pytest.raises(longshore.OperationalError, match="is a directory"):
        read(f"sqlite:///{path.parent}", "SELECT 1")
    path.write_bytes(b"no database, but long enough to have a header of one hundred bytes" * 9)
    with pytest.raises(longshore.OperationalError, match="SQLITE_NOTADB"):
        read(f"sqlite:///{path}", "SELECT 1")
    path.unlink()
    url = make("CREATE TABLE t (v)", *["INSERT INTO t VALUES (randomblob(3000))"] * 50)
    path.write_bytes(path.read_bytes()[: 4096 * 20])
    with pytest.raises(longshore.OperationalError, match="SQLITE_CORRUPT"):
        read(url)


@contextlib.contextmanager
def ordinary_user() -> Iterator[None]:
    """Do what root does as no one: root may read and write everything."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(UNPRIVILEGED)
    try:
        yield
    finally:
        os.seteuid(0)


def test_permissions() -> None:
    # Not below pytest's own directory, which is for its owner alone.
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        path = Path(directory) / "own.db"
        with contextlib.closing(sqlite3.connect(path)) as connection:
            connection.execute("CREATE TABLE t (v)")
        path.chmod(0o444)
        with ordinary_user():
            assert read(f"sqlite:///{path}").num_rows == 0
        path.chmod(0)
        with ordinary_user(), pytest.raises(longshore.OperationalError, match="SQLITE_CANTOPEN"):
            read(f"sqlite:///{path}")


@pytest.mark.parametrize("journal", ["delete", "wal"])
def test_reads_of_a_file_that_is_open_elsewhere_take_no_further_descriptors(
    path: Path, make: Make, journal: str
) -> None:
    url = make(f"PRAGMA journal_mode = {journal}", "CREATE TABLE t (v)", "INSERT INTO t VALUES (1)")
    with contextlib.closing(sqlite3.connect(path)) as other:
        other.execute("SELECT * FROM t").fetchall()
        descriptors = []
        for _ in range(5):
            for _ in range(5):
                assert read(url).num_rows == read(path).num_rows == 1
                longshore.write_sql({"v": [2]}, "u", path, if_exists="replace")
            descriptors.append(len([*Path("/proc/self/fd").iterdir()]))
        assert descriptors[1:] == descriptors[:1] * 4
        # Its locks hold all the same.
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(longshore.OperationalError, match="locked"):
            longshore.write_sql({"v": [2]}, "u", f"{url}?busy_timeout=0", if_exists="append")
        other.rollback()
    longshore.write_sql({"v": [2]}, "u", path, if_exists="append")


def test_read_only(make: Make) -> None:
    url = make("CREATE TABLE t (v)")
    for option in ("mode=ro", "immutable=1"):
        with (
            longshore.connect(f"{url}?{option}") as connection,
            pytest.raises(longshore.OperationalError, match="SQLITE_READONLY"),
        ):
            connection.execute("INSERT INTO t VALUES (1)")


def test_a_locked_file_is_waited_for(path: Path, make: Make) -> None:
    url = make("CREATE TABLE t (v)", "INSERT INTO t VALUES (1)")
    with contextlib.closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN EXCLUSIVE")
        start = time.monotonic()
        with pytest.raises(longshore.OperationalError, match="database is locked") as caught:
            read(f"{url}?busy_timeout=0.3")
        assert 0.25 < time.monotonic() - start < 5
        assert "busy_timeout" in (caught.value.hint or "")
        with pytest.raises(longshore.TimeoutError):
            read(url, timeout=0.2)
        later = threading.Timer(0.3, lambda: other.execute("COMMIT"))
        later.start()
        assert read(url).num_rows == 1
        later.join()


def test_parameters(make: Make) -> None:
    url = make("CREATE TABLE t (v)")
    cells = [None, 1, -(2**63), 0.1, "a\0b", b"\0", True]
    query = "SELECT " + ", ".join(f"?{n + 1} AS c{n}" for n in range(len(cells)))
    assert list(read(url, query, params=cells).to_pylist()[0].values()) == [*cells[:-1], 1]
    named = read(url, "SELECT :a AS x, @b AS y, $a AS z", params={"a": 1, "b": "ü"})
    assert named.to_pylist() == [{"x": 1, "y": "ü", "z": 1}]
    for query, params in [("SELECT ?", []), ("SELECT 1", [1]), ("SELECT :a", {}), ("SELECT 1", {"a": 1})]:
        with pytest.raises(longshore.ProgrammingError):
            read(url, query, params=params)
    for value in (2**63, float("nan"), [1]):
        with pytest.raises(longshore.DataError):
            read(url, "SELECT ?", params=[value])


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("SELEC 1", "syntax error"),
        ("SELECT * FROM nowhere", "no such table"),
        ("SELECT 1; SELECT 2", "more than one statement"),
        ("-- nothing", "no statement"),
        ("CREATE TABLE x (a)", "returns no rows, and was not run"),
        ("SELECT 1\0 + 1", "zero byte"),
    ],
)
def test_wrong_statements(query: str, says: str, make: Make) -> None:
    with pytest.raises(longshore.ProgrammingError, match=says):
        read(make("CREATE TABLE t (v)"), query)


def test_a_connection_has_transactions(make: Make) -> None:
    url = make("CREATE TABLE t (v INT UNIQUE)")
    connection = longshore.connect(url)
    assert connection.execute("INSERT INTO t VALUES (1), (2)") == 2
    assert connection.in_transaction
    assert (read(connection).num_rows, read(url).num_rows) == (2, 0)
    with pytest.raises(longshore.IntegrityError, match="SQLITE_CONSTRAINT_UNIQUE") as caught:
        connection.execute("INSERT INTO t VALUES (1)")
    assert caught.value.sqlstate == "23505"
    connection.commit()
    assert read(url).num_rows == 2
    assert connection.execute("DELETE FROM t") == 2
    connection.rollback()
    assert connection.execute("SELECT * FROM t") == 2
    connection.close()


def test_extensions_are_not_loaded(make: Make) -> None:
    with pytest.raises(longshore.ProgrammingError, match=r"not authorized|no such function"):
        read(make("CREATE TABLE t (v)"), "SELECT load_extension('x')")


def numbered(make: Make, rows: int = 5000, *more: str) -> str:
    fill = f"WITH RECURSIVE r (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < {rows})"
    return make(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, k, s TEXT NOT NULL)",
        f"{fill} INSERT INTO t SELECT i, CASE i % 5 WHEN 0 THEN NULL WHEN 1 THEN i WHEN 2 THEN i + 0.5 "
        "WHEN 3 THEN 'k' || i ELSE CAST('b' || i AS BLOB) END, 'text ' || i FROM r",
        *more,
    )


@pytest.mark.parametrize("mode", ["delete", "wal"])
@pytest.mark.parametrize("query", ["SELECT * FROM t", "SELECT s, id * 2 AS d FROM t AS x WHERE id % 3 = 1;"])
def test_parts_by_rowid_are_the_whole(query: str, mode: str, make: Make) -> None:
    url = numbered(make, 5000, "UPDATE t SET id = id + 4611686018427387904 WHERE id > 2500")
    if mode == "wal":
        make("PRAGMA journal_mode = wal", "INSERT INTO t VALUES (9000, NULL, 'w')")
    query = query.replace("SELECT *", "SELECT id, s")
    whole = read(url, query)
    assert read(url, query, partition_num=3).equals(whole)


#: Of so many rows, a file is worth several sessions that no one asked for.
LARGE = 12_000


@pytest.mark.parametrize("mode", ["delete", "wal"])
@pytest.mark.parametrize("query", ["SELECT * FROM t", "SELECT s, id * 2 AS d FROM t AS x WHERE id % 3 = ? AND s > :b;"])
def test_a_large_table_is_read_in_parts_that_no_one_asked_for(query: str, mode: str, make: Make) -> None:
    url = large(make, "UPDATE t SET id = -id WHERE id % 7 = 0")
    if mode == "wal":
        make("PRAGMA journal_mode = wal", "INSERT INTO t VALUES (90000, 'w', 5)")
    params = [1, "c"] if "?" in query else None
    whole = read(url, query, params=params, partition_num=1)
    table = read(url, query, params=params)
    # In the very order, and each range is a batch of its own.
    assert table.equals(whole)
    assert whole.num_rows > 3000
    assert (whole.column(0).num_chunks, table.column(0).num_chunks > 4) == (1, True)
    assert longshore.read_sql(query, url, params=params).equals(
        longshore.read_sql(query, url, params=params, partition_num=1)
    )


@pytest.mark.parametrize(
    "query",
    [
        "SELECT n FROM t WHERE n > 100",
        "SELECT n FROM t",
        "SELECT id, s FROM t WHERE id < 6000",
        "SELECT id FROM t LIMIT 9999",
        "SELECT s, id FROM t ORDER BY n",
    ],
)
def test_what_is_no_plain_scan_is_read_serially(query: str, make: Make) -> None:
    url = large(make, "CREATE INDEX by_n ON t (n)")
    table = read(url, query)
    assert (table.num_rows > 5000, table.column(0).num_chunks) == (True, 1)
    assert table.equals(read(url, query, partition_num=1))


def test_an_error_in_automatic_parts_names_the_row_of_the_whole(make: Make) -> None:
    url = large(make, f"UPDATE t SET n = 'x' WHERE id >= {LARGE - 5} OR id = 7001")
    for number in (1, None):
        with pytest.raises(longshore.DataError, match='"x" is not a number') as error:
            read(url, "SELECT id, n FROM t", schema={"n": "int64"}, partition_num=number)
        assert (error.value.row, error.value.column) == (7000, "n")


def large(make: Make, *more: str) -> str:
    """Give a table in a file of more than 32 MiB."""
    fill = f"WITH RECURSIVE r (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < {LARGE})"
    return make(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, s TEXT NOT NULL, n INT)",
        f"{fill} INSERT INTO t SELECT i, 'text ' || i || printf('%.3000c', 'x'), i * 7919 % {LARGE} FROM r",
        *more,
    )


@pytest.mark.parametrize("on", ["id", "k", "s"])
@pytest.mark.parametrize(
    "query",
    [
        "SELECT id, k, s FROM t WHERE id % 7 <> 0",
        "SELECT a.id, b.k, a.s FROM t AS a LEFT JOIN t AS b ON b.id = a.id + 1 -- the next\n;",
        "WITH c AS (SELECT id, k, s COLLATE NOCASE AS s FROM w) SELECT * FROM c",
    ],
)
def test_parts_by_any_column_are_the_whole(on: str, query: str, make: Make) -> None:
    url = numbered(
        make, 1000, "CREATE TABLE w (id INTEGER PRIMARY KEY, k, s) WITHOUT ROWID", "INSERT INTO w SELECT * FROM t"
    )
    columns = {"k": "string"}
    whole = read(url, query, schema=columns)
    assert whole.num_rows > 800
    for number in (2, 5):
        parts = read(url, query, schema=columns, partition_on=on, partition_num=number)
        assert parts.sort_by("id").equals(whole.sort_by("id"))


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT id FROM t LIMIT 5", "LIMIT"),
        ("SELECT id, random() AS r FROM t", "random"),
        ("SELECT count(*) AS n FROM t", "count"),
        ("SELECT id, date('now') AS d FROM t", "clock"),
        ("SELECT DISTINCT s FROM t", "plain SELECT"),
        ("SELECT a.id FROM t AS a JOIN t AS b USING (id)", "plain SELECT"),
        ("SELECT id, row_number() OVER () AS n FROM t", "OVER"),
        ("SELECT s FROM t ORDER BY s", "plain SELECT"),
    ],
)
def test_what_cannot_be_split_is_read_serially(query: str, reason: str, make: Make) -> None:
    url = numbered(make, 100)
    with pytest.warns(longshore.SerialReadWarning, match=reason):
        assert read(url, query, partition_num=2).num_rows == read(url, query).num_rows


def test_memory_and_transactions_are_read_serially(make: Make) -> None:
    url = numbered(make, 100)
    with longshore.connect(url) as connection:
        connection.execute("INSERT INTO t VALUES (500, 1, 'x')")
        with pytest.warns(longshore.SerialReadWarning, match="open transaction"):
            assert read(connection, "SELECT id FROM t", partition_num=2).num_rows == 101
        connection.rollback()
        connection.execute("CREATE TEMP TABLE t2 (a)")
        connection.commit()
        with pytest.warns(longshore.SerialReadWarning, match="temporary tables"):
            assert read(connection, "SELECT id FROM t", partition_num=2).num_rows == 100
    with pytest.warns(longshore.SerialReadWarning, match="memory"):
        assert read("sqlite://", "SELECT 1 AS a", partition_num=2).num_rows == 1


WRITER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], timeout=60, isolation_level=None)
print("ready", flush=True)
while True:
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("UPDATE m SET version = version + 1")
    connection.execute("DELETE FROM m WHERE id IN (SELECT id FROM m ORDER BY id LIMIT 50)")
    connection.execute("INSERT INTO m (version, filler) SELECT version, filler FROM m LIMIT 50")
    connection.execute("COMMIT")
"""


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    command = [sys.executable, "-c", WRITER, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline()
        try:
            yield
        finally:
            writer.kill()


@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_parts_see_one_snapshot(mode: str, path: Path, make: Make) -> None:
    fill = "WITH RECURSIVE r (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < 2000)"
    url = make(
        f"PRAGMA journal_mode = {mode}",
        "CREATE TABLE m (id INTEGER PRIMARY KEY AUTOINCREMENT, version INT, filler TEXT)",
        f"{fill} INSERT INTO m SELECT i, 0, printf('%.200c', 'x') FROM r",
    )
    versions: set[int] = set()
    with writing(path):
        end = time.monotonic() + 3
        while time.monotonic() < end + (60 if len(versions) < 2 else 0):
            # Who begins while somebody writes may be told so; what is read is one snapshot.
            with contextlib.suppress(longshore.OperationalError):
                table = read(f"{url}?busy_timeout=20", "SELECT id, version FROM m", partition_num=3)
                assert table.num_rows == 2000
                assert len(set(table["version"].to_pylist())) == 1
                versions.add(table["version"][0].as_py())
    assert len(versions) > 1


OTHER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], timeout=0.1, isolation_level=None)
try:
    connection.execute("BEGIN IMMEDIATE")
    print("got it")
except sqlite3.OperationalError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has locks of open file descriptions")
@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_a_read_keeps_the_locks_of_another_sqlite_in_this_process(mode: str, path: Path, make: Make) -> None:
    url = make(f"PRAGMA journal_mode = {mode}", "CREATE TABLE t (v)", "INSERT INTO t VALUES (1)")
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as own:
        own.execute("BEGIN IMMEDIATE")
        own.execute("INSERT INTO t VALUES (2)")
        for partition_num in (None, 2):
            assert read(url, "SELECT v FROM t", partition_num=partition_num).num_rows == 1
        with longshore.connect(f"{url}?busy_timeout=0.1") as connection:
            with pytest.raises(longshore.OperationalError, match="SQLITE_BUSY"):
                connection.execute("INSERT INTO t VALUES (3)")
            connection.rollback()
        other = subprocess.run([sys.executable, "-c", OTHER, str(path)], capture_output=True, text=True, check=True)
        assert other.stdout == "database is locked\n"
        own.execute("COMMIT")
    assert read(url).num_rows == 2


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells its descriptors so")
def test_nothing_stays_open(make: Make) -> None:
    url = numbered(make, 100)
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(20):
        read(url, "SELECT id FROM t", partition_num=2)
    assert len(list(Path("/proc/self/fd").iterdir())) <= before


def test_a_list_of_queries_is_one_snapshot(make: Make) -> None:
    url = numbered(make, 100)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = read(url, ["SELECT id FROM t WHERE id <= 50", "SELECT id FROM t WHERE id > 50"])
    assert sorted(table["id"].to_pylist()) == list(range(1, 101))


def test_a_query_behind_a_comment_streams() -> None:
    query = "WITH RECURSIVE r (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < 200000) SELECT i FROM r"
    with longshore.connect("sqlite://") as connection, connection.cursor() as cursor:
        assert cursor.execute(f"/* delete none */ {query}").rowcount == -1
