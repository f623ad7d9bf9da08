"""A network that fails at every byte of what is compressed: an error, or exactly the right result; never less."""

import time
from typing import Any

import longshore
from tests.cutter import Cutter, spread
from tests.mysql.reading import table
from tests.servers import MySQLEndpoint

QUERY = (
    "SELECT n.i, concat('t', n.i) AS t, CAST(1.5 AS DECIMAL(9,2)) AS d, nullif(n.i, 2) AS m, DATE '2024-02-29' AS day "
    "FROM (SELECT 1 AS i UNION ALL SELECT 2 UNION ALL SELECT 3) AS n"
)


def test_at_every_byte_of_what_is_compressed(server: MySQLEndpoint, cutter: Cutter) -> None:
    settings: dict[str, Any] = {"ssl-mode": "DISABLED", "compression": "zlib"}
    way = server.url(host=cutter.host, port=cutter.port, **settings)
    right = table(QUERY, way)
    size = cutter.measure(lambda: table(QUERY, way)).down

    def is_whole(byte: int) -> bool:
        """Tell whether the read succeeds; whatever it gives is right, and whatever fails says so in our own class."""
        started = time.monotonic()
        with cutter.fault("cut", byte):
            try:
                found = table(QUERY, way)
            except longshore.DatabaseError:
                return False
            finally:
                assert time.monotonic() - started < 10
        assert found.equals(right)
        return True

    places = spread(size, 3)
    assert not any(is_whole(byte) for byte in places[: (size - 40) // places.step])
