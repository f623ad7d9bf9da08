"""Connections that outlive their reads: transactions, failures of every kind and what follows them, loss, forks."""

import datetime as dt
import decimal
import gc
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest

import longshore
from tests.certificates import Certificates
from tests.recorder import Recorder
from tests.servers import H2, Endpoint, PgBouncer, PostgreSQL, QuestDB

SCHEMA = "connections"
# In the list of columns, or the server would make all rows before it sends the first.
STREAMING = "SELECT repeat('x', 100) AS t, generate_series(1, 500000000) AS i"
SLEEPING = "SELECT pg_sleep(60)::text AS t"


@pytest.fixture(autouse=True)
def _schema(postgres: Endpoint) -> Iterator[None]:
    """Give each test a schema of its own."""
    postgres.psql(f"CREATE SCHEMA {SCHEMA}; CREATE TABLE {SCHEMA}.t (i int, word text)")
    yield
    # A test that failed may have left a session, which holds locks.
    postgres.psql(f"""
        SET client_min_messages = error;
        SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = '{SCHEMA}';
        DROP SCHEMA {SCHEMA} CASCADE""")


@pytest.fixture
def here(postgres: Endpoint) -> str:
    """Give the URL whose names are looked up in the test's schema."""
    return postgres.url(options=f"-c search_path={SCHEMA}", application_name=SCHEMA)


def read(query: str | Sequence[str], conn: Any, **arguments: Any) -> list[dict[str, Any]]:
    """Return the rows."""
    table: pa.Table = longshore.read_sql(query, conn, return_type="arrow", **arguments)
    return list(table.to_pylist())


def stream(query: str | Sequence[str], conn: Any, **arguments: Any) -> Any:
    return longshore.read_sql(query, conn, return_type="arrow_stream", **arguments)


def first_batch(opened: Any) -> pa.RecordBatchReader:
    """Take one batch of a stream, and return what takes the others."""
    reader = pa.RecordBatchReader.from_stream(opened)
    assert reader.read_next_batch().num_rows > 0
    return reader


def sessions(postgres: Endpoint) -> int:
    query = f"SELECT count(*) FROM pg_stat_activity WHERE application_name = '{SCHEMA}'"
    return int(postgres.psql(query))


def wait(condition: Callable[[], bool], seconds: float = 10) -> None:
    started = time.monotonic()
    while not condition():
        assert time.monotonic() - started < seconds, "it did not come true"
        time.sleep(0.01)


def check(connection: longshore.Connection) -> None:
    """Prove that the connection answers what it is asked, and that nothing late comes between."""
    assert read("SELECT $1::int AS a, $2::text AS b", connection, params=[41, "x"]) == [{"a": 41, "b": "x"}]
    assert connection.execute("SELECT FROM generate_series(1, 7)") == 7
    assert read("SELECT 'here' AS c, pg_sleep(0.05)::text AS s", connection) == [{"c": "here", "s": ""}]
    assert [row["i"] for row in read("SELECT i FROM generate_series(1, 1000) AS i", connection)] == [*range(1, 1001)]


# Statements.


@pytest.mark.parametrize(
    ("statement", "count"),
    [
        ("CREATE TABLE other (i int)", None),
        ("CREATE TEMPORARY TABLE other AS SELECT generate_series(1, 3)", 3),
        ("INSERT INTO t SELECT generate_series(1, 5)", 5),
        ("INSERT INTO t VALUES (1) RETURNING i", 1),
        ("UPDATE t SET i = 0", 0),
        ("DELETE FROM t", 0),
        ("MERGE INTO t USING (VALUES (1), (2)) AS s (i) ON t.i = s.i WHEN NOT MATCHED THEN INSERT VALUES (s.i)", 2),
        ("SELECT 1 UNION ALL SELECT 2", 2),
        ("TABLE t", 0),
        ("SET work_mem = '5MB'", None),
        ("SHOW work_mem", None),
        ("LISTEN harbour", None),
        ("NOTIFY harbour", None),
        ("LOCK TABLE t", None),
        ("DO $$BEGIN NULL; END$$", None),
        ("TRUNCATE t", None),
        ("COMMENT ON TABLE t IS 'a; b'", None),
        ("EXPLAIN SELECT 1", None),
        ("COPY (SELECT generate_series(1, 100000)) TO STDOUT", 100_000),
        ("COPY (SELECT generate_series(1, 3)) TO STDOUT (FORMAT binary)", 3),
        ("DECLARE c CURSOR FOR SELECT 1", None),
        ("SAVEPOINT s", None),
        ("", None),
        ("-- nothing", None),
        ("SELECT 1 WHERE false;", 0),
    ],
)
def test_what_execute_returns(statement: str, count: int | None, here: str) -> None:
    with longshore.connect(here) as connection:
        assert connection.execute(statement) == count
        check(connection)


def test_procedures_and_maintenance(here: str) -> None:
    with longshore.connect(here, autocommit=True) as connection:
        connection.execute(
            "CREATE PROCEDURE p(n int) LANGUAGE plpgsql AS 'BEGIN INSERT INTO t VALUES (n); COMMIT; END'"
        )
        assert connection.execute("CALL p($1)", [7]) is None
        assert connection.execute("VACUUM t") is None
        assert read("SELECT i FROM t", connection) == [{"i": 7}]


def test_parameters_of_all_kinds(here: str) -> None:
    columns = {
        "bool": True,
        "int2": -7,
        "int8": 2**62,
        "float8": 0.1,
        "numeric(30,10)": decimal.Decimal("12345678901234567890.0123456789"),
        "text": "Übersee 🚢",
        "bytea": b"\0\xff",
        "date": dt.date(1999, 12, 31),
        "timestamp": dt.datetime(2026, 1, 2, 3, 4, 5, 6),  # noqa: DTZ001  without a time zone is what it tests
        "timestamptz": dt.datetime(2026, 1, 2, 3, 4, 5, 6, dt.UTC),
        "uuid": uuid.UUID(int=7),
        "int4[]": [1, None, 3],
        "json": {"a": [1, None]},
        "date[]": None,
    }
    with longshore.connect(here) as connection:
        connection.execute(f"CREATE TABLE kinds ({', '.join(f'c{n} {kind}' for n, kind in enumerate(columns))})")
        holes = ", ".join(f"${n + 1}" for n in range(len(columns)))
        assert connection.execute(f"INSERT INTO kinds VALUES ({holes})", list(columns.values())) == 1
        names = {f"c{n}": value for n, value in enumerate(columns.values())}
        same = " AND ".join(f"c{n}::text IS NOT DISTINCT FROM (:c{n}::{kind})::text" for n, kind in enumerate(columns))
        assert read(f"SELECT count(*) AS n FROM kinds WHERE {same}", connection, params=names) == [{"n": 1}]
        (row,) = read("SELECT * FROM kinds", connection)
        assert [*row.values()][:8] == [*columns.values()][:8]
        assert connection.execute("DELETE FROM kinds WHERE c0 = :yes AND c1 < :zero", {"yes": True, "zero": 0}) == 1


@pytest.mark.parametrize(
    ("statement", "state"),
    [
        ("SELEC", "42601"),
        ("SELECT 1; SELECT 2", "42601"),
        ("SELECT 1 / 0", "22012"),
        ("INSERT INTO missing VALUES (1)", "42P01"),
        ("COPY t FROM STDIN", "57014"),
        ("COPY t FROM STDIN (FORMAT binary)", "57014"),
        ("SELECT $1::int", "08P01"),
        ("CALL missing()", "42883"),
        ("RELEASE SAVEPOINT missing", "3B001"),
        ("DO $$BEGIN RAISE EXCEPTION 'no' USING ERRCODE = 'XY123'; END$$", "XY123"),
    ],
)
@pytest.mark.parametrize("autocommit", [False, True])
def test_a_statement_that_fails(statement: str, state: str, autocommit: bool, here: str) -> None:  # noqa: FBT001
    with longshore.connect(here, autocommit=autocommit) as connection:
        if not autocommit:
            connection.execute("INSERT INTO t VALUES (1)")
        try:
            with pytest.raises(longshore.Error) as caught:
                connection.execute(statement)
        finally:
            connection.rollback()
        if caught.value.sqlstate is None:
            # Refused before it was sent.
            assert state == "08P01"
        else:
            assert caught.value.sqlstate == (
                state if statement != "RELEASE SAVEPOINT missing" or not autocommit else "25P01"
            )
        assert read("SELECT count(*) AS n FROM t", connection) == [{"n": 0}]
        check(connection)


def test_text_that_cannot_be_sent(here: str) -> None:
    with longshore.connect(here) as connection:
        for text in ("SELECT '\0'", "SELECT '\ud800'"):
            with pytest.raises(longshore.Error):
                connection.execute(text)
        with pytest.raises(longshore.Error):
            connection.execute("SELECT $1::text", ["a\0b"])
        connection.rollback()
        check(connection)


@pytest.mark.parametrize("wrong", [{"sql": 7}, {"sql": None}, {"params": "text"}, {"params": {1}}, {"timeout": -1}])
def test_arguments_that_are_none(wrong: dict[str, Any], here: str) -> None:
    with longshore.connect(here) as connection:
        with pytest.raises(longshore.InterfaceError):
            connection.execute(**{"sql": "SELECT 1", **wrong})
        assert connection.in_transaction is False
        check(connection)


def test_what_cannot_be_connected_to(here: str) -> None:
    for conn in (None, 7, longshore.Pool(here)):
        with pytest.raises(longshore.InterfaceError, match="conn is a URL or a dict of keywords, not"):
            longshore.connect(conn)  # type: ignore[arg-type]
    with pytest.raises(longshore.InterfaceError, match="autocommit is True or False"):
        longshore.connect(here, autocommit=1)  # type: ignore[arg-type]


# Transactions.


def test_commit_and_rollback(here: str) -> None:
    with longshore.connect(here) as connection, longshore.connect(here, autocommit=True) as other:
        count = "SELECT count(*) AS n FROM t"
        assert connection.in_transaction is False
        connection.execute("INSERT INTO t VALUES (1)")
        assert connection.in_transaction is True
        assert (read(count, connection), read(count, other)) == ([{"n": 1}], [{"n": 0}])
        connection.commit()
        assert connection.in_transaction is False
        assert read(count, other) == [{"n": 1}]
        connection.execute("DELETE FROM t")
        connection.rollback()
        assert read(count, connection) == [{"n": 1}]
        connection.commit()
        connection.commit()
        connection.rollback()
        connection.rollback()


def test_a_read_begins_a_transaction(here: str) -> None:
    with longshore.connect(here) as connection:
        assert read("INSERT INTO t VALUES (1) RETURNING i", connection) == [{"i": 1}]
        assert connection.in_transaction is True
        connection.rollback()
        assert read("SELECT i FROM t", connection) == []
        assert connection.in_transaction is True
        connection.rollback()
        read("SELECT 1", connection, pre_execution_query="INSERT INTO t VALUES (2)")
        connection.rollback()
        assert read("SELECT i FROM t", here) == []


def test_autocommit(here: str) -> None:
    with longshore.connect(here, autocommit=True) as connection:
        connection.execute("INSERT INTO t VALUES (1)")
        assert connection.in_transaction is False
        read("INSERT INTO t VALUES (2) RETURNING i", connection)
        connection.rollback()
        assert read("SELECT count(*) AS n FROM t", here) == [{"n": 2}]


@pytest.mark.parametrize("autocommit", [False, True])
def test_a_transaction_by_hand(autocommit: bool, here: str) -> None:  # noqa: FBT001
    with longshore.connect(here, autocommit=autocommit) as connection:
        connection.execute("BEGIN")
        connection.execute("INSERT INTO t VALUES (1)")
        connection.execute("SAVEPOINT s")
        connection.execute("INSERT INTO t VALUES (2)")
        with pytest.raises(longshore.DataError):
            connection.execute("SELECT 1 / 0")
        connection.execute("ROLLBACK TO SAVEPOINT s")
        assert read("SELECT i FROM t", connection) == [{"i": 1}]
        assert connection.in_transaction is True
        connection.execute("COMMIT")
        assert connection.in_transaction is False
        assert read("SELECT i FROM t", here) == [{"i": 1}]


def test_leaving_with_commits_or_rolls_back(here: str, postgres: Endpoint) -> None:
    with longshore.connect(here) as connection:
        connection.execute("INSERT INTO t VALUES (1)")
    assert connection.closed
    assert read("SELECT i FROM t", here) == [{"i": 1}]

    def fail() -> None:
        with connection:
            connection.execute("LOCK TABLE t")
            connection.execute("DELETE FROM t")
            raise ZeroDivisionError

    connection = longshore.connect(here)
    with pytest.raises(ZeroDivisionError):
        fail()
    assert connection.closed
    # At once: what was rolled back holds no lock.
    postgres.psql(f"BEGIN; LOCK TABLE {SCHEMA}.t NOWAIT; COMMIT")
    assert read("SELECT i FROM t", here) == [{"i": 1}]


def test_a_failed_transaction_cannot_be_committed(here: str) -> None:
    connection = longshore.connect(here)
    connection.execute("INSERT INTO t VALUES (1)")
    with pytest.raises(longshore.DataError):
        connection.execute("SELECT 1 / 0")
    with pytest.raises(longshore.OperationalError, match="current transaction is aborted"):
        connection.execute("INSERT INTO t VALUES (2)")
    with pytest.raises(longshore.OperationalError, match="nothing was committed") as caught:
        connection.commit()
    assert "rolled back" in str(caught.value)
    assert caught.value.sqlstate == "25P02"
    assert connection.in_transaction is False
    connection.commit()
    assert read("SELECT i FROM t", connection) == []
    connection.close()
    connection = longshore.connect(here)
    with pytest.raises(longshore.DataError):
        read("SELECT 1 / 0", connection)
    with pytest.raises(longshore.OperationalError, match="nothing was committed"), connection:
        pass
    assert connection.closed


def test_a_commit_that_fails(here: str) -> None:
    with longshore.connect(here) as connection:
        connection.execute("CREATE TABLE u (i int UNIQUE DEFERRABLE INITIALLY DEFERRED)")
        connection.commit()
        connection.execute("INSERT INTO u VALUES (1), (1)")
        with pytest.raises(longshore.IntegrityError):
            connection.commit()
        assert connection.in_transaction is False
        assert read("SELECT i FROM u", connection) == []
        check(connection)


# What a read on a connection sees.


@pytest.mark.parametrize("return_type", ["pandas", "arrow", "polars", "numpy", "arrow_stream"])
@pytest.mark.parametrize("autocommit", [False, True])
def test_a_read_sees_the_session(return_type: Any, autocommit: bool, here: str) -> None:  # noqa: FBT001
    with longshore.connect(here, autocommit=autocommit) as connection:
        connection.execute("CREATE TEMPORARY TABLE own (i int)")
        connection.execute("INSERT INTO own VALUES (1), (2)")
        connection.execute("SET application_name = 'mine'")
        for _ in range(2):
            query = "SELECT i, current_setting('application_name') AS name FROM own ORDER BY i"
            result: Any = longshore.read_sql(query, connection, return_type=return_type)
            if return_type == "arrow_stream":
                result = pa.RecordBatchReader.from_stream(result).read_all()
            assert [*result["i"]] == [1, 2] or result["i"].to_pylist() == [1, 2]
            assert {str(name) for name in result["name"]} == {"mine"}


@pytest.mark.parametrize(
    "before",
    [
        "CREATE TEMPORARY TABLE own AS SELECT generate_series(1, 50000) AS i",
        "SET search_path = connections, public",
        "BEGIN",
    ],
    ids=["temporary", "set", "transaction"],
)
def test_a_session_with_a_state_reads_by_itself(before: str, here: str) -> None:
    with longshore.connect(here, autocommit=True) as connection:
        connection.execute("CREATE TABLE own AS SELECT generate_series(1, 50000) AS i")
        connection.execute(before)
        with pytest.warns(longshore.SerialReadWarning):
            rows = read("SELECT i FROM own", connection, partition_num=2)
        assert sorted(row["i"] for row in rows) == [*range(1, 50_001)]
        connection.rollback()
        check(connection)


def test_uncommitted_rows_are_read_by_the_session_itself(here: str) -> None:
    with longshore.connect(here) as connection:
        connection.execute("INSERT INTO t SELECT generate_series(1, 50000)")
        with pytest.warns(longshore.SerialReadWarning):
            rows = read("SELECT i FROM t", connection, partition_num=2)
        assert sorted(row["i"] for row in rows) == [*range(1, 50_001)]
        connection.rollback()


def test_further_connections_read_parts(here: str, postgres: Endpoint) -> None:
    with longshore.connect(here) as connection:
        connection.execute("INSERT INTO t SELECT generate_series(1, 200000)")
        connection.commit()
        rows = read("SELECT i FROM t", connection, partition_num=2)
        assert sorted(row["i"] for row in rows) == [*range(1, 200_001)]
        assert connection.in_transaction is False
        check(connection)
        connection.rollback()
        opened = stream("SELECT i FROM t", connection, partition_num=2, batch_size=1000)
        reader = first_batch(opened)
        del reader, opened
        gc.collect()
        check(connection)
    wait(lambda: sessions(postgres) == 0)


def test_a_list_is_a_transaction_of_its_own(here: str) -> None:
    with longshore.connect(here) as connection:
        assert read(["SELECT 1 AS a", "SELECT 2 AS a"], connection) == [{"a": 1}, {"a": 2}]
        assert connection.in_transaction is False
        connection.execute("INSERT INTO t VALUES (3)")
        # In the owner's transaction, it sees what that has written, and leaves it open.
        assert read(["SELECT 1 AS a", "SELECT i AS a FROM t"], connection) == [{"a": 1}, {"a": 3}]
        assert connection.in_transaction is True
        connection.commit()
        assert read("SELECT i FROM t", here) == [{"i": 3}]


# Failures, and what follows them.


def _fail(query: str | Sequence[str], kind: type[longshore.Error], **arguments: Any) -> Callable[[Any], None]:
    def fail(connection: Any) -> None:
        with pytest.raises(kind):
            read(query, connection, **arguments)

    return fail


def _leave(how: str, query: str | Sequence[str] = STREAMING) -> Callable[[Any], None]:
    def leave(connection: Any) -> None:
        opened = stream(query, connection)
        if how == "unread":
            opened.close()
            return
        reader = None if how == "dropped unread" else first_batch(opened)
        if how == "closed":
            opened.close()
        if how == "cancelled":
            opened.cancel()
        del opened, reader
        gc.collect()

    return leave


def _cancel_meanwhile(connection: Any) -> None:
    opened = stream(SLEEPING, connection)
    threading.Timer(0.2, opened.cancel).start()
    with pytest.raises(longshore.OperationalError, match="cancelled"):
        opened.next() if hasattr(opened, "next") else next(iter(opened))


def _time_out_in_stream(connection: Any) -> None:
    opened = stream(
        "SELECT i, CASE WHEN i > 100000 THEN pg_sleep(60)::text END AS s FROM generate_series(1, 200000) AS i",
        connection,
        timeout=0.5,
        batch_size=1000,
    )
    with pytest.raises((pa.ArrowException, OSError), match="no answer within"):
        pa.RecordBatchReader.from_stream(opened).read_all()


def _too_many(connection: Any) -> None:
    with pytest.raises(longshore.MemoryLimitError):
        read(STREAMING, connection, options={"memory_limit": 1 << 20})


def _execute(statement: str, kind: type[longshore.Error], **arguments: Any) -> Callable[[Any], None]:
    def execute(connection: Any) -> None:
        with pytest.raises(kind):
            connection.execute(statement, **arguments)

    return execute


MIDDLE = "SELECT i, CASE WHEN i = 150000 THEN {} ELSE 1 END AS n FROM generate_series(1, 300000) AS i"

FAILURES: dict[str, Callable[[Any], None]] = {
    "syntax": _fail("SELEC", longshore.ProgrammingError),
    "no table": _fail("SELECT * FROM missing", longshore.ProgrammingError),
    "no result": _fail("CREATE TABLE x (i int)", longshore.ProgrammingError),
    "two statements": _fail("SELECT 1; SELECT 2", longshore.ProgrammingError),
    "a value in the middle": _fail(MIDDLE.format("'NaN'::numeric(9,2)"), longshore.DataError),
    "an error in the middle": _fail(MIDDLE.format("1 / (i - 150000)"), longshore.DataError),
    "a parameter too few": _fail("SELECT $1::int, $2::int", longshore.Error, params=[1]),
    "a parameter too large": _fail("SELECT $1::int2", longshore.Error, params=[1 << 20]),
    "a column that is not there": _fail("SELECT 1 AS a", longshore.InterfaceError, schema={"b": "int8"}),
    "a type that does not fit": _fail("SELECT 'x' AS a", longshore.DataError, schema={"a": "int8"}),
    "memory": _too_many,
    "no time": _fail("SELECT 1", longshore.TimeoutError, timeout=0),
    "no time to execute": _execute("INSERT INTO t VALUES (666)", longshore.TimeoutError, timeout=0),
    "a deadline": _fail(SLEEPING, longshore.TimeoutError, timeout=0.3),
    "a deadline while rows come": _fail(STREAMING, longshore.TimeoutError, timeout=0.3),
    "a deadline while a statement runs": _execute(SLEEPING, longshore.TimeoutError, timeout=0.3),
    "a deadline while rows are thrown away": _execute(STREAMING, longshore.TimeoutError, timeout=0.3),
    "a deadline in a stream": _time_out_in_stream,
    "a stream that is closed unread": _leave("unread"),
    "a stream that is dropped unread": _leave("dropped unread"),
    "a stream that is closed": _leave("closed"),
    "a stream that is dropped": _leave("dropped"),
    "a stream that is cancelled": _leave("cancelled"),
    "a stream that is cancelled while it waits": _cancel_meanwhile,
    "a list that is dropped": _leave("dropped", [STREAMING, STREAMING]),
    "a list's deadline": _fail([SLEEPING, SLEEPING], longshore.TimeoutError, timeout=0.3),
    "a list's second query": _fail(["SELECT 1 AS a", "SELECT 1 / 0 AS a"], longshore.DataError),
    "a list's second schema": _fail(["SELECT 1 AS a", "SELECT 'x' AS a"], longshore.ProgrammingError),
    "a setup": _fail("SELECT 1", longshore.ProgrammingError, pre_execution_query=["SET work_mem = '5MB'", "SELEC"]),
    "a setup's deadline": _fail("SELECT 1", longshore.TimeoutError, pre_execution_query=SLEEPING, timeout=0.3),
    "data from nowhere": _execute("COPY t FROM STDIN", longshore.OperationalError),
    "data from nowhere before a read": _fail(
        "SELECT 1", longshore.OperationalError, pre_execution_query="COPY t FROM STDIN"
    ),
    "the server's own limit": _fail(
        SLEEPING, longshore.OperationalError, pre_execution_query="SET statement_timeout = 300"
    ),
}


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("autocommit", [False, True], ids=["transactions", "autocommit"])
def test_a_connection_goes_on_after(failure: str, autocommit: bool, here: str, postgres: Endpoint) -> None:  # noqa: FBT001
    with longshore.connect(here, autocommit=autocommit) as connection:
        (before,) = read("SELECT pg_backend_pid() AS pid", connection)
        connection.commit()
        for _ in range(2):
            FAILURES[failure](connection)
            assert not connection.closed
            connection.rollback()
            assert connection.in_transaction is False
            connection.execute("RESET statement_timeout")
            check(connection)
            assert read("SELECT count(*) AS n FROM t", connection) == [{"n": 0}]
            connection.rollback()
        assert read("SELECT pg_backend_pid() AS pid", connection) == [before]
        assert sessions(postgres) == 1


def test_no_late_cancel_stops_the_next_statement(here: str) -> None:
    with longshore.connect(here, autocommit=True) as connection:
        for number in range(150):
            query = ("SELECT 1 AS a", STREAMING, SLEEPING, f"SELECT pg_sleep({number % 10} / 1000.0)::text AS s")[
                number % 4
            ]
            stream(query, connection).close()
            rows = read("SELECT $1::int AS n, pg_sleep(0.003)::text AS s", connection, params=[number])
            assert rows == [{"n": number, "s": ""}]


@pytest.mark.parametrize("how", ["execute", "read"])
def test_ctrl_c(how: str, here: str, postgres: Endpoint) -> None:
    script = f"""
        import longshore, pyarrow
        connection = longshore.connect({here!r})
        connection.execute("CREATE TEMPORARY TABLE kept AS SELECT 7 AS i")
        connection.commit()
        try:
            print("ready", flush=True)
            if {how == "execute"}:
                connection.execute({SLEEPING!r})
            else:
                longshore.read_sql({STREAMING!r}, connection)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        connection.rollback()
        print(longshore.read_sql("SELECT i, pg_sleep(0.3)::text FROM kept", connection, return_type="numpy")["i"].data)
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout
    assert child.stdout.readline() == "ready\n"
    active = f"SELECT count(*) FROM pg_stat_activity WHERE application_name = '{SCHEMA}' AND state = 'active'"
    wait(lambda: postgres.psql(active) == "1")
    time.sleep(0.2)
    child.send_signal(signal.SIGINT)
    assert child.communicate(timeout=20) == ("interrupted\n[7]\n", "")


# Loss.


def _lose(use: Callable[[longshore.Connection], object], connection: longshore.Connection) -> longshore.Error:
    with pytest.raises(longshore.OperationalError) as caught:
        use(connection)
    assert connection.closed
    assert connection.in_transaction is False
    for again in (lambda: connection.execute("SELECT 1"), lambda: read("SELECT 1", connection), connection.commit):
        with pytest.raises(longshore.InterfaceError, match="the connection is closed"):
            again()
    connection.close()
    return caught.value


@pytest.mark.parametrize("use", ["execute", "read", "commit", "rollback"])
def test_a_terminated_session(use: str, here: str, postgres: Endpoint) -> None:
    uses: dict[str, Callable[[longshore.Connection], object]] = {
        "execute": lambda connection: connection.execute("SELECT 1"),
        "read": lambda connection: read("SELECT 1", connection),
        "commit": lambda connection: connection.commit(),
        "rollback": lambda connection: connection.rollback(),
    }
    for autocommit in (False, True):
        connection = longshore.connect(here, autocommit=autocommit)
        connection.execute("BEGIN" if autocommit else "SELECT 1")
        postgres.psql(
            f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = '{SCHEMA}'"
        )
        error = _lose(uses[use], connection)
        # The server's own reason, where the network has not forgotten it.
        assert error.sqlstate == "57P01" or "closed" in str(error) or "reset" in str(error)


def test_a_session_that_the_server_ends_says_why(here: str) -> None:
    connection = longshore.connect(here)
    connection.execute("SET idle_in_transaction_session_timeout = 100")
    time.sleep(0.4)
    error = _lose(lambda connection: connection.execute("SELECT 1"), connection)
    assert error.sqlstate == "25P03", error


def test_a_terminated_stream(here: str, postgres: Endpoint) -> None:
    connection = longshore.connect(here)
    reader = first_batch(stream(STREAMING, connection))
    postgres.psql(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '{SCHEMA}'")
    with pytest.raises((pa.ArrowException, OSError)):
        for _ in reader:
            pass
    assert connection.closed


def test_a_server_that_crashes(make_server: Callable[..., PostgreSQL]) -> None:
    server = make_server()
    connections = [longshore.connect(server.url(), autocommit=flag) for flag in (False, True)]
    server.kill()
    for connection in connections:
        _lose(lambda connection: connection.execute("SELECT 1"), connection)
    server.start()
    with longshore.connect(server.url()) as connection:
        check(connection)


# One statement at a time.


def test_a_stream_has_the_connection_to_itself(here: str) -> None:
    with longshore.connect(here) as connection:
        connection.execute("INSERT INTO t VALUES (1)")
        opened = stream("SELECT i FROM generate_series(1, 500000) AS i", connection, batch_size=1000)
        reader = first_batch(opened)
        assert connection.in_transaction is None
        assert not connection.closed
        uses: list[Callable[[], object]] = [
            lambda: connection.execute("SELECT 1"),
            lambda: read("SELECT 1", connection),
            lambda: stream("SELECT 1", connection),
            connection.commit,
            connection.rollback,
        ]
        for use in uses:
            with pytest.raises(longshore.InterfaceError, match="in use by a stream"):
                use()
        assert 1000 + reader.read_all().num_rows == 500_000
        # Free again, though the stream is still there.
        assert connection.in_transaction is True
        check(connection)
        del reader, opened
        gc.collect()
        assert not connection.closed
        connection.commit()
    assert read("SELECT i FROM t", here) == [{"i": 1}]


def test_close_lets_a_stream_go_on(here: str, postgres: Endpoint) -> None:
    connection = longshore.connect(here)
    connection.execute("INSERT INTO t VALUES (1)")
    reader = first_batch(stream("SELECT i FROM generate_series(1, 500000) AS i", connection, batch_size=1000))
    connection.close()
    assert connection.closed
    with pytest.raises(longshore.InterfaceError, match="closed"):
        connection.execute("SELECT 1")
    assert 1000 + reader.read_all().num_rows == 500_000
    wait(lambda: sessions(postgres) == 0)
    assert read("SELECT i FROM t", here) == []


def test_a_connection_that_is_dropped_is_closed(here: str, postgres: Endpoint) -> None:
    connection = longshore.connect(here)
    connection.execute("INSERT INTO t VALUES (1)")
    del connection
    gc.collect()
    wait(lambda: sessions(postgres) == 0)
    assert read("SELECT i FROM t", here) == []


def test_many_threads(here: str) -> None:
    with longshore.connect(here, autocommit=True) as connection:
        done, refused = [], []

        def work(number: int) -> None:
            for _ in range(30):
                try:
                    rows = read("SELECT $1::int AS n FROM generate_series(1, 100)", connection, params=[number])
                except longshore.InterfaceError as error:
                    refused.append(str(error))
                    time.sleep(0.001)
                else:
                    done.append(rows == [{"n": number}] * 100)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert all(done)
        assert len(done) > 8
        assert all("in use" in text for text in refused)
        check(connection)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_does_not_speak_on_it(here: str) -> None:
    with longshore.connect(here) as connection:
        connection.execute("INSERT INTO t VALUES (1)")
        ours, theirs = multiprocessing.get_context("fork").Pipe()
        child = os.fork()
        if child == 0:
            # Nothing of pytest's may run in here.
            said = []
            for use in (
                lambda: connection.execute("SELECT 1"),
                lambda: read("SELECT 1", connection),
                connection.commit,
            ):
                try:
                    said.append(repr(use()))
                except longshore.InterfaceError as error:
                    said.append(str(error))
            connection.close()
            said.append(repr(read("SELECT 1 AS a", here)))
            theirs.send(said)
            os._exit(0)
        assert ours.poll(20)
        *refused, answer = ours.recv()
        os.waitpid(child, 0)
        assert len(refused) == 3
        assert ["forked from" in text or "is closed" in text for text in refused] == [True] * 3, refused
        assert answer == "[{'a': 1}]"
        check(connection)
        connection.commit()
    assert read("SELECT i FROM t", here) == [{"i": 1}]


# The catalogue, which others change meanwhile.


def test_a_dropped_not_null_is_seen_at_once(here: str, postgres: Endpoint) -> None:
    postgres.psql(f"CREATE TABLE {SCHEMA}.n (i int NOT NULL); INSERT INTO {SCHEMA}.n VALUES (1)")
    with longshore.connect(here, autocommit=True) as connection:
        for _ in range(2):
            assert not longshore.read_sql("SELECT i FROM n", connection, return_type="arrow").schema.field("i").nullable
        postgres.psql(f"ALTER TABLE {SCHEMA}.n ALTER i DROP NOT NULL; INSERT INTO {SCHEMA}.n VALUES (NULL)")
        assert read("SELECT i FROM n", connection) == [{"i": 1}, {"i": None}]
        assert longshore.read_sql("SELECT i FROM n", connection).dtypes["i"] == "Int32"


def test_a_new_label_is_seen_at_once(here: str, postgres: Endpoint) -> None:
    postgres.psql(
        f"CREATE TYPE {SCHEMA}.mood AS ENUM ('sad'); CREATE TABLE {SCHEMA}.m (m {SCHEMA}.mood, a {SCHEMA}.mood[])"
    )
    with longshore.connect(here, autocommit=True) as connection:
        assert read("SELECT * FROM m", connection) == []
        postgres.psql(
            f"ALTER TYPE {SCHEMA}.mood ADD VALUE 'ok' BEFORE 'sad'; INSERT INTO {SCHEMA}.m VALUES ('ok', '{{ok,sad}}')"
        )
        assert read("SELECT * FROM m", connection) == [{"m": "ok", "a": ["ok", "sad"]}]
        table = longshore.read_sql("SELECT m FROM m", connection, return_type="arrow")
        assert table["m"].chunk(0).dictionary.to_pylist() == ["ok", "sad"]
        postgres.psql(f"ALTER TYPE {SCHEMA}.mood RENAME VALUE 'ok' TO 'fine'")
        assert read("SELECT m FROM m", connection) == [{"m": "fine"}]
        assert connection.execute("DELETE FROM m WHERE m = $1", ["fine"]) == 1


def test_a_changed_composite_is_seen_at_once(here: str, postgres: Endpoint) -> None:
    postgres.psql(f"CREATE TYPE {SCHEMA}.pair AS (a int, b text)")
    with longshore.connect(here, autocommit=True) as connection:
        assert read("SELECT (1, 'x')::pair AS p", connection) == [{"p": {"a": 1, "b": "x"}}]
        postgres.psql(f"ALTER TYPE {SCHEMA}.pair ADD ATTRIBUTE c date, DROP ATTRIBUTE a")
        date = dt.date(2026, 1, 2)
        assert read("SELECT ('x', '2026-01-02')::pair AS p", connection) == [{"p": {"b": "x", "c": date}}]


def test_a_column_that_becomes_an_array(here: str, postgres: Endpoint) -> None:
    with longshore.connect(here, autocommit=True) as connection:
        assert read("SELECT i FROM t", connection) == []
        postgres.psql(
            f"ALTER TABLE {SCHEMA}.t ALTER i TYPE int[][] USING ARRAY[[i]];"
            f"INSERT INTO {SCHEMA}.t VALUES (ARRAY[[1, 2]])"
        )
        assert read("SELECT i FROM t", connection) == [{"i": [[1, 2]]}]


@pytest.mark.parametrize("undo", [False, True])
def test_what_the_session_alters_itself_is_seen(undo: bool, here: str) -> None:  # noqa: FBT001
    def nullable() -> bool:
        return bool(longshore.read_sql("SELECT i FROM t", connection, return_type="arrow").schema.field("i").nullable)

    with longshore.connect(here) as connection:
        assert nullable()
        connection.commit()
        connection.execute("ALTER TABLE t ALTER i SET NOT NULL")
        assert not nullable()
        if undo:
            connection.rollback()
        assert nullable() is undo


def test_flights(postgres: Endpoint) -> None:
    with Recorder((postgres.host, postgres.port)) as recorder:
        options = f"-c search_path={SCHEMA}"
        url = postgres.url(host=recorder.host, port=recorder.port, sslmode="disable", options=options)
        with longshore.connect(url, autocommit=True) as connection:
            connection.execute("UPDATE t SET i = i + $1", [1])
            for query in ("SELECT 1 AS a", "SELECT i FROM t", "SELECT i FROM t", "SELECT i, word FROM t"):
                read(query, connection)
            connection.commit()
            connection.rollback()
    # Only what has user-defined types or may have promises is looked up: here the first read of a table.
    assert recorder.flights() == ["PDH", "BES", "PDH", "BES", "PDH", "PBECCH", "BES", "PDH", "BES", "PDH", "BES", "X"]


# Secrets.


def test_nothing_shows_the_password(postgres: Endpoint) -> None:
    secret = "s3cr3t-and-long"
    connection = longshore.connect({"url": postgres.url(), "password": secret})
    pool = longshore.Pool({"url": postgres.url(), "password": secret})
    for shown in (connection, pool):
        assert secret not in repr(shown) + str(shown) + str(vars(shown))
        with pytest.raises(TypeError, match="cannot be pickled") as caught:
            pickle.dumps(shown)
        assert secret not in str(caught.value)
    assert repr(connection) == "<Connection postgresql://*** open>"
    connection.close()
    assert repr(connection) == "<Connection postgresql://*** closed>"
    pool.close()


# Servers in between, and servers that are not PostgreSQL.


def test_through_pgbouncer(pgbouncer: PgBouncer) -> None:
    with longshore.connect(pgbouncer.url()) as connection:
        connection.execute(f"INSERT INTO {SCHEMA}.t VALUES (1)")
        connection.rollback()
        connection.execute(f"INSERT INTO {SCHEMA}.t VALUES (2)")
        connection.commit()
        for failure in ("a deadline", "a stream that is dropped", "syntax"):
            FAILURES[failure](connection)
            connection.rollback()
            check(connection)
        assert read(f"SELECT i FROM {SCHEMA}.t", connection) == [{"i": 2}]


def test_over_tls(make_server: Callable[..., PostgreSQL], certificates: Certificates) -> None:
    server = make_server(certificates=certificates)
    server.psql("CREATE TABLE t (i int)")
    url = server.url(sslmode="verify-ca", sslrootcert=str(certificates.authority))
    with longshore.connect(url) as connection:
        before = read("SELECT pid, ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()", connection)
        assert before[0]["ssl"]
        for failure in ("a deadline", "a deadline while rows come", "a stream that is dropped", "no time to execute"):
            FAILURES[failure](connection)
            connection.rollback()
            check(connection)
        assert read("SELECT pg_backend_pid() AS pid, true AS ssl", connection) == before


def test_questdb(questdb: QuestDB) -> None:
    with longshore.connect(questdb.url(), autocommit=True) as connection:
        for number in range(3):
            assert read("SELECT x FROM long_sequence(3)", connection) == [{"x": 1}, {"x": 2}, {"x": 3}], number
        with pytest.raises(longshore.Error):
            connection.execute("SELEC")
        assert read("SELECT x FROM long_sequence(2)", connection) == [{"x": 1}, {"x": 2}]


def test_h2(h2: H2) -> None:
    with longshore.connect(h2.url()) as connection:
        connection.execute("CREATE TABLE connections (i int)")
        assert connection.execute("INSERT INTO connections VALUES (1), (2)") == 2
        connection.commit()
        assert read("SELECT i FROM connections ORDER BY i", connection) == [{"i": 1}, {"i": 2}]
        connection.execute("DELETE FROM connections")
        connection.rollback()
        assert read("SELECT count(*) AS n FROM connections", connection) == [{"n": 2}]
        connection.execute("DROP TABLE connections")
