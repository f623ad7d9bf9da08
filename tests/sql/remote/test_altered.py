"""A table that is altered after the catalogue's answer: the answer is that of afterwards, or an error."""

import contextlib
import itertools
import sqlite3
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import longshore
from longshore.duckdb.remote.attach import RemoteQuery
from tests.servers import Endpoint, MySQLEndpoint
from tests.sql.remote.conftest import url
from tests.sql.remote.racing import Race, outcome

QUERIES = [
    "SELECT count(*) AS n FROM db.raced WHERE d = 0.1",
    "SELECT md5(s) AS m FROM db.raced WHERE d = 0.1 ORDER BY m",
    "SELECT upper(s) AS u FROM db.raced WHERE d = 0.1 LIMIT 1",
    "SELECT count(*) AS n FROM db.raced AS a, db.raced AS b WHERE a.d = 0.1 AND md5(a.s) = md5(b.s)",
    "SELECT * FROM db.raced ORDER BY s",
]
WAYS: dict[str, Callable[[str], Any]] = {
    "url": contextlib.nullcontext,
    "autocommit": lambda url: longshore.connect(url, autocommit=True),
    "transaction": longshore.connect,
    "pool": lambda url: longshore.Pool(url, size=1),
}


@pytest.fixture(params=["postgresql", "mariadb", "mysql"])
def race(request: pytest.FixtureRequest) -> Iterator[Race]:
    """Give each server with its table."""
    with contextlib.ExitStack() as stack:
        if request.param == "postgresql":
            found = Race(request.getfixturevalue("postgres").url(), "postgresql")
        else:
            server: MySQLEndpoint = request.getfixturevalue(request.param)
            name = f"raced_{uuid.uuid4().hex[:8]}"
            server.sql(f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
            stack.callback(server.sql, f"DROP DATABASE {name}")
            found = Race(server.url(database=name), "mysql")
        with found.table():
            yield found


@pytest.fixture
def pg(postgres: Endpoint) -> Iterator[Race]:
    """Give PostgreSQL alone."""
    found = Race(postgres.url(), "postgresql")
    with found.table():
        yield found


def rows(query: str, conn: Any, **tables: Any) -> list[dict[str, Any]]:
    """Give the rows of a query over `db`."""
    found: list[dict[str, Any]] = longshore.sql(query, attach={"db": conn}, return_type="arrow", **tables).to_pylist()
    return found


def streamed(query: str, conn: Any) -> list[dict[str, Any]]:
    """Give the same of a stream."""
    with longshore.sql(query, attach={"db": conn}, return_type="arrow_stream") as stream:
        return [row for batch in stream for row in batch.to_pylist()]


def is_loud(found: Any) -> bool:
    """Whether it is the error that says to try again, or MySQL's own."""
    own = "Table definition has changed, please retry transaction"
    return isinstance(found, longshore.OperationalError) and (found.sqlstate == "40001" or own in str(found))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("query", QUERIES)
def test_the_answer_is_that_of_afterwards(race: Race, query: str, way: str) -> None:
    with WAYS[way](race.url) as conn:
        found = race.lost(race.narrower, lambda: rows(query, conn))
        # MySQL's transactions see its catalogue as of their start.
        if not (race.kind == "mysql" and is_loud(found)):
            assert found == rows(query, race.url)


@pytest.mark.parametrize("way", ["url", "autocommit"])
@pytest.mark.parametrize("query", QUERIES)
def test_a_stream_gives_no_last_row_of_another_meaning(race: Race, query: str, way: str) -> None:
    with WAYS[way](race.url) as conn:
        found = race.lost(race.narrower, lambda: streamed(query, conn))
        if not is_loud(found):
            assert found == rows(query, race.url)


@pytest.mark.parametrize("way", ["url", "autocommit", "pool"])
def test_a_column_more_is_a_column_of_the_star(race: Race, way: str) -> None:
    with WAYS[way](race.url) as conn:
        query = "SELECT * FROM db.raced ORDER BY s LIMIT 1"
        found = race.lost("ALTER TABLE raced ADD COLUMN z int DEFAULT 7", lambda: rows(query, conn))
        assert found == [{"d": 0.1, "s": "a", "z": 7}]


@pytest.mark.parametrize("way", WAYS)
def test_padding_is_seen(pg: Race, way: str) -> None:
    with WAYS[way](pg.url) as conn:
        found = pg.lost("ALTER TABLE raced ALTER s TYPE char(5)", lambda: rows("FROM db.raced WHERE s LIKE 'a'", conn))
        assert found == []


def test_what_is_used_up_or_written_is_not_tried_again(pg: Race, tmp_path: Path) -> None:
    reader = pa.table({"x": [1]}).to_reader()
    query = "SELECT x, md5(s) AS m FROM db.raced, reader WHERE d = 0.1"
    assert is_loud(pg.lost(pg.narrower, lambda: rows(query, pg.url, reader=reader)))
    query = f"COPY (SELECT md5(s) AS m FROM db.raced WHERE d = 0.1) TO '{tmp_path / 'out.csv'}'"
    back = "ALTER TABLE raced ALTER d TYPE double precision"
    assert is_loud(pg.lost(back, lambda: rows(query, pg.url)))


@pytest.mark.parametrize("alter", ["ALTER d TYPE real", "ALTER s TYPE char(5)"])
def test_a_transaction_that_sees_an_older_catalogue(pg: Race, alter: str) -> None:
    with longshore.connect(pg.url) as conn:
        conn.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        conn.execute("SELECT 1 FROM pg_class LIMIT 1")
        with longshore.connect(pg.url, autocommit=True) as other:
            other.execute(f"ALTER TABLE raced {alter}")
        assert is_loud(outcome(lambda: rows("SELECT count(*) AS n FROM db.raced WHERE s = 'a'", conn)))
        conn.rollback()


def test_a_column_that_may_not_be_read_hinders_nothing(pg: Race) -> None:
    with longshore.connect(pg.url) as conn:
        conn.execute("CREATE ROLE pilot")
        conn.execute("GRANT SELECT (s) ON raced TO pilot")
        conn.execute("SET LOCAL ROLE pilot")
        assert rows("SELECT s FROM db.raced WHERE s = 'a'", conn) == [{"s": "a"}]
        conn.rollback()


def around(monkeypatch: pytest.MonkeyPatch, before: Callable[[], object], after: Callable[[], object]) -> list[str]:
    """Do something before and after each read; give the list of what is read."""
    sent: list[str] = []
    opened = RemoteQuery.open

    def open_(self: RemoteQuery, one: Any, source: Any) -> Any:
        sent.append(one.sql)
        before()
        stream = opened(self, one, source)
        batches = list(stream)
        after()
        return pa.RecordBatchReader.from_batches(stream.schema, batches)

    monkeypatch.setattr(RemoteQuery, "open", open_)
    return sent


def test_an_alteration_that_is_taken_back_is_seen(pg: Race, monkeypatch: pytest.MonkeyPatch) -> None:
    with longshore.connect(pg.url, autocommit=True) as other, longshore.connect(pg.url, autocommit=True) as conn:
        alters = iter([f"ALTER TABLE raced ALTER s TYPE {kind}(5)" for kind in ("char", "varchar")])

        def alter() -> None:
            for statement in itertools.islice(alters, 1):
                other.execute(statement)

        sent = around(monkeypatch, alter, alter)
        # Meanwhile, spaces at the end mean nothing.
        assert rows("SELECT count(*) AS n FROM db.raced WHERE s = 'a '", conn) == [{"n": 0}]
        assert len(sent) == 2


def test_a_table_that_never_rests_is_an_error(pg: Race, monkeypatch: pytest.MonkeyPatch) -> None:
    with longshore.connect(pg.url, autocommit=True) as other:
        names = itertools.count()
        sent = around(monkeypatch, lambda: other.execute(f"ALTER TABLE raced ADD z{next(names)} int"), lambda: None)
        assert is_loud(outcome(lambda: rows("SELECT d FROM db.raced", pg.url)))
        assert len(sent) == 3


@pytest.mark.parametrize("connect", [url, sqlite3.connect, lambda path: longshore.connect(url(path))])
def test_a_file_of_sqlites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, connect: Callable[[Path], Any]) -> None:
    path = tmp_path / "raced.db"
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA journal_mode = wal")
        other.execute("CREATE TABLE raced (a INTEGER) STRICT")
        other.execute("INSERT INTO raced VALUES (1)")
        once = iter(["ALTER TABLE raced ADD COLUMN z INTEGER DEFAULT 7"])
        around(monkeypatch, lambda: [other.execute(statement) for statement in once], lambda: None)
        conn = connect(path)
        # A transaction sees its own snapshot, and its catalogue with it.
        expected = [{"a": 1}] if isinstance(conn, longshore.Connection) else [{"a": 1, "z": 7}]
        assert rows("SELECT * FROM db.raced", conn) == expected
        if not isinstance(conn, str):
            conn.close()


def test_an_error_of_the_engine_keeps_its_kind_in_a_stream(pg: Race) -> None:
    query = "SELECT CAST(s AS INTEGER) AS i FROM db.raced WHERE md5(s) IS NOT NULL"
    with pytest.raises(longshore.DataError, match=r"^Conversion Error: Could not convert string 'a'"):
        streamed(query, pg.url)
