"""Through PgBouncer."""

import datetime as dt
import gc
import time
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

import longshore
from tests.postgres.connect.asking import read
from tests.servers import Endpoint, PgBouncer

# In the list of columns, or the server would make all rows before it sends the first.
STREAMING = "SELECT repeat('x', 100) AS one, generate_series(1, 500000000) AS two"
TIMESTAMP = dt.datetime(2026, 1, 2, 3, 4, 5)  # noqa: DTZ001  the column is without a time zone


def rows(url: str, query: str | list[str], **arguments: Any) -> list[dict[str, Any]]:
    """Return the query's result, each row as a dict."""
    found: list[dict[str, Any]] = longshore.read_sql(query, url, return_type="arrow", **arguments).to_pylist()
    return found


def wait(condition: Callable[[], bool]) -> None:
    """Return when the condition is true, within five seconds."""
    started = time.monotonic()
    while not condition():
        assert time.monotonic() - started < 5, "it did not come true"
        time.sleep(0.01)


def running(postgres: Endpoint, query: str) -> bool:
    """Tell whether PostgreSQL runs this very statement."""
    return (
        postgres.psql(f"SELECT count(*) FROM pg_stat_activity WHERE state <> 'idle' AND query = $q${query}$q$") != "0"
    )


@pytest.fixture
def enum(postgres: Endpoint) -> Iterator[str]:
    """Give the name of a type that only the catalogue explains."""
    postgres.psql("CREATE TYPE behind_pgbouncer AS ENUM ('low', 'high')")
    yield "behind_pgbouncer"
    postgres.psql("DROP TYPE behind_pgbouncer")


def test_pgbouncer(pgbouncer: PgBouncer) -> None:
    for _ in range(3):
        assert read(pgbouncer.url()) == 1
    assert read(pgbouncer.url(sslmode="prefer", application_name="mine")) == 1


def test_pgbouncer_params(pgbouncer: PgBouncer) -> None:
    for number in (7, 8):
        assert rows(pgbouncer.url(), "SELECT $1::int AS one, $2 AS two", params=[number, "é"]) == [
            {"one": number, "two": "é"}
        ]
    assert rows(pgbouncer.url(), "SELECT :a::int AS one", params={"a": None}) == [{"one": None}]


def test_pgbouncer_catalogue(pgbouncer: PgBouncer, enum: str) -> None:
    query = f"SELECT 'high'::{enum} AS one, ARRAY['low', NULL]::{enum}[] AS two"
    assert rows(pgbouncer.url(), query) == [{"one": "high", "two": ["low", None]}]
    frame = longshore.read_sql(query, pgbouncer.url())
    assert frame["one"].cat.categories.tolist() == ["low", "high"]


def test_pgbouncer_list(pgbouncer: PgBouncer) -> None:
    queries = [f"SELECT {number} AS one, pg_current_snapshot()::text AS two" for number in (1, 2, 3)]
    with pytest.warns(longshore.SerialReadWarning, match="pg_current_snapshot"):
        found = rows(pgbouncer.url(), queries)
    assert [row["one"] for row in found] == [1, 2, 3]
    assert len({row["two"] for row in found}) == 1


def test_pgbouncer_timeout(pgbouncer: PgBouncer, postgres: Endpoint) -> None:
    query = "SELECT pg_sleep(60)::text AS one /* behind PgBouncer */"
    started = time.monotonic()
    with pytest.raises(longshore.TimeoutError, match=r"no answer within 0\.5 s"):
        longshore.read_sql(query, pgbouncer.url(), timeout=0.5)
    assert time.monotonic() - started < 5
    wait(lambda: not running(postgres, query))
    assert read(pgbouncer.url()) == 1


def test_pgbouncer_stream_dropped(pgbouncer: PgBouncer, postgres: Endpoint) -> None:
    query = f"{STREAMING} /* behind PgBouncer */"
    reader = pa.RecordBatchReader.from_stream(
        longshore.read_sql(query, pgbouncer.url(), return_type="arrow_stream", batch_size=1000)
    )
    assert reader.read_next_batch().num_rows == 1000
    assert running(postgres, query)
    del reader
    gc.collect()
    wait(lambda: not running(postgres, query))
    assert read(pgbouncer.url()) == 1


def test_the_shared_server(postgres: Endpoint) -> None:
    assert read(postgres.url()) == 1
