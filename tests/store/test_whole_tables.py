"""Queries of a whole table, whose rows are handed out as they are mapped: the engine would have given the same."""

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import longshore
from longshore import _core
from longshore.sources.store import Session
from tests.store.test_sql import TYPES

DAY = dt.date(2026, 11, 26)
TIME = dt.datetime(1969, 12, 31, 23, 59, 59)  # noqa: DTZ001
UTC = TIME.replace(tzinfo=dt.UTC)

#: Columns of frames, with their values: those of flat types are handed out as they are.
MAPPED = {
    pa.bool_(): True,
    pa.int8(): -128,
    pa.int16(): -1,
    pa.int32(): 7,
    pa.int64(): 1 << 62,
    pa.uint8(): 255,
    pa.uint16(): 1,
    pa.uint32(): 1,
    pa.uint64(): 1 << 63,
    pa.float32(): -0.0,
    pa.float64(): 0.1,
    pa.decimal128(15, 2): Decimal("-1.25"),
    pa.decimal128(38, 0): Decimal(10**37),
    pa.date32(): DAY,
    pa.time64("us"): dt.time(23, 59, 59, 1),
    pa.timestamp("s"): TIME,
    pa.timestamp("ms"): TIME,
    pa.timestamp("us"): TIME,
    pa.timestamp("ns"): TIME,
    pa.timestamp("us", "UTC"): UTC,
    pa.string(): "Größe",
    pa.large_string(): "",
    pa.string_view(): "longer than twelve bytes",
    pa.binary(): b"\x00\xff",
    pa.large_binary(): b"",
    pa.binary_view(): b"x" * 20,
}
MADE: dict[pa.DataType, Any] = {
    pa.float16(): 0.5,
    pa.decimal64(12, 2): Decimal("1.25"),
    pa.date64(): DAY,
    pa.time32("s"): dt.time(1),
    pa.time64("ns"): dt.time(1),
    pa.timestamp("s", "UTC"): UTC,
    pa.timestamp("ns", "UTC"): UTC,
    pa.timestamp("us", "Europe/Berlin"): UTC,
    pa.duration("s"): dt.timedelta(1),
    pa.month_day_nano_interval(): (1, 2, 3000),
    pa.binary(2): b"ab",
    pa.uuid(): b"0123456789abcdef",
    pa.json_(): "{}",
    pa.dictionary(pa.int32(), pa.string()): "label",
    pa.list_(pa.int64()): [1, None],
    pa.struct([("a", pa.int32())]): {"a": 1},
    pa.map_(pa.string(), pa.int32()): [("a", 1)],
}


def both_ways(lake: Path, query: str) -> tuple[pa.Table, pa.Table]:
    """Read a query's rows, and the same query as one that the engine has to run."""
    texts = (query, f"SELECT * FROM ({query.partition(';')[0]}) AS q WHERE true")
    with longshore.connect(f"store:///{lake}") as session, session.cursor() as cursor:
        one, other = (cursor.execute(text).fetch_arrow_table() for text in texts)
        objects, others = (cursor.execute(text).fetchall() for text in texts)
        assert repr(objects) == repr(others)
    assert one.schema.equals(other.schema, check_metadata=True), (one.schema, other.schema)
    return one, other


def is_mapped(session: Session, query: str) -> bool:
    """Tell whether a session needs no engine for a query."""
    return session._whole_table(query, None) is not None  # noqa: SLF001


def as_frame(types: dict[pa.DataType, Any]) -> pa.Table:
    """Make a table with a column of each type, named by its number."""
    columns = [pa.array([value, None, value], kind) for kind, value in types.items()]
    fields = [pa.field(f"c{at}", kind, metadata={"of": "the user"}) for at, kind in enumerate(types)]
    return pa.table(columns, schema=pa.schema(fields))


@pytest.mark.parametrize("types", [MAPPED, MADE], ids=["mapped", "made"])
def test_each_type_of_a_frame(lake: Path, types: dict[pa.DataType, Any]) -> None:
    with longshore.open(lake) as store:
        store["t"] = as_frame(types)
        by_store = store.sql("SELECT * FROM t", return_type="arrow")
        assert by_store.equals(store.sql("SELECT * FROM t WHERE true", return_type="arrow"), check_metadata=True)
        session = store.session()
        assert [is_mapped(session, f"SELECT c{at} FROM t") for at in range(len(types))] == [types is MAPPED] * len(
            types
        )
        session.close()
    one, other = both_ways(lake, "SELECT * FROM t")
    assert one.equals(other)


def test_each_type_of_a_definition(lake: Path) -> None:
    types = {kind: values for kind, values in TYPES.items() if kind not in {"HUGEINT", "TIMESTAMP_NS"}}
    columns = ", ".join(f"c{at} {kind}" for at, kind in enumerate(types))
    with longshore.open(lake) as store:
        store.sql(f"CREATE TABLE t ({columns})")
        for at in range(2):
            values = ", ".join(f"CAST({values[at]} AS {kind})" for kind, values in types.items())
            store.sql(f"INSERT INTO t SELECT {values}")
    one, other = both_ways(lake, "FROM t")
    # -0 and NaN are those of FLOAT.
    assert repr(one.to_pylist()) == repr(other.to_pylist())


@pytest.fixture
def boats(lake: Path) -> Path:
    """Give a store with a table of 1,000 rows."""
    with longshore.open(lake) as store:
        store.sql('CREATE TABLE boats (id BIGINT PRIMARY KEY, "Full Name" VARCHAR, tons DOUBLE)')
        store.sql("INSERT INTO boats SELECT range, 'boat ' || range, range / 2 FROM range(1000)")
    return lake


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM boats",
        "select * from Boats ;; -- all",
        'FROM "BOATS"',
        "TABLE main.boats",
        'SELECT TONS, id FROM "main".boats /* two */',
        'SELECT "full name" FROM MAIN.boats',
    ],
)
def test_names_are_the_engines(boats: Path, query: str) -> None:
    one, other = both_ways(boats, query)
    assert one.equals(other)
    assert len(one) == 1000
    session = Session(_core.Store.open(boats))
    assert is_mapped(session, query)
    assert len(pa.table(session.read(query, None, 65_536)[0])) == 1000
    assert session._engine is None  # noqa: SLF001
    session.close()


@pytest.mark.parametrize(
    "query",
    ["SELECT id, id FROM boats", "SELECT null FROM boats", "SELECT boats.* FROM boats", "SELECT id AS n FROM boats"],
)
def test_other_queries_are_the_engines(boats: Path, query: str) -> None:
    session = Session(_core.Store.open(boats))
    assert not is_mapped(session, query)
    session.close()


@pytest.mark.parametrize("query", ["SELECT * FROM bots", "SELECT ton FROM boats", "SELECT * FROM other.boats", "FROM"])
def test_errors_are_the_engines(boats: Path, query: str) -> None:
    with pytest.raises(longshore.ProgrammingError, match=r"bots|ton|other|syntax"):
        longshore.read_sql(query, f"store:///{boats}")


def test_a_transaction_sees_its_changes_and_no_other(boats: Path) -> None:
    query = "SELECT * FROM boats"
    with longshore.connect(f"store:///{boats}") as session, session.cursor() as cursor:
        cursor.execute("DELETE FROM boats WHERE id % 10 = 3")
        session.execute("INSERT INTO boats VALUES (-1, NULL, NULL)")
        one, other = both_ways(boats, query)
        assert (len(one), len(other)) == (1000, 1000)
        changed = cursor.execute(query).fetch_arrow_table()
        assert changed.equals(cursor.execute(f"{query} WHERE true").fetch_arrow_table())
        assert len(changed) == 901
        with pytest.raises(longshore.ProgrammingError):
            session.execute("SELECT nothing FROM boats")
        with pytest.raises(longshore.OperationalError) as failed:
            session.execute(query)
        assert failed.value.sqlstate == "25P02"
        session.rollback()
        assert len(cursor.execute(query).fetchall()) == 1000
    with longshore.open(boats) as store, store.transaction():
        store.sql("DELETE FROM boats WHERE id > 0")
        assert store.sql(query)["id"].tolist() == [0]
    past = longshore.read_sql(query, f"store:///{boats}?version=2", return_type="arrow")
    assert len(past) == 1000


def test_what_the_session_has_of_its_own_comes_first(boats: Path) -> None:
    with longshore.connect(f"store:///{boats}", autocommit=True) as session, session.cursor() as cursor:
        session.execute("CREATE TEMP TABLE ships AS SELECT 1 AS own")
        with longshore.open(boats) as store:
            store["ships"] = {"id": [1, 2]}
        assert cursor.execute("SELECT * FROM main.ships").fetchall() == [(1,)]
        session.execute("DROP TABLE temp.ships")
        assert cursor.execute("SELECT * FROM ships").fetchall() == [(1,), (2,)]
        session.execute("CREATE TEMP TABLE boats AS SELECT 1 AS own FROM ships LIMIT 1")
        assert cursor.execute("SELECT * FROM main.boats").fetchall() == [(1,)]
        session.execute("DROP TABLE temp.boats")
        assert len(cursor.execute("SELECT * FROM boats").fetchall()) == 1000
        # A setting of the engine's may be one of its types.
        session.execute("SET arrow_large_buffer_size = true")
        table = cursor.execute('SELECT "Full Name" FROM boats').fetch_arrow_table()
        assert table.schema.types == [pa.large_string()]
    with longshore.open(boats) as store:
        assert store.sql("FROM boats", boats=pa.table({"own": [2]}))["own"].tolist() == [2]
        assert len(store.sql("FROM boats")) == 1000


def test_the_memory_is_the_files(boats: Path) -> None:
    url = f"store:///{boats}"
    table = longshore.read_sql("SELECT * FROM boats", url, return_type="arrow")
    mapped = [
        range(*(int(end, 16) for end in line.split()[0].split("-")))
        for line in Path("/proc/self/maps").read_text().splitlines()
        if str(boats) in line
    ]
    buffers = [each for column in table.columns for chunk in column.chunks for each in chunk.buffers() if each]
    assert len(buffers) == 4
    assert all(any(buffer.address in part for part in mapped) for buffer in buffers)
    frame = longshore.read_sql("SELECT * FROM boats", url)
    frame.loc[0, "tons"] = -1.0
    assert longshore.read_sql("SELECT tons FROM boats", url)["tons"][0] == 0.0


def test_texts_are_looked_at_where_that_is_asked_for(boats: Path) -> None:
    with longshore.open(boats) as store:
        (path,) = store.files("boats")
    data = bytearray(path.read_bytes())
    data[data.index(b"boat 500")] = 0xFF
    path.chmod(0o600)
    path.write_bytes(data)
    url = f"store:///{boats}"
    table = longshore.read_sql("SELECT * FROM boats", url, return_type="arrow")
    with pytest.raises(pa.ArrowInvalid, match="UTF8"):
        table.validate(full=True)
    with pytest.raises(longshore.DatabaseError, match="checksum"):
        longshore.read_sql("SELECT * FROM boats", url, options={"verify": True})
