"""``longshore.open``: tables in and out, transactions, versions, and the store in place of a URL."""

import datetime as dt

import pyarrow as pa
import pytest

import longshore

BOATS = pa.table({"berth": [1, 2], "tons": [10.5, 4.0]})


def test_tables_come_and_go(store: longshore.Store) -> None:
    store["boats"] = BOATS
    assert store.read("boats", return_type="arrow").equals(BOATS)
    assert store["boats"]["berth"].tolist() == [1, 2]
    assert ("boats" in store, "ships" in store, list(store)) == (True, False, ["boats"])
    assert store.read("boats", columns=["tons"], return_type="numpy")["tons"].tolist() == [10.5, 4.0]
    heavy = store.read("boats", where="tons > :t -- at least", params={"t": 5}, return_type="polars")
    assert heavy.rows() == [(1, 10.5)]
    with store.read("boats", return_type="arrow_stream") as stream:
        assert sum(batch.num_rows for batch in stream) == 2
    del store["boats"]
    with pytest.raises(longshore.ProgrammingError, match="boats"):
        store["boats"]


def test_sql_gives_rows_or_counts(store: longshore.Store) -> None:
    store.write("boats", BOATS, key="berth")
    assert store.write("boats", {"berth": [2, 3], "tons": [1.0, 2.0]}, if_exists="upsert", key="berth") == 2
    assert store.sql("UPDATE boats SET tons = ? WHERE berth = 2", params=[7]) == 1
    mates = pa.table({"berth": [2], "name": ["Ada"]})
    joined = store.sql("SELECT name, tons FROM boats JOIN mates USING (berth)", mates=mates, return_type="arrow")
    assert joined.to_pylist() == [{"name": "Ada", "tons": 7.0}]
    with store.sql("SELECT berth FROM boats", return_type="arrow_stream") as stream:
        # The stream has an engine of its own.
        assert store.sql("SELECT 1 AS one", return_type="arrow").to_pylist() == [{"one": 1}]
        assert sum(batch.num_rows for batch in stream) == 3
    with pytest.raises(longshore.NotSupportedError):
        store.sql("BEGIN")


def test_a_transaction_is_all_or_nothing(store: longshore.Store) -> None:
    store.write("boats", BOATS, key="berth")
    with store.transaction():
        store["ships"] = BOATS
        with pytest.raises(longshore.IntegrityError):
            store.sql("INSERT INTO boats VALUES (3, 0), (1, 0)")
        assert store.sql("DELETE FROM boats WHERE berth = 1") == 1
        # The other verbs are a part of it, too.
        assert longshore.write_sql({"berth": [9], "tons": [0.5]}, "boats", store, if_exists="append") == 1
        count = longshore.read_sql("SELECT count(*) AS n FROM boats", store, return_type="arrow")
        assert count.to_pylist() == [{"n": 2}]
    with pytest.raises(KeyError), store.transaction():  # noqa: PT012  the block ends by it
        store.drop("ships")
        store.sql("TRUNCATE boats")
        raise KeyError
    assert store.names() == ["boats", "ships"]
    assert store.read("boats", return_type="arrow").column("berth").to_pylist() == [2, 9]


def test_older_versions_are_read(store: longshore.Store) -> None:
    store["boats"] = BOATS
    before = store.versions("boats")[-1]
    store.sql("DELETE FROM boats WHERE berth = 1")
    assert store.versions("boats")[-1].rows == 1
    assert len(store.read("boats", version=before.version)) == 2
    assert len(store.read("boats", at=before.time, where="berth = 1")) == 1
    assert len(store["boats"]) == 1
    with pytest.raises(longshore.InterfaceError, match="time zone"):
        store.read("boats", at=dt.datetime(2026, 1, 1))  # noqa: DTZ001  that is refused
    store.compact("boats")
    assert store.vacuum(older_than=dt.timedelta(0)).files > 0
    assert store.check() == []
    assert [path.exists() for path in store.files("boats")] == [True]
