"""A store in ``sql(attach=)``, and older versions by URL."""

import datetime as dt
import threading
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import longshore
from longshore.duckdb.instance import Instance
from longshore.duckdb.remote.store import StoreSource
from longshore.sources.store import Session
from tests.quirks.store import QUIRKS

TRADES = pa.table({"day": range(1000), "sym": ["A", "B"] * 500, "px": [float(at) for at in range(1000)]})


@pytest.fixture
def trades(store: longshore.Store) -> longshore.Store:
    """Give a store of ten files, each of a hundred days."""
    for at in range(10):
        part = TRADES.slice(at * 100, 100)
        store.write("trades", part, if_exists="append" if at else "fail")
    return store


def url_of(store: longshore.Store, settings: str = "") -> str:
    return f"store:///{store.session().store.path}{settings}"


def found(query: str, **arguments: Any) -> list[tuple[Any, ...]]:
    table: Any = longshore.sql(query, return_type="arrow", **arguments)
    return [tuple(row.values()) for row in table.to_pylist()]


@pytest.mark.packages
@pytest.mark.parametrize("by_url", [True, False])
def test_tables_of_a_store_next_to_frames(trades: longshore.Store, *, by_url: bool) -> None:
    names = pd.DataFrame({"sym": ["A", "B"], "name": ["Ada", "Bob"]})
    attach: Any = {"lake": url_of(trades) if by_url else trades}
    query = "SELECT name, sum(px) FROM lake.trades t JOIN names USING (sym) WHERE day < 4 GROUP BY ALL ORDER BY name"
    assert found(query, attach=attach) == [("Ada", 2.0), ("Bob", 4.0)]
    assert found("FROM lake.main.trades SELECT count(*)", attach=attach) == [(1000,)]
    assert found("SELECT lake.trades.px FROM lake.trades WHERE day = $day", attach=attach, params={"day": 7}) == [
        (7.0,)
    ]
    twice = "SELECT count(*) FROM lake.trades a JOIN lake.trades b USING (day) WHERE a.px + b.px > 1990"
    assert found(twice, attach=attach) == [(4,)]
    assert names.shape == (2, 2)


def test_a_store_in_a_variable_needs_no_attach(trades: longshore.Store) -> None:
    lake = trades
    assert longshore.sql("SELECT max(px) AS px FROM lake.trades")["px"].tolist() == [999.0]
    assert lake is trades


def test_a_connection_to_a_store(trades: longshore.Store) -> None:
    with longshore.connect(url_of(trades)) as lake:
        lake.execute("DELETE FROM trades WHERE day >= 1")
        attach: Any = {"lake": lake, "other": trades}
        assert found("SELECT count(*) FROM lake.trades", attach=attach) == [(1,)]
        assert found("SELECT o.px FROM lake.trades t JOIN other.trades o USING (day)", attach=attach) == [(0.0,)]
        lake.rollback()
    assert found("SELECT count(*) FROM lake.trades", attach={"lake": trades}) == [(1000,)]


def test_only_the_files_that_may_have_rows_are_mapped(trades: longshore.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    scans = []

    def counted(self: Any, table: str, columns: list[str], predicates: Any) -> Any:
        scan = self._transaction.scan(table, columns, predicates)
        scans.append((columns, scan.chunks))
        return plain(self, table, columns, predicates)

    plain = StoreSource._scan  # noqa: SLF001  what is asked of the store
    monkeypatch.setattr(StoreSource, "_scan", counted)
    every = trades.session().snapshot().scan("trades").chunks
    assert every > 2
    assert found("SELECT sum(px) FROM lake.trades WHERE day >= 990", attach={"lake": trades}) == [(9945.0,)]
    assert scans.pop() == (["day", "px"], 1)
    assert found("SELECT count(*) FROM lake.trades WHERE day < ?", attach={"lake": trades}, params=[0]) == [(0,)]
    assert scans.pop() == (["day"], 0)
    assert found("SELECT count(*) FROM lake.trades", attach={"lake": trades}) == [(1000,)]
    assert scans.pop()[1] == every


def test_a_query_sees_one_version_and_the_transaction_that_is_open(trades: longshore.Store) -> None:
    with trades.transaction():
        trades.sql("DELETE FROM trades WHERE day > 0")
        assert found("SELECT count(*) FROM lake.trades", attach={"lake": trades}) == [(1,)]
        # It is not committed.
        assert found("SELECT count(*) FROM lake.trades", attach={"lake": url_of(trades)}) == [(1000,)]
    assert found("SELECT count(*) FROM lake.trades", attach={"lake": trades}) == [(1,)]


@pytest.mark.packages
def test_types_that_sql_has_given_a_table(store: longshore.Store) -> None:
    store.sql(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, mood ENUM('low', 'high'), big HUGEINT, "
        "twice INTEGER GENERATED ALWAYS AS (2 * id))"
    )
    store.sql("INSERT INTO t VALUES (1, 'high', 1267650600228229401496703205376), (2, 'low', NULL)")
    for query in ("SELECT mood, big, twice FROM {} ORDER BY mood", "SELECT twice FROM {} WHERE twice > 2", "FROM {}"):
        by_store = store.sql(query.format("t"), return_type="arrow")
        assert found(query.format("lake.t"), attach={"lake": store}) == [
            tuple(x.values()) for x in by_store.to_pylist()
        ]


def test_what_is_not_there_or_would_be_written(trades: longshore.Store) -> None:
    attach = {"lake": trades}
    for name in ("lake.ships", "lake.other.trades"):
        with pytest.raises(longshore.ProgrammingError, match="is not there"):
            found(f"SELECT * FROM {name}", attach=attach)
    with pytest.raises(longshore.NotSupportedError, match="only reads"):
        longshore.sql("INSERT INTO lake.trades VALUES (1, 'A', 2)", attach=attach)
    with pytest.raises(longshore.NotSupportedError, match="names"):
        longshore.sql("SHOW TABLES FROM lake", attach=attach)
    text = longshore.sql("SELECT px FROM lake.trades WHERE day = 1", attach=attach, explain=True)
    assert '-- lake: longshore_1\nSELECT "day", "px" FROM "trades"' in text


def test_verify_is_for_attached_stores_too(trades: longshore.Store) -> None:
    path = trades.files("trades")[0]
    data = bytearray(path.read_bytes())
    data[1500] ^= 1
    path.write_bytes(data)
    found("SELECT count(*) FROM lake.trades", attach={"lake": trades})
    with pytest.raises(longshore.OperationalError, match="checksum"):
        found("SELECT count(*) FROM lake.trades", attach={"lake": trades}, options={"verify": True})


def test_older_versions_by_url(store: longshore.Store, tmp_path: Path) -> None:
    store["t"] = pa.table({"x": [1, 2]})
    before = store.versions()[-1]
    store.sql("DELETE FROM t WHERE x = 1")
    zone = before.time.astimezone(dt.timezone(dt.timedelta(hours=2)))
    places = [
        f"?version={before.version}",
        f"?at={before.time:%Y-%m-%dT%H:%M:%S.%fZ}",
        f"?at={zone.isoformat()}",
        f"?at={zone.isoformat().replace('+', '%2B')}",
    ]
    for settings in places:
        url = url_of(store, settings)
        assert longshore.read_sql("SELECT x FROM t ORDER BY x", url)["x"].tolist() == [1, 2]
        assert found("SELECT count(*) FROM old.t JOIN new.t USING (x)", attach={"old": url, "new": store}) == [(1,)]
        assert longshore.copy("SELECT * FROM t", url, "t", f"duckdb:///{tmp_path}/a.db", if_exists="replace") == 2
        with longshore.connect(url) as connection:
            assert connection.cursor().execute("SELECT count(*) FROM t").fetchall() == [(2,)]
            for change in ("DELETE FROM t", "INSERT INTO t VALUES (3)", "CREATE TABLE u (x INTEGER)", "DROP TABLE t"):
                with pytest.raises(longshore.NotSupportedError) as caught:
                    connection.execute(change)
                assert caught.value.sqlstate == "25006"
                connection.rollback()
        for mode in ("fail", "append", "replace", "truncate", "upsert"):
            with pytest.raises(longshore.NotSupportedError) as caught:
                longshore.write_sql({"x": [1]}, "t", url, if_exists=mode, key="x" if mode == "upsert" else None)
            assert caught.value.sqlstate == "25006"
    keywords = {"scheme": "store", "database": str(tmp_path / "lake"), "version": before.version}
    assert longshore.read_sql("SELECT count(*) AS n FROM t", keywords)["n"].tolist() == [2]
    assert len(store["t"]) == 1


def test_a_query_that_is_given_up_before_the_engine_has_started_ends(
    store: longshore.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_start, has_ended, close = threading.Event(), threading.Event(), Session.close

    def start_late(options: longshore.Options) -> Instance:
        may_start.wait()
        return Instance(options)

    def close_and_tell(session: Session) -> None:
        close(session)
        has_ended.set()

    monkeypatch.setattr("longshore.sources.store.Instance", start_late)
    monkeypatch.setattr(Session, "close", close_and_tell)
    with pytest.raises(longshore.TimeoutError):
        longshore.read_sql(QUIRKS.computing, url_of(store), timeout=0.1)
    may_start.set()
    assert has_ended.wait(20)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("?version=x", "a number from 0"),
        ("?version=-1", "a number from 0"),
        ("?version=9", "no version 9"),
        ("?at=2026-01-01", "a time with a time zone"),
        ("?at=yesterday", "a time with a time zone"),
        ("?at=1970-01-01T00:00:00Z&version=1", "not both"),
        ("?at=1969-01-01T00:00:00Z", "no version of that time"),
        ("?timeout=soon", "a number of seconds"),
        ("?versoin=1", "version and at"),
    ],
)
def test_settings_that_are_none(store: longshore.Store, settings: str, message: str) -> None:
    with pytest.raises(longshore.Error, match=message) as caught:
        longshore.read_sql("SELECT 1", url_of(store, settings))
    assert isinstance(caught.value, longshore.InterfaceError | longshore.ProgrammingError)
