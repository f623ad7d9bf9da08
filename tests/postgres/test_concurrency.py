"""Threads, processes, and hundreds of reads: nothing is shared that must not be, and nothing is left behind."""

import concurrent.futures
import threading
import time

import psutil
import pyarrow as pa
import pytest

import longshore
from tests.long import IS_LONG
from tests.servers import Endpoint

#: How often something is read that must leave nothing.
READS = 1000 if IS_LONG else 200


def test_many_threads_at_once(url: str) -> None:
    query = "SELECT i, i::text AS t, $1::int AS n FROM generate_series(1, 20000) AS i"

    def read(number: int) -> tuple[int, int, set[int]]:
        table = longshore.read_sql(query, url, return_type="arrow", params=[number])
        return table.num_rows, sum(table["i"].to_pylist()), set(table["n"].to_pylist())

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        results = list(pool.map(read, range(64)))
    assert results == [(20_000, 200_010_000, {number}) for number in range(64)]


def test_one_stream_from_two_threads(url: str) -> None:
    stream = longshore.read_sql(
        "SELECT i FROM generate_series(1, 100000) AS i", url, return_type="arrow_stream", batch_size=100
    )
    reader = pa.RecordBatchReader.from_stream(stream)
    rows = []
    lock = threading.Lock()

    def take() -> None:
        while True:
            with lock:
                try:
                    batch = reader.read_next_batch()
                except StopIteration:
                    return
            rows.extend(batch.column(0).to_pylist())

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(rows) == list(range(1, 100_001))


def test_the_interpreter_is_free_meanwhile(url: str) -> None:
    counts = [0]
    done = threading.Event()

    def count() -> None:
        while not done.is_set():
            counts[0] += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    longshore.read_sql("SELECT pg_sleep(0.5)::text", url)
    done.set()
    thread.join()
    # A lock that was held would have let none through.
    assert counts[0] > 50


@pytest.mark.parametrize("return_type", ["pandas", "arrow", "polars", "numpy"])
def test_reads_leave_nothing(return_type: str, url: str) -> None:
    process = psutil.Process()
    query = "SELECT i, i::text AS t, ARRAY[i] AS l, i * 1.5 AS n, now() AS at FROM generate_series(1, 50) AS i"

    def read() -> None:
        longshore.read_sql(query, url, return_type=return_type)

    for _ in range(50):
        read()
    before, files, threads = process.memory_info().rss, process.num_fds(), process.num_threads()
    for _ in range(READS):
        read()
    assert process.memory_info().rss - before < 8 << 20
    # Whatever else this process does may have a file open for a while.
    deadline = time.monotonic() + 10
    while (process.num_fds() > files or process.num_threads() > threads) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert process.num_fds() <= files
    assert process.num_threads() <= threads


def test_failures_leave_nothing(url: str, postgres: Endpoint) -> None:
    process = psutil.Process()

    def fail() -> None:
        for query in ("SELECT 1 / 0", "SELEC", "SELECT 'NaN'::numeric(9,2)", "SELECT 1; SELECT 2"):
            with pytest.raises(longshore.Error):
                longshore.read_sql(query, url, return_type="arrow")
        stream = longshore.read_sql("SELECT i FROM generate_series(1, 1000000) AS i", url, return_type="arrow_stream")
        stream.close()

    for _ in range(5):
        fail()
    before, files = process.memory_info().rss, process.num_fds()
    for _ in range(50):
        fail()
    assert process.memory_info().rss - before < 20 << 20
    assert process.num_fds() <= files
    assert int(postgres.psql("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'")) < 20
