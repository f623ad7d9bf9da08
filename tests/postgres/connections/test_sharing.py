"""One statement at a time: streams, threads, forks, the end."""

import gc
import threading
import time
from typing import TYPE_CHECKING

import pytest

import longshore
from tests.postgres.connections.using import check, first_batch, read, sessions, stream, wait
from tests.servers import Endpoint

if TYPE_CHECKING:
    from collections.abc import Callable


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
