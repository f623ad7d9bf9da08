"""Failures of every kind."""

import gc
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pytest

import longshore
from tests.postgres.connections.using import SLEEPING, STREAMING, first_batch, read, stream


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
    "a list's deadline": _fail([SLEEPING, SLEEPING], longshore.TimeoutError, partition_num=1, timeout=0.3),
    "a list's second query": _fail(["SELECT 1 AS a", "SELECT 1 / 0 AS a"], longshore.DataError, partition_num=1),
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
