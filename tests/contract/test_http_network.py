"""A network that fails in front of a server of HTTP: an error of ours or the right result, never a shorter one.

Between two answers a source may go on over another connection, so that what is cut there may be whole.
"""

import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

import longshore
from tests.cutter import Cutter

pytestmark = pytest.mark.costly

#: By the fixture of the server: a database, and a query of all of WHOLE.
SOURCES = {
    "clickhouse": (
        "default",
        "SELECT toInt64(number + 1) AS n, toString(number + 1) AS t FROM numbers(3000)",
    ),
    "trino": (
        "memory",
        "SELECT n, CAST(n AS varchar) AS t FROM UNNEST(sequence(1, 3000)) AS s (n)",
    ),
}
WHOLE = {"n": [*range(1, 3001)], "t": [str(n) for n in range(1, 3001)]}

Read = Callable[..., pa.Table]


@pytest.fixture(scope="module", params=SOURCES)
def network(request: pytest.FixtureRequest) -> Iterator[tuple[Cutter, Read]]:
    """Give a network to a server that fails where it is told to, and what reads through it."""
    place, query = SOURCES[request.param]
    server = request.getfixturevalue(request.param)
    with Cutter((server.host, server.port)) as cutter:
        url = server.url(database=place).replace(f":{server.port}", f":{cutter.port}")

        def read(**arguments: Any) -> pa.Table:
            found: pa.Table = longshore.read_sql(query, url, return_type="arrow", **arguments)
            return found

        assert read().to_pydict() == WHOLE
        yield cutter, read


def places(said: bytes) -> list[int]:
    """Return where each answer begins and where its body does, and some bytes between."""
    borders = [found.start() for found in re.finditer(rb"HTTP/1\.1 |\r\n\r\n", said)]
    return sorted({*borders, *range(0, len(said), len(said) // 6)})


@pytest.mark.parametrize("action", ["cut", "reset", "garble"])
def test_what_fails_loses_no_row(network: tuple[Cutter, Read], action: Any) -> None:
    cutter, read = network
    said = bytes(cutter.measure(read).said_down or b"")
    failed = 0
    for byte in places(said):
        with cutter.fault(action, byte, connections=1):
            started = time.monotonic()
            try:
                found = read(timeout=0.5 if action == "garble" else 10)
            except longshore.DatabaseError:
                failed += 1
            else:
                assert found.shape == (3000, 2), byte
                assert action == "garble" or found.to_pydict() == WHOLE, byte
            assert time.monotonic() - started < 10, byte
    assert failed


def test_what_stalls_ends_at_the_deadline(network: tuple[Cutter, Read]) -> None:
    cutter, read = network
    size = cutter.measure(read).down
    for third in range(3):
        with cutter.fault("stall", size * third // 3, connections=1):
            started = time.monotonic()
            with pytest.raises(longshore.TimeoutError):
                read(timeout=0.3)
            assert time.monotonic() - started < 10, f"{third} thirds"
        cutter.drop()
