"""``longshore.open``: tables in and out, transactions, versions, and the store in place of a URL."""

import datetime as dt
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import longshore

if TYPE_CHECKING:
    from collections.abc import Callable

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


def test_a_table_may_have_thousands_of_columns(store: longshore.Store) -> None:
    wide = pa.table({f"c{at}": pa.array([at, None], pa.int32()) for at in range(5_000)})
    store["wide"] = wide
    assert store.read("wide", return_type="arrow").equals(wide)
    query = "SELECT c4999, c7 FROM wide WHERE c4999 > 1"
    assert store.sql(query, return_type="arrow").to_pylist() == [{"c4999": 4999, "c7": 7}]


def test_a_frame_comes_before_the_table_of_its_name(store: longshore.Store) -> None:
    store["boats"] = BOATS
    total = "SELECT sum(berth)::INTEGER AS n FROM Boats"
    for boats, expected in ((None, 3), (pa.table({"berth": [10]}), 10), (None, 3)):
        frames = {} if boats is None else {"boats": boats}
        assert store.sql(total, return_type="arrow", **frames).to_pylist() == [{"n": expected}]


def test_a_query_sees_what_was_written_since_the_last(store: longshore.Store, lake: Path) -> None:
    store["boats"] = BOATS
    another = longshore.open(lake)
    count = "SELECT count(*) AS n FROM boats WHERE tons > 1"
    writes: list[Callable[[], object]] = [
        lambda: None,
        lambda: store.write("boats", BOATS, if_exists="append"),
        lambda: another.write("boats", BOATS, if_exists="append"),
        lambda: store.sql("DELETE FROM boats WHERE berth = 1"),
        lambda: another.sql("UPDATE boats SET tons = 0 WHERE tons = 4"),
    ]
    for write, expected in zip(writes, [2, 4, 6, 3, 0], strict=True):
        write()
        assert store.sql(count, return_type="arrow").to_pylist() == [{"n": expected}]
    another.close()


def test_a_vacuum_gives_the_place_of_what_a_query_has_read_back(store: longshore.Store, lake: Path) -> None:
    store["boats"] = BOATS
    store.sql("SELECT * FROM boats", return_type="arrow")
    store["boats"] = BOATS
    assert store.vacuum("0s").files == 1
    maps = Path("/proc/self/maps").read_text().splitlines()
    assert not [line for line in maps if f"{lake}/data" in line]


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
    with pytest.raises(longshore.InterfaceError, match="older_than is a time"):
        store.vacuum(older_than="999999999999999999d")
    with pytest.raises(longshore.InterfaceError, match="version is a number"):
        store.read("t", version=2**63)
    assert store.vacuum(older_than=dt.timedelta(0)).files > 0
    assert store.check() == []
    assert [path.exists() for path in store.files("boats")] == [True]


def test_verify_looks_at_the_files_that_a_read_touches(store: longshore.Store) -> None:
    store["boats"] = pa.table({"berth": range(1000), "name": ["Ada"] * 1000})
    store.write("boats", pa.table({"berth": range(1000, 2000), "name": ["Bob"] * 1000}), if_exists="append")
    damaged = store.files("boats")[1]
    data = damaged.read_bytes()
    place = data.index(b"BobBobBob")
    url = f"store:///{damaged.parents[1]}"
    query = "SELECT count(*) AS n FROM boats WHERE name > 'A' AND berth {}"
    options = {"verify": True}
    for changed, message in ((b"Rob", "checksum"), (b"\xff\xffb", "checksum")):
        damaged.write_bytes(data[:place] + changed + data[place + 3 :])
        assert len(store.read("boats", return_type="arrow")) == 2000
        for condition, touches in (("< 500", False), (">= 500", True)):
            for read in (
                lambda text: store.sql(text, options=options),
                lambda text: longshore.read_sql(text, url, options=options),
                lambda text: longshore.read_sql(text, store, return_type="polars", options=options),
                lambda _text, on=condition: store.read("boats", where=f"berth {on}", options=options),
            ):
                if not touches:
                    read(query.format(condition))
                    continue
                with pytest.raises(longshore.OperationalError, match=f"{damaged.name}.*{message}"):
                    read(query.format(condition))
        with pytest.raises(longshore.OperationalError, match=message):
            store.read("boats", columns=["berth"], return_type="arrow", options=options)
    damaged.write_bytes(data)
    assert len(store.read("boats", options=longshore.Options(verify=True))) == 2000
    # It is the read's own: the next does not look.
    damaged.write_bytes(data[:place] + b"Rob" + data[place + 3 :])
    assert store.sql(query.format(">= 0"), return_type="arrow").to_pylist() == [{"n": 2000}]


def test_options_of_a_read(store: longshore.Store) -> None:
    number = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"a" * 16], pa.binary(16)))
    words = pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"a": 1}']))
    store["t"] = pa.table({"u": number, "j": words})
    text = store.read("t", return_type="arrow", options={"uuid": "text"})
    assert text["u"].to_pylist() == ["61616161-6161-6161-6161-616161616161"]
    assert store.read("t", options={"json": "object"})["j"].tolist() == [{"a": 1}]
    with pytest.raises(longshore.InterfaceError, match="verify"):
        store.read("t", options={"verfy": True})


def test_another_sqlite_in_the_process_drops_no_lock(lake: Path) -> None:
    # Of a process of its own, as the locks depend on what a process opens first.
    script = (
        "import sqlite3, sys; from pathlib import Path; import longshore\n"
        "store = longshore.open(sys.argv[1]); store['t'] = {'a': [1]}\n"
        "other = sqlite3.connect(f'{sys.argv[1]}/catalogue.db')\n"
        "other.execute('SELECT * FROM sqlite_schema').fetchall(); other.close()\n"
        "descriptors = [each.read_text() for each in Path('/proc/self/fdinfo').iterdir() if each.exists()]\n"
        "print(sum('OFDLCK' in each for each in descriptors), any('POSIX' in each for each in descriptors))"
    )
    done = subprocess.run([sys.executable, "-c", script, str(lake)], capture_output=True, text=True, check=True)
    assert done.stdout == "2 False\n"


def test_a_write_imports_no_engine(lake: Path) -> None:
    script = (
        "import sys, longshore; store = longshore.open(sys.argv[1]); store.write('t', {'a': [1], 'b': [2]}, key='a')\n"
        "store.write('t', {'a': [1, 2], 'b': [3, 4]}, if_exists='upsert', key='a')\n"
        "print({'duckdb', 'pandas', 'pyarrow.compute'} & {*sys.modules}, len(store.read('t', return_type='arrow')))"
    )
    done = subprocess.run([sys.executable, "-c", script, str(lake)], capture_output=True, text=True, check=True)
    assert done.stdout == "set() 2\n"


def test_a_thread_that_cannot_be_started_is_an_error(lake: Path) -> None:
    # The limit is not root's: as another user, who can import nothing more and needs a place of his own.
    script = """
import os, resource, sys, longshore
with longshore.open(sys.argv[1]) as first:
    first["t"] = {"a": [1]}
    first.read("t", return_type="arrow")
if os.geteuid() == 0:
    os.setgroups([])
    os.setuid(65534)
with longshore.open(sys.argv[2] + "/lake") as store:
    store["t"] = {"a": [1]}
    hints = set()
    for more in range(9):
        limit = len(os.listdir("/proc/self/task")) + more
        resource.setrlimit(resource.RLIMIT_NPROC, (limit, resource.getrlimit(resource.RLIMIT_NPROC)[1]))
        try:
            store["t"] = {"a": [2]}
            break
        except longshore.OperationalError as error:
            hints.add(error.hint)
            assert store.read("t", return_type="arrow").to_pydict() == {"a": [1]}
    print(*hints)
"""
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o777)
        command = [sys.executable, "-c", script, str(lake), place]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    hint = "raise the limit on the number of processes: ulimit -u, or pids.max of the container\n"
    assert done.stdout == hint, done.stderr
