"""Writes over several connections: the same rows as over one, and all of them or none."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import longshore
from tests.servers import Endpoint, PgBouncer

ROWS = 5_000
#: So small that every connection has several pieces.
PIECE = 100
DATA = pa.table(
    {
        "n": pa.array(range(ROWS), pa.int64()),
        "t": [None if n % 7 == 0 else f"text {n}" for n in range(ROWS)],
        "f": [n / 8 for n in range(ROWS)],
        "l": [[n, None] for n in range(ROWS)],
    }
)
MODES = ("fail", "append", "replace", "truncate", "upsert")
OLD = "INSERT INTO {} VALUES (-1, 'old', 0, NULL), (7, 'old', 0, NULL)"


@pytest.fixture
def table(harbour: str, postgres: Endpoint) -> str:
    """Give a table with two rows; the key of one is the data's, too."""
    name = f"{harbour}.t"
    postgres.psql(f"CREATE TABLE {name} (n bigint PRIMARY KEY, t text, f float8, l bigint[]); {OLD.format(name)}")
    return name


def write(table: str, conn: Any, mode: Any, data: Any = DATA, *, parallel: int = 3, **arguments: Any) -> int:
    arguments = {"batch_size": PIECE, **arguments}
    key = "n" if mode == "upsert" else None
    return longshore.write_sql(data, table, conn, if_exists=mode, key=key, parallel=parallel, **arguments)


def tables(postgres: Endpoint, harbour: str) -> str:
    """Give the names of all tables of the schema."""
    return postgres.psql(
        f"SELECT string_agg(relname, ' ' ORDER BY relname) FROM pg_class "
        f"WHERE relnamespace = '{harbour}'::regnamespace AND relkind IN ('r', 'p')"
    )


def difference(postgres: Endpoint, left: str, right: str) -> str:
    return postgres.psql(
        f"SELECT count(*) FROM ((TABLE {left} EXCEPT ALL TABLE {right}) UNION ALL "
        f"(TABLE {right} EXCEPT ALL TABLE {left})) AS d"
    )


def is_as_before(postgres: Endpoint, harbour: str, also: str = "") -> bool:
    assert tables(postgres, harbour) == f"t{also}"
    return postgres.psql(f"SELECT string_agg(n || t, ' ' ORDER BY n) FROM {harbour}.t") == "-1old 7old"


def until(condition: Callable[[], object], seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come true"
        time.sleep(0.01)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("sessions", [2, 5])
def test_the_rows_are_those_of_a_serial_write(  # noqa: PLR0917  what is written, and where
    mode: str, sessions: int, table: str, harbour: str, url: str, postgres: Endpoint
) -> None:
    data = DATA.slice(8) if mode == "append" else DATA
    postgres.psql(f"CREATE TABLE {harbour}.s (LIKE {table} INCLUDING ALL); {OLD.format(f'{harbour}.s')}")
    if mode == "fail":
        postgres.psql(f"DROP TABLE {table}, {harbour}.s")
    assert write(table, url, mode, data, parallel=sessions) == len(data)
    assert write(f"{harbour}.s", url, mode, data, parallel=1) == len(data)
    assert difference(postgres, table, f"{harbour}.s") == "0"
    assert tables(postgres, harbour) == "s t"


def test_a_new_table_is_like_any_other(harbour: str, url: str, postgres: Endpoint) -> None:
    for parallel in (1, 2):
        longshore.write_sql(
            DATA, f"{harbour}.t", url, if_exists="replace", key="n", types={"t": "varchar(20)"}, parallel=parallel
        )
    assert postgres.psql(f"SELECT relpersistence FROM pg_class WHERE oid = '{harbour}.t'::regclass") == "p"
    assert postgres.psql(f"SELECT obj_description('{harbour}.t'::regclass, 'pg_class') IS NULL") == "t"
    shown = postgres.psql(f"SELECT pg_get_indexdef('{harbour}.t_pkey'::regclass)")
    assert shown == f"CREATE UNIQUE INDEX t_pkey ON {harbour}.t USING btree (n)"
    kind = f"SELECT format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = '{harbour}.t'::regclass"
    assert postgres.psql(f"{kind} AND attname = 't'") == "character varying(20)"


def test_the_last_of_equal_keys_wins(table: str, url: str, postgres: Endpoint) -> None:
    data = pa.table({"n": [n % 10 for n in range(ROWS)], "f": [float(n) for n in range(ROWS)]})
    assert write(table, url, "upsert", data, parallel=4, batch_size=7) == ROWS
    found = postgres.psql(f"SELECT string_agg(n || ':' || f, ' ' ORDER BY n) FROM {table} WHERE n >= 0")
    assert found == " ".join(f"{n}:{ROWS - 10 + n}" for n in range(10))
    assert postgres.psql(f"SELECT t FROM {table} WHERE n = 7") == "old"


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_batch_size_cuts_batches_of_any_type(size: int, harbour: str, url: str, postgres: Endpoint) -> None:
    numbers = pa.array(range(8), pa.int64())
    data = pa.table(
        {
            "n": numbers,
            "d": pa.array(["a", None, "b", "a", "b", None, "a", "c"]).dictionary_encode(),
            "r": pa.RunEndEncodedArray.from_arrays([3, 5, 8], [1, None, 2]),
            "l": pa.array([[n] * n for n in range(8)]),
            "s": pa.StructArray.from_arrays([numbers], ["a"]),
            "b": pa.array([n % 2 == 0 for n in range(8)]),
            "v": pa.array(["x" * n for n in range(8)], pa.string_view()),
        }
    ).slice(1)
    types = {"s": "jsonb"}
    longshore.write_sql(data, f"{harbour}.t", url, types=types)
    for parallel in (1, 3):
        target = f"{harbour}.p{parallel}"
        assert longshore.write_sql(data, target, url, types=types, batch_size=size, parallel=parallel) == 7
        assert difference(postgres, f"{harbour}.t", target) == "0"


def test_frames_whose_memory_is_another_librarys(table: str, url: str, postgres: Endpoint) -> None:
    def frames() -> Iterator[Any]:
        for start in range(0, ROWS, 50):
            numbers = np.arange(start, start + 50)
            yield pd.DataFrame({"n": numbers, "t": [f"text {n}" for n in numbers], "f": numbers / 8})

    for _ in range(3):
        assert write(table, url, "truncate", frames(), parallel=4) == ROWS
    assert postgres.psql(f"SELECT count(DISTINCT (n, t, f)), sum(n - f * 8) FROM {table}") == f"{ROWS}|0"


def test_frames_of_an_iterator_and_empty_ones(table: str, url: str, postgres: Endpoint) -> None:
    frames = (DATA.slice(start, 333) for start in range(0, ROWS, 333))
    assert write(table, url, "truncate", frames) == ROWS
    assert postgres.psql(f"SELECT count(DISTINCT n) FROM {table}") == str(ROWS)
    assert write(table, url, "append", DATA.slice(0, 0)) == 0
    assert write(table, url, "replace", DATA.slice(0, 0)) == 0
    assert postgres.psql(f"SELECT count(*) FROM {table}") == "0"


@pytest.mark.parametrize("mode", MODES)
def test_a_value_that_does_not_fit_has_its_row(
    mode: str, table: str, harbour: str, url: str, postgres: Endpoint
) -> None:
    data = pa.table({"n": range(ROWS), "t": ["x\0" if n == 4321 else "x" for n in range(ROWS)]})
    target = f"{harbour}.u" if mode == "fail" else table
    with pytest.raises(longshore.DataError) as caught:
        write(target, url, mode, data)
    assert (caught.value.column, caught.value.row) == ("t", 4321)
    assert is_as_before(postgres, harbour)


@pytest.mark.parametrize("mode", ["append", "truncate"])
def test_a_row_that_the_server_refuses_has_its_number(
    mode: str, table: str, harbour: str, url: str, postgres: Endpoint
) -> None:
    postgres.psql(
        f"ALTER TABLE {table} ADD CHECK (f <> 540.125), ALTER t SET NOT NULL, ADD other int CHECK (other > 0)"
    )
    data = DATA.drop(["t"]).append_column("t", pa.array(["x"] * ROWS))
    with pytest.raises(longshore.IntegrityError, match='relation "t" violates check constraint "t_f_check"') as caught:
        write(table, url, mode, data)
    assert caught.value.row == 4321
    assert "COPY t, line 4322" in (caught.value.detail or "")
    data = data.drop(["f"])
    with pytest.raises(longshore.IntegrityError, match="not-null") as caught:
        write(table, url, mode, data.set_column(2, "t", pa.array([None if n == 4001 else "x" for n in range(ROWS)])))
    assert caught.value.row == 4001
    assert is_as_before(postgres, harbour)


def test_a_text_that_the_server_parses_has_its_row(harbour: str, url: str, postgres: Endpoint) -> None:
    postgres.psql(f"CREATE TABLE {harbour}.t (n int, t inet); INSERT INTO {harbour}.t VALUES (1)")
    data = pa.table({"n": range(ROWS), "t": ["nowhere" if n == 777 else "10.0.0.1" for n in range(ROWS)]})
    with pytest.raises(longshore.DataError) as caught:
        write(f"{harbour}.t", url, "append", data)
    assert (caught.value.column, caught.value.row) == ("t", 777)
    assert postgres.psql(f"SELECT count(*) FROM {harbour}.t") == "1"


@pytest.mark.parametrize("mode", ["fail", "replace", "append"])
def test_a_duplicate_key_is_named(mode: str, table: str, harbour: str, url: str, postgres: Endpoint) -> None:
    data = DATA.set_column(0, "n", pa.array([5 if n == 4000 else n for n in range(ROWS)]))
    target = f"{harbour}.u" if mode == "fail" else table
    key = None if mode == "append" else "n"
    with pytest.raises(longshore.IntegrityError, match=r"Key \(n\)=\([57]\)") as caught:
        longshore.write_sql(data, target, url, if_exists=mode, key=key, parallel=2, batch_size=PIECE)  # type: ignore[arg-type]
    assert "longshore_" not in str(caught.value)
    assert is_as_before(postgres, harbour)


def test_triggers_rules_and_defaults(harbour: str, url: str, postgres: Endpoint) -> None:
    postgres.psql(
        f"CREATE TABLE {harbour}.t (i int GENERATED ALWAYS AS IDENTITY, n bigint NOT NULL CHECK (n > 0), "
        f"d text DEFAULT 'default', g bigint GENERATED ALWAYS AS (n * 2) STORED);"
        f"CREATE FUNCTION {harbour}.mend() RETURNS trigger LANGUAGE plpgsql AS "
        f"'BEGIN NEW.n := coalesce(NEW.n, 1); RETURN NEW; END';"
        f"CREATE TRIGGER mend BEFORE INSERT ON {harbour}.t FOR EACH ROW EXECUTE FUNCTION {harbour}.mend()"
    )
    data = pa.table({"n": pa.array([None, 2, 3], pa.int64())})
    assert write(f"{harbour}.t", url, "append", data, batch_size=1) == 3
    found = postgres.psql(f"SELECT string_agg(n || d || g, ' ' ORDER BY n) FROM {harbour}.t")
    assert found == "1default2 2default4 3default6"
    assert write(f"{harbour}.t", url, "append", pa.table({"i": [70, 71], "n": [8, 9]}), batch_size=1) == 2
    assert postgres.psql(f"SELECT max(i) FROM {harbour}.t") == "71"
    postgres.psql(f"CREATE RULE r AS ON INSERT TO {harbour}.t DO ALSO NOTIFY harbour")
    with pytest.raises(longshore.NotSupportedError, match="rules"):
        write(f"{harbour}.t", url, "append", data)


def test_a_partitioned_table(harbour: str, url: str, postgres: Endpoint) -> None:
    postgres.psql(
        f"CREATE TABLE {harbour}.t (n bigint, t text, f float8, l bigint[]) PARTITION BY RANGE (n);"
        f"CREATE TABLE {harbour}.low PARTITION OF {harbour}.t FOR VALUES FROM (0) TO (2500);"
        f"CREATE TABLE {harbour}.high PARTITION OF {harbour}.t FOR VALUES FROM (2500) TO (5000)"
    )
    assert write(f"{harbour}.t", url, "append") == ROWS
    assert postgres.psql(f"SELECT count(*) FROM {harbour}.high") == "2500"
    with pytest.raises(longshore.IntegrityError, match="no partition"):
        write(f"{harbour}.t", url, "append", DATA.set_column(0, "n", pa.array(range(1, ROWS + 1))))
    assert postgres.psql(f"SELECT count(*) FROM {harbour}.t") == str(ROWS)


def test_what_cannot_be_is_refused_before_a_row_is_taken(
    table: str, harbour: str, url: str, postgres: Endpoint
) -> None:
    def untouched() -> Iterator[pa.Table]:
        yield DATA.slice(0, 0)
        pytest.fail("a row was taken")

    def refused(kind: type[Exception], name: str, mode: str, match: str) -> None:
        with pytest.raises(kind, match=match):
            write(name, url, mode, untouched())

    refused(longshore.ProgrammingError, table, "fail", "there already")
    refused(longshore.ProgrammingError, f"{harbour}.none", "append", "there is no table")
    refused(longshore.ProgrammingError, f"{harbour}.none", "upsert", "there is no table")
    postgres.psql(f"CREATE VIEW {harbour}.v AS SELECT * FROM {table}")
    refused(longshore.NotSupportedError, f"{harbour}.v", "append", "not an ordinary table")
    refused(longshore.ProgrammingError, table, "replace", "depends on it")
    postgres.psql(f"ALTER TABLE {table} DROP CONSTRAINT t_pkey")
    refused(longshore.ProgrammingError, table, "upsert", "no unique index")
    postgres.psql(f"ALTER TABLE {table} DROP COLUMN f CASCADE")
    refused(longshore.ProgrammingError, table, "append", "has no column")
    assert is_as_before(postgres, harbour)


def test_names_in_all_their_forms(harbour: str, url: str, postgres: Endpoint) -> None:
    for name in ('Straße "1"', "x" * 63, "é" * 31, "it's", "a.b"):
        for mode in ("fail", "replace", "append"):
            assert write((harbour, name), url, mode, parallel=2) == ROWS  # type: ignore[arg-type]
    assert "longshore" not in tables(postgres, harbour)


def test_the_search_path_finds_the_table(table: str, harbour: str, postgres: Endpoint) -> None:
    url = postgres.url(options=f"-c search_path={harbour}")
    assert write("t", url, "truncate") == ROWS
    assert write("t", url, "replace") == ROWS
    assert write("u", url, "fail") == ROWS
    assert tables(postgres, harbour) == "t u"
    assert postgres.psql(f"SELECT count(*) FROM {table}") == str(ROWS)
    with pytest.raises(longshore.ProgrammingError, match="no schema"):
        write("u", postgres.url(options="-c search_path=nowhere"), "fail")


def test_a_transaction_may_be_idle_and_of_another_level(table: str, postgres: Endpoint) -> None:
    url = postgres.url(
        options="-c default_transaction_isolation=serializable -c idle_in_transaction_session_timeout=50"
    )

    def slow() -> Iterator[pa.Table]:
        yield DATA.slice(0, 2000)
        time.sleep(0.3)
        yield DATA.slice(2000)

    assert write(table, url, "truncate", slow()) == ROWS


def test_sources_that_cannot(table: str, url: str, tmp_path: Any) -> None:
    with (
        longshore.connect(url, autocommit=True) as connection,
        pytest.raises(longshore.InterfaceError, match="a connection is one session"),
    ):
        write(table, connection, "append")
    with (
        longshore.Pool(url, size=2) as pool,
        pytest.raises(longshore.InterfaceError, match=r"the pool has 2 connections, and parallel=2 takes 3"),
    ):
        write(table, pool, "append", parallel=2)
    lite = f"sqlite:///{tmp_path}/harbour.db?mode=rwc"
    data = DATA.drop(["l"])
    with pytest.warns(longshore.SerialWriteWarning, match="one connection write at a time") as caught:
        assert write("t", lite, "replace", data) == ROWS
    assert caught[0].filename.endswith("test_writing_parallel.py")
    assert longshore.read_sql("SELECT sum(n) AS n FROM t", lite, return_type="arrow")["n"][0].as_py() == sum(
        range(ROWS)
    )


def test_a_warning_that_is_an_error_stops_before_a_row(tmp_path: Any) -> None:
    lite = f"sqlite:///{tmp_path}/harbour.db?mode=rwc"
    with pytest.raises(longshore.SerialWriteWarning):
        write("t", lite, "replace", DATA.drop(["l"]))
    with pytest.raises(longshore.ProgrammingError):
        longshore.read_sql("SELECT * FROM t", lite)


def test_a_user_who_may_make_no_table(table: str, harbour: str, postgres: Endpoint) -> None:
    hand = f"hand_of_{harbour}"
    postgres.psql(
        f"CREATE ROLE {hand} LOGIN; GRANT USAGE ON SCHEMA {harbour} TO {hand}; "
        f"GRANT INSERT, SELECT ON {table} TO {hand}"
    )
    try:
        url = postgres.url(user=hand)
        with pytest.raises(longshore.ProgrammingError, match="leave parallel out"):
            write(table, url, "append", DATA.slice(8))
        assert write(table, url, "append", DATA.slice(8), parallel=1) == ROWS - 8
        postgres.psql(f"GRANT CREATE ON SCHEMA {harbour} TO {hand}; DELETE FROM {table}")
        assert write(table, url, "append") == ROWS
    finally:
        postgres.psql(f"DROP OWNED BY {hand}; DROP ROLE {hand}")


@pytest.mark.parametrize("arguments", [{"parallel": 0}, {"parallel": True}, {"parallel": 257}, {"batch_size": 0}])
def test_numbers_that_are_none(table: str, url: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(longshore.InterfaceError):
        longshore.write_sql(DATA, table, url, if_exists="append", **arguments)


def test_a_pool_has_its_sessions_back(table: str, url: str, postgres: Endpoint) -> None:
    with longshore.Pool(url, size=4) as pool:
        for mode in ("truncate", "replace", "truncate"):
            assert write(table, pool, mode) == ROWS
            assert (pool.in_use, pool.idle) == (0, 4)
        with pytest.raises(longshore.DataError):
            write(table, pool, "append", pa.table({"n": [1, 2], "t": ["x", "\0"]}), batch_size=1)
        assert pool.in_use == 0
        assert write(table, pool, "truncate") == ROWS
    assert postgres.psql(f"SELECT count(*) FROM {table}") == str(ROWS)


def test_progress_counts_all_rows(table: str, url: str) -> None:
    seen: list[Any] = []
    write(table, url, "truncate", progress=seen.append)
    assert seen[-1].rows == ROWS


def test_through_pgbouncer(table: str, pgbouncer: PgBouncer, harbour: str, postgres: Endpoint) -> None:
    for mode in ("append", "truncate", "replace"):
        data = DATA.slice(8) if mode == "append" else DATA
        assert write(table, pgbouncer.url(), mode, data, parallel=2) == len(data)
    assert tables(postgres, harbour) == "t"
