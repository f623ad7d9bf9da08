"""SQL over the tables of a store: each statement, what is refused, and what a statement touches."""

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pyarrow as pa
import pytest

import longshore
from longshore import _core
from longshore.sources.store import Session

BOATS = "CREATE TABLE boats (berth INTEGER PRIMARY KEY, name VARCHAR DEFAULT 'new', tons DOUBLE, CHECK (berth > 0))"
ROWS = [(1, "Ada", 1.5), (2, "Bob", None), (3, "Cid", 3.5)]


@pytest.fixture
def session(lake: Path) -> Iterator[longshore.Connection]:
    """Give a connection to a store with a table."""
    longshore.open(lake).close()
    with longshore.connect(f"store:///{lake}", autocommit=True) as session:
        session.execute(BOATS)
        session.execute("INSERT INTO boats VALUES (1, 'Ada', 1.5), (2, 'Bob', NULL), (3, 'Cid', 3.5)")
        yield session


def rows(
    session: longshore.Connection, query: str = "SELECT * FROM boats ORDER BY berth", params: Any = None
) -> list[Any]:
    with session.cursor() as cursor:
        return cursor.execute(query, params).fetchall()


CHANGES = {
    "UPDATE boats SET tons = tons + 1": (3, [(1, "Ada", 2.5), (2, "Bob", None), (3, "Cid", 4.5)]),
    "UPDATE boats SET name = DEFAULT, tons = NULL WHERE berth = 1": (1, [(1, "new", None), *ROWS[1:]]),
    "UPDATE boats SET (name, tons) = (upper(name), berth) WHERE tons IS DISTINCT FROM 1.5": (
        2,
        [ROWS[0], (2, "BOB", 2.0), (3, "CID", 3.0)],
    ),
    "UPDATE boats AS b SET tons = u.t FROM (VALUES (1, 9), (1, 9), (7, 7)) u(k, t) WHERE b.berth = u.k": (
        1,
        [(1, "Ada", 9.0), *ROWS[1:]],
    ),
    "WITH w AS (SELECT 2 AS k) UPDATE boats SET tons = 0 WHERE berth IN (SELECT k FROM w)": (
        1,
        [ROWS[0], (2, "Bob", 0.0), ROWS[2]],
    ),
    "UPDATE main.boats SET berth = berth + 1": (3, [(at + 1, name, tons) for at, name, tons in ROWS]),
    "DELETE FROM boats WHERE tons > 1 AND name = 'Cid'": (1, ROWS[:2]),
    "DELETE FROM boats b USING boats c JOIN boats d USING (berth) WHERE b.berth < c.berth": (2, ROWS[2:]),
    "DELETE FROM boats": (3, []),
    "TRUNCATE boats": (3, []),
    "INSERT INTO boats (berth) VALUES (4)": (1, [*ROWS, (4, "new", None)]),
    "INSERT INTO boats SELECT berth + 3, name, tons FROM boats WHERE berth = 1": (1, [*ROWS, (4, "Ada", 1.5)]),
    "INSERT INTO boats BY NAME SELECT 2.5 AS tons, 4 AS berth": (1, [*ROWS, (4, "new", 2.5)]),
    "INSERT INTO boats VALUES (1, 'x', 0), (4, 'y', 0) ON CONFLICT DO NOTHING": (1, [*ROWS, (4, "y", 0.0)]),
    "INSERT OR IGNORE INTO boats VALUES (1, 'x', 0), (4, 'y', 0)": (1, [*ROWS, (4, "y", 0.0)]),
    "INSERT OR REPLACE INTO boats (berth, name) VALUES (1, 'x'), (4, 'y')": (
        2,
        [(1, "x", 1.5), *ROWS[1:], (4, "y", None)],
    ),
    "INSERT INTO boats AS b VALUES (1, 'x', 7), (2, 'x', 7) ON CONFLICT (berth) DO UPDATE "
    "SET name = b.name || excluded.name WHERE b.tons IS NULL": (1, [ROWS[0], (2, "Bobx", None), ROWS[2]]),
}


@pytest.mark.parametrize("statement", CHANGES)
def test_a_change_and_the_rows_it_counts(session: longshore.Connection, statement: str) -> None:
    count, expected = CHANGES[statement]
    assert session.execute(statement) == count
    assert rows(session) == expected


RETURNING = {
    "INSERT INTO boats VALUES (4, 'Dee', 1) RETURNING berth * 2, boats.name": [(8, "Dee")],
    "INSERT INTO boats VALUES (1, 'x', 0), (4, 'y', 0) ON CONFLICT DO NOTHING RETURNING name": [("y",)],
    "INSERT INTO boats VALUES (1, 'x', 0) ON CONFLICT DO UPDATE SET tons = 0 WHERE boats.tons > 9 RETURNING *": [],
    "UPDATE boats AS b SET tons = 8 WHERE b.berth = 2 RETURNING *": [(2, "Bob", 8.0)],
    "DELETE FROM boats WHERE berth = 3 RETURNING name, tons + 1": [("Cid", 4.5)],
    "DELETE FROM boats WHERE berth = 30 RETURNING name": [],
}


@pytest.mark.parametrize("statement", RETURNING)
def test_returned_rows(session: longshore.Connection, statement: str) -> None:
    assert rows(session, statement) == RETURNING[statement]


PARAMETERS: list[tuple[str, Any]] = [
    ("UPDATE boats SET tons = ?, name = ? WHERE berth = ?", [8, "x", 1]),
    ("UPDATE boats SET tons = $2, name = $1 WHERE berth = $3", ["x", 8, 1]),
    ("UPDATE boats SET tons = :t, name = :n WHERE berth = :b", {"t": 8, "n": "x", "b": 1}),
    ("INSERT INTO boats VALUES (:b, :n, :t) ON CONFLICT (berth) DO UPDATE SET name = excluded.name, tons = :t",
     {"t": 8, "n": "x", "b": 1}),
]  # fmt: skip


@pytest.mark.parametrize(("statement", "params"), PARAMETERS)
def test_parameters(session: longshore.Connection, statement: str, params: Any) -> None:
    assert session.execute(statement, params) == 1
    assert rows(session) == [(1, "x", 8.0), *ROWS[1:]]


def test_wrong_parameters(session: longshore.Connection) -> None:
    with pytest.raises(longshore.ProgrammingError, match="no parameter 2"):
        session.execute("DELETE FROM boats WHERE berth = ?", [1, 2])
    with pytest.raises(longshore.ProgrammingError, match="2"):
        session.execute("UPDATE boats SET tons = ? WHERE berth = ?", [1])
    assert rows(session) == ROWS


BROKEN = {
    "INSERT INTO boats VALUES (1, 'x', 0)": longshore.IntegrityError,
    "INSERT INTO boats VALUES (4, 'x', 0), (4, 'y', 0)": longshore.IntegrityError,
    "INSERT INTO boats VALUES (NULL, 'x', 0)": longshore.IntegrityError,
    "INSERT INTO boats VALUES (-1, 'x', 0)": longshore.IntegrityError,
    "UPDATE boats SET berth = 2 WHERE berth = 1": longshore.IntegrityError,
    "UPDATE boats SET berth = berth - 1": longshore.IntegrityError,
    "UPDATE boats SET tons = 'x'": longshore.DataError,
    "UPDATE boats SET tons = unnest([1, 2])": longshore.ProgrammingError,
    "UPDATE boats SET tons = sum(tons)": longshore.ProgrammingError,
    "UPDATE boats SET nope = 1": longshore.ProgrammingError,
    "DELETE FROM boats WHERE nope = 1": longshore.ProgrammingError,
    "DELETE FROM nope": longshore.ProgrammingError,
    "INSERT INTO other.boats VALUES (1)": longshore.ProgrammingError,
    "DROP TABLE nope": longshore.ProgrammingError,
    "CREATE TABLE boats (a INTEGER)": longshore.ProgrammingError,
    "ALTER TABLE boats ALTER tons SET NOT NULL": longshore.IntegrityError,
}


@pytest.mark.parametrize("statement", BROKEN)
def test_a_statement_that_fails_changes_nothing(session: longshore.Connection, statement: str) -> None:
    with pytest.raises(BROKEN[statement]):
        session.execute(statement)
    assert rows(session) == ROWS


REFUSED = {
    "CREATE TABLE t (a INTEGER UNIQUE)": "UNIQUE",
    "CREATE TABLE t (a INTEGER REFERENCES boats (berth))": "FOREIGN KEY",
    "CREATE VIEW v AS SELECT * FROM boats": "CREATE TEMP VIEW",
    "CREATE MACRO f() AS 1": "CREATE TEMP MACRO",
    "CREATE SCHEMA s": "open a store for each",
    "CREATE SEQUENCE s": "row_number",
    "CREATE TYPE t AS ENUM ('a')": "where a column has it",
    "CREATE INDEX i ON boats (tons)": "chunks",
    "MERGE INTO boats USING boats b ON boats.berth = b.berth WHEN MATCHED THEN DELETE": "MERGE INTO",
    "ATTACH ':memory:' AS other": "ATTACH",
    "USE memory": "leave the schema out",
    "SET search_path = 'temp'": "leave the schema out",
    "COMMENT ON TABLE boats IS 'x'": "comment",
    "SELECT * FROM memory.main.boats": "leave the database out",
    "SELECT * FROM memory.boats": "leave the database out",
    "UPDATE boats SET (name, tons) = row('x', 1)": "one assignment for each column",
    "INSERT INTO boats BY NAME SELECT 1 AS berth ON CONFLICT DO NOTHING": "list the columns",
}


@pytest.mark.parametrize("statement", REFUSED)
def test_what_a_store_has_not_is_refused_with_a_remedy(session: longshore.Connection, statement: str) -> None:
    with pytest.raises(longshore.NotSupportedError, match=REFUSED[statement]):
        session.execute(statement)
    assert rows(session) == ROWS


def test_tables_are_made_altered_and_dropped(session: longshore.Connection) -> None:
    for statement in (
        "ALTER TABLE boats ADD COLUMN mast INTEGER DEFAULT 7",
        "ALTER TABLE boats ADD COLUMN flag VARCHAR",
        "ALTER TABLE boats RENAME COLUMN name TO label",
        "ALTER TABLE boats DROP COLUMN tons",
        "ALTER TABLE boats ALTER mast TYPE VARCHAR",
        "ALTER TABLE boats ALTER label SET DEFAULT 'none'",
        "ALTER TABLE boats RENAME TO ships",
        "INSERT INTO ships (berth) VALUES (4)",
    ):
        session.execute(statement)
    query = "SELECT * FROM ships ORDER BY berth"
    assert rows(session, query) == [(at, name, "7", None) for at, name, _ in ROWS] + [(4, "none", "7", None)]
    session.execute("CREATE OR REPLACE TABLE ships AS SELECT berth FROM ships WHERE berth > ?", [2])
    session.execute("CREATE TABLE IF NOT EXISTS ships (other INTEGER)")
    assert rows(session, query) == [(3,), (4,)]
    session.execute("ALTER TABLE ships ADD PRIMARY KEY (berth)")
    with pytest.raises(longshore.IntegrityError, match="key"):
        session.execute("INSERT INTO ships VALUES (3)")
    session.execute("DROP TABLE ships")
    session.execute("DROP TABLE IF EXISTS ships")
    assert rows(session, "SHOW TABLES") == []


def test_the_catalogue_is_the_engines(session: longshore.Connection) -> None:
    described = rows(session, "DESCRIBE boats")
    assert [each[:5] for each in described] == [
        ("berth", "INTEGER", "NO", "PRI", None),
        ("name", "VARCHAR", "YES", None, "'new'"),
        ("tons", "DOUBLE", "YES", None, None),
    ]
    listed = "SELECT table_schema, table_type FROM information_schema.tables WHERE table_name = 'boats'"
    rows(session, "SELECT * FROM boats")
    assert rows(session, listed) == [("main", "BASE TABLE")]


@pytest.mark.parametrize("name", ["temp", "main", "memory", "system"])
def test_a_table_is_called_as_the_engines_own_databases_are(store: longshore.Store, name: str) -> None:
    store[name] = pa.table({"x": [1, 2]})
    assert store.sql(f"INSERT INTO {name} VALUES (3)") == 1
    assert store.sql(f"UPDATE {name} SET x = x + 1 WHERE x > 1") == 2
    assert store.sql(f"DELETE FROM {name} WHERE x = 3") == 1
    store.sql(f"ALTER TABLE {name} ADD y INTEGER")
    found = store.sql(f"SELECT {name}.x, y FROM {name} ORDER BY x", return_type="arrow")
    assert found.to_pylist() == [{"x": 1, "y": None}, {"x": 4, "y": None}]
    store.sql(f"DROP TABLE {name}")
    store.sql(f"CREATE TABLE {name} (a INTEGER)")
    assert store.names() == [name]


def test_temporary_objects_are_the_sessions(session: longshore.Connection) -> None:
    session.execute("CREATE TEMP VIEW heavy AS SELECT * FROM boats WHERE tons > 2")
    session.execute("CREATE TEMP MACRO lightest() AS (SELECT min(tons) FROM boats)")
    session.execute("CREATE TEMP TABLE noted AS SELECT berth FROM heavy")
    session.execute("INSERT INTO noted VALUES (9)")
    session.execute("UPDATE boats SET tons = 5 WHERE berth = 2")
    assert rows(session, "SELECT berth FROM heavy ORDER BY 1") == [(2,), (3,)]
    assert rows(session, "SELECT lightest(), count(*) FROM noted") == [(1.5, 2)]
    # Functions may have a table's name as a text.
    assert rows(session, "SELECT count(*) FROM query_table('boats')") == [(3,)]
    session.execute("DROP TABLE noted")
    with pytest.raises(longshore.ProgrammingError, match="noted"):
        rows(session, "SELECT * FROM noted")


def test_transactions_and_savepoints(lake: Path, session: longshore.Connection) -> None:
    other = longshore.connect(f"store:///{lake}", autocommit=True)
    session.execute("BEGIN")
    session.execute("DELETE FROM boats WHERE berth = 1")
    session.execute("SAVEPOINT one")
    session.execute("CREATE TABLE mast AS SELECT 1 AS id")
    session.execute("UPDATE boats SET tons = 0")
    with pytest.raises(longshore.IntegrityError):
        session.execute("INSERT INTO boats VALUES (2, 'x', 0)")
    with pytest.raises(longshore.OperationalError, match="rolled back") as refused:
        session.execute("SELECT 1")
    assert refused.value.sqlstate == "25P02"
    session.execute("ROLLBACK TO SAVEPOINT one")
    assert rows(session) == ROWS[1:]
    assert rows(session, "SHOW TABLES") == [("boats",)]
    assert rows(other) == ROWS
    session.execute("RELEASE one")
    with pytest.raises(longshore.ProgrammingError, match="no savepoint"):
        session.execute("ROLLBACK TO one")
    session.rollback()
    assert rows(session) == ROWS
    session.execute("BEGIN")
    session.execute("ALTER TABLE boats RENAME TO ships")
    session.commit()
    assert rows(other, "SELECT count(*) FROM ships") == [(3,)]
    other.close()


def test_a_snapshot_is_of_all_tables_and_a_conflict_is_told(lake: Path, session: longshore.Connection) -> None:
    other = longshore.connect(f"store:///{lake}", autocommit=True)
    other.execute("BEGIN")
    assert rows(other) == ROWS
    session.execute("UPDATE boats SET tons = 9 WHERE berth = 1")
    assert rows(other) == ROWS
    with pytest.raises(longshore.OperationalError) as conflict:
        other.execute("UPDATE boats SET tons = 8 WHERE berth = 1")
    assert conflict.value.sqlstate == "40001"
    other.rollback()
    # One of its own begins again by itself.
    assert other.execute("UPDATE boats SET tons = 8 WHERE berth = 1") == 1
    assert rows(session)[0] == (1, "Ada", 8.0)
    other.close()


def test_a_wait_for_another_writer_ends(lake: Path, session: longshore.Connection) -> None:
    with longshore.connect(f"store:///{lake}", autocommit=True) as other:
        session.execute("BEGIN")
        session.execute("UPDATE boats SET tons = 9")
        with pytest.raises(longshore.TimeoutError):
            other.execute("UPDATE boats SET tons = 8", timeout=0.3)
        # Whoever reads does not wait.
        assert rows(other) == ROWS
        session.execute("ROLLBACK")
        assert other.execute("UPDATE boats SET tons = 8") == 3
    with longshore.connect(f"store:///{lake}?timeout=0.2", autocommit=True) as other:
        session.execute("BEGIN")
        session.execute("UPDATE boats SET tons = 9")
        with pytest.raises(longshore.OperationalError) as refused:
            other.execute("UPDATE boats SET tons = 8")
        assert refused.value.sqlstate == "55P03"
        session.execute("ROLLBACK")


def test_tables_that_were_being_made_when_a_statement_ended(
    lake: Path, session: longshore.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Session(_core.Store.open(lake))
    monkeypatch.setattr(other.mirror, "columns", Mock(side_effect=longshore.OperationalError("the deadline")))
    with pytest.raises(longshore.OperationalError):
        other.rows("SELECT count(*) FROM boats")
    monkeypatch.undo()
    assert other.rows("SELECT count(*) FROM boats") == [(3,)]
    assert rows(session) == ROWS
    other.close()


TYPES = {
    "BOOLEAN": ("true", "false"),
    "HUGEINT": ("-170141183460469231731687303715884105728", "170141183460469231731687303715884105727"),
    "UBIGINT": ("0", "18446744073709551615"),
    "FLOAT": ("'-0'", "'nan'"),
    "DECIMAL(38, 10)": ("0.1234567890", "-9999999999999999999999999999.0000000001"),
    "VARCHAR": ("''", "'Größe'"),
    "BLOB": ("''", r"'\x00\xFF'"),
    "DATE": ("'0001-01-01'", "'9999-12-31'"),
    "TIME": ("'00:00'", "'23:59:59.999999'"),
    "TIMETZ": ("'12:00:00+02'", "'00:00:00-01:30'"),
    "TIMESTAMP": ("'0001-01-01'", "'9999-12-31 23:59:59.999999'"),
    "TIMESTAMP_NS": ("'1970-01-01'", "'2026-01-01 00:00:00.123456789'"),
    "TIMESTAMPTZ": ("'1970-01-01 00:00:00+00'", "'2026-01-01 12:00:00+05'"),
    "INTERVAL": ("'1 year 2 days 3 microseconds'", "'-1 month'"),
    "UUID": ("'00000000-0000-0000-0000-000000000001'", "'ffffffff-ffff-ffff-ffff-ffffffffffff'"),
    "JSON": ("""'{"a": [1, null]}'""", "'null'"),
    "BIT": ("'0'", "'10110'"),
    "ENUM('z', 'a')": ("'z'", "'a'"),
    "INTEGER[]": ("[1, NULL]", "[]"),
    "BOOLEAN[]": ("[true, NULL]", "[false]"),
    "INTEGER[2]": ("[1, NULL]", "[3, 4]"),
    "STRUCT(a INTEGER, e ENUM('z', 'a'))": ("{'a': 1, 'e': 'a'}", "{'a': NULL, 'e': NULL}"),
    "MAP(VARCHAR, INTEGER)": ("MAP {'a': 1}", "MAP {}"),
    "UNION(n INTEGER, t VARCHAR)": ("1", "'x'"),
}


@pytest.mark.parametrize("kind", TYPES)
def test_each_type_comes_back_from_the_files(session: longshore.Connection, kind: str) -> None:
    first, second = (f"CAST({value} AS {kind})" for value in TYPES[kind])
    session.execute(f"CREATE TABLE t (n INTEGER, v {kind})")
    session.execute(f"INSERT INTO t VALUES (1, {first}), (2, {second}), (3, NULL)")
    # The rows go through the engine a second time.
    session.execute("UPDATE t SET n = n + 10")
    expected = rows(
        session, f"SELECT CAST(v AS VARCHAR), typeof(v) FROM (VALUES ({first}), ({second}), (NULL)) AS x (v)"
    )
    assert rows(session, "SELECT CAST(v AS VARCHAR), typeof(v) FROM t ORDER BY n") == expected


def test_an_enum_is_ordered_by_its_labels(session: longshore.Connection) -> None:
    session.execute("CREATE TABLE t AS SELECT unnest(['a', 'z', 'm'])::ENUM('z', 'm', 'a') AS v")
    assert rows(session, "SELECT v FROM t ORDER BY v") == [("z",), ("m",), ("a",)]


def test_a_generated_column_is_computed(session: longshore.Connection, lake: Path) -> None:
    session.execute("CREATE TABLE t (a INTEGER, twice INTEGER GENERATED ALWAYS AS (a * 2) VIRTUAL)")
    session.execute("INSERT INTO t VALUES (1), (2)")
    session.execute("UPDATE t SET a = 5 WHERE twice = 2")
    assert rows(session, "SELECT * FROM t ORDER BY a") == [(2, 4), (5, 10)]
    with longshore.open(lake) as store:
        assert store.read("t", return_type="arrow").sort_by("a").to_pydict() == {"a": [2, 5], "twice": [4, 10]}


def test_a_frames_own_types_are_kept(store: longshore.Store) -> None:
    frame = pa.table(
        {
            "label": pa.array(["x", "y"]).dictionary_encode(),
            "half": pa.array([1.5, None], pa.float16()),
            "second": pa.array([0, 1], pa.timestamp("s")),
            "long": pa.array(["a", "b"], pa.large_string()),
        }
    )
    store["t"] = frame
    assert store.sql("INSERT INTO t VALUES ('new', 0.5, '1970-01-02', 'c')") == 1
    found = store.read("t", return_type="arrow")
    assert found.schema.types == frame.schema.types
    assert found.to_pylist()[2] == {"label": "new", "half": 0.5, "second": dt.datetime(1970, 1, 2), "long": "c"}  # noqa: DTZ001
    with pytest.raises(longshore.DataError, match="half"):
        store.sql("INSERT INTO t (half) VALUES (0.1)")


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_rows_with_durations_are_changed(store: longshore.Store, unit: str) -> None:
    store["t"] = pa.table({"d": pa.array([1, None, -3], pa.duration("s")).cast(pa.duration(unit)), "n": [1, 2, 3]})
    assert store.sql("UPDATE t SET n = n + 10 WHERE n < 3") == 2
    assert store.sql("INSERT INTO t VALUES (INTERVAL '2 days 1 hour', 4)") == 1
    with pytest.raises(longshore.DataError, match="has months"):
        store.sql("INSERT INTO t VALUES (INTERVAL 1 MONTH, 5)")
    found = store.read("t", return_type="arrow").sort_by("n")
    assert found.schema.field("d").type == pa.duration(unit)
    seconds = found["d"].cast(pa.duration("s")).cast(pa.int64()).to_pylist()
    assert (seconds, found["n"].to_pylist()) == ([-3, 49 * 3_600, 1, None], [3, 4, 11, 12])


@pytest.mark.parametrize(
    ("kind", "value", "why"),
    [
        ("DATE", "'-infinity'", "infinity"),
        ("TIMESTAMP", "'infinity'", "infinity"),
        ("TIMESTAMP_S", "'infinity'", "infinity"),
        ("TIMESTAMPTZ[]", "['-infinity']", "infinity"),
        ("TIME", "'24:00'", "24:00"),
        ("STRUCT(t TIME)", "{'t': '24:00'}", "24:00"),
        ("INTERVAL", "INTERVAL 2700000 HOUR", "beyond what nanoseconds count"),
        ("MAP(INTEGER, INTERVAL)", "MAP {1: INTERVAL 2700000 HOUR}", "beyond what nanoseconds count"),
    ],
)
def test_what_arrow_lacks_is_not_stored(store: longshore.Store, kind: str, value: str, why: str) -> None:
    store.sql(f"CREATE TABLE t (n INTEGER, v {kind})")
    for statement in (f"INSERT INTO t VALUES (1, {value})", f"CREATE TABLE u AS SELECT CAST({value} AS {kind}) AS v"):
        with pytest.raises(longshore.DataError, match=why):
            store.sql(statement)
    assert (store.sql("INSERT INTO t VALUES (1, NULL)"), store.names()) == (1, ["t"])


def test_a_pivot_has_the_columns_of_its_values(store: longshore.Store) -> None:
    store["t"] = pa.table({"n": [1, 2, 4], "kind": ["x", "y", "x"]})
    for query in ("PIVOT t ON kind USING sum(n)::INT", "WITH p AS (PIVOT t ON kind USING sum(n)::INT) FROM p"):
        assert store.sql(query, return_type="arrow").to_pylist() == [{"x": 5, "y": 2}]
    with pytest.raises(longshore.NotSupportedError, match="name them"):
        store.sql("INSERT INTO t (n) SELECT x FROM (PIVOT t ON kind USING sum(n)::INT)")
    store.sql("INSERT INTO t (n) SELECT x FROM (PIVOT t ON kind IN ('x') USING sum(n)::INT)")
    assert store.sql("SELECT sum(n) AS n FROM t")["n"][0] == 12


def test_conditions_reach_the_chunks(lake: Path) -> None:
    session = Session(_core.Store.open(lake))
    session.execute("CREATE TABLE days (day INTEGER, v VARCHAR)")
    for at in range(4):
        session.execute(f"INSERT INTO days SELECT {at} * 1000 + range, 'v' FROM range(1000)")

    def touched(query: str) -> tuple[list[tuple[Any, ...]], int]:
        return session.rows(query), session.mirror.chunks["days"]

    assert touched("SELECT count(*) FROM days") == ([(4000,)], 4)
    assert touched("SELECT count(v) FROM days WHERE day >= 3000") == ([(1000,)], 1)
    assert touched("SELECT count(v) FROM days WHERE day = -1") == ([(0,)], 0)
    assert session.execute("UPDATE days SET v = 'w' WHERE day BETWEEN 1000 AND 1009") == 10
    assert session.mirror.chunks == {"longshore_target": 1, "days": 4}
    assert session.execute("DELETE FROM days WHERE day < 5") == 5
    assert session.mirror.chunks["longshore_target"] == 1
    assert session.rows("SELECT count(*), count(*) FILTER (v = 'w') FROM days") == [(3995, 10)]
    session.close()
