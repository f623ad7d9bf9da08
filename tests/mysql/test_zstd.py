"""zstd on the wire, packed by libzstd."""

from collections.abc import Iterator

import pytest

import longshore
from tests.mysql.asking import words
from tests.mysql.packer import Packed, packer
from tests.mysql.reading import numbers, table, value
from tests.servers import LOOPBACK, MySQLEndpoint


@pytest.fixture(params=[None, 19], ids=["usual", "best"])
def packed(request: pytest.FixtureRequest, server: MySQLEndpoint) -> Iterator[tuple[str, Packed]]:
    """Give the URL of a server that packs with zstd, and the counts of what it packs."""
    with packer((server.host, server.port), request.param) as (port, counts):
        yield server.url(host=LOOPBACK, port=port, **words({"ssl-mode": "DISABLED", "compression": "zstd"})), counts


@pytest.mark.parametrize("protocol", ["binary", "text"])
def test_results_are_the_same(protocol: str, packed: tuple[str, Packed], server: MySQLEndpoint) -> None:
    url, counts = packed
    query = f"{numbers(999)} SELECT i, repeat(char(97 + i % 26), i) AS t FROM numbers WHERE i < 1000 ORDER BY i"
    options = {"protocol": protocol}
    assert table(query, url, options=options).equals(table(query, server.url(), options=options))
    assert counts.frames > 0
    assert counts.packed < counts.plain / 3


def test_packets_beyond_16_mebibytes(packed: tuple[str, Packed]) -> None:
    url, counts = packed
    size = 2**24 + 1000
    (row,) = table(f"SELECT repeat('xy', {size // 2}) AS t, 7 AS after", url).to_pylist()
    assert (row["t"] == "xy" * (size // 2), row["after"]) == (True, 7)
    assert counts.frames > 100


def test_what_does_not_compress_goes_as_it_is(packed: tuple[str, Packed], server: MySQLEndpoint) -> None:
    noise = "unhex(concat(" + ", ".join(f"sha2('{i}', 512)" for i in range(600)) + "))"
    assert value(f"SELECT {noise} AS t", packed[0]) == value(f"SELECT {noise} AS t", server.url())
    assert value("SELECT 'tiny' AS t", packed[0]) == "tiny"


def test_a_connection_for_many_statements(packed: tuple[str, Packed]) -> None:
    with longshore.connect(packed[0]) as connection:
        for n in range(300):
            assert table(f"SELECT {n} AS n, repeat('x', {n}) AS x", connection).to_pylist() == [{"n": n, "x": "x" * n}]
        with pytest.raises(longshore.ProgrammingError, match="1146"):
            table("SELECT * FROM nowhere", connection)
        with pytest.raises(longshore.TimeoutError):
            table("SELECT sleep(20) AS s", connection, timeout=0.3)
        assert value("SELECT 7 AS n", connection) == 7
