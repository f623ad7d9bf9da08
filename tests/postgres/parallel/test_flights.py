"""In how many flights a read is split."""

from typing import Any

import pytest

from tests.postgres.parallel.comparing import read
from tests.recorder import Recorder
from tests.servers import PostgreSQL

pytestmark = pytest.mark.server


@pytest.mark.parametrize(
    ("arguments", "count"),
    [
        ({"query": "SELECT id, word FROM t"}, 2),
        ({"query": "SELECT id, word FROM t WHERE id > $1", "params": [5]}, 3),
        ({"query": "SELECT id, word FROM t", "partition_on": "id"}, 2),
        ({"query": "SELECT id, word FROM t WHERE id > 5", "partition_on": "id"}, 3),
        ({"query": "SELECT id, word || '!' AS w FROM t", "partition_on": "w"}, 3),
        ({"query": "SELECT id, word FROM t", "partition_on": "id", "partition_range": (1, 3000)}, 2),
        ({"query": ["SELECT id FROM t", "SELECT id FROM t"]}, 2),
    ],
)
def test_flights(arguments: dict[str, Any], count: int, server: PostgreSQL) -> None:
    with Recorder((server.host, server.port)) as recorder:
        url = server.url(host=recorder.host, port=recorder.port, sslmode="disable")
        read(conn=url, partition_num=2, **arguments)
        flights = recorder.flights()
    # What comes after is the description of the result.
    described = next(index for index, flight in enumerate(flights) if flight.startswith("PDH"))
    assert described == count, flights
