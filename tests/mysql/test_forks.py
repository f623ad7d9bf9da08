"""A forked child leaves its parent's stream alone where it is compressed, too."""

from typing import Any

import pytest

import longshore
from tests.forking import answers
from tests.mysql.reading import numbers, value
from tests.servers import MySQLEndpoint

pytestmark = [pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"), pytest.mark.costly]

ROWS = 100_000
LONG = f"{numbers(ROWS)} SELECT i, repeat('x', 1000) AS t FROM numbers WHERE i < {ROWS}"


@pytest.mark.parametrize("how", ["read", "closed", "dropped"])
def test_a_child_leaves_its_parents_stream_alone(how: str, server: MySQLEndpoint) -> None:
    url = server.url(compression="zlib")
    stream: Any = longshore.read_sql(LONG, url, return_type="arrow_stream", batch_size=1000)
    found = next(stream)["i"].to_pylist()

    def drop() -> None:
        nonlocal stream
        stream = None

    use = {"read": lambda: next(stream).num_rows, "closed": stream.close, "dropped": drop}[how]
    answer, own = answers(use, lambda: value("SELECT 7 AS n", url))
    assert "forked from" in answer if how == "read" else answer is None
    assert own == 7
    for batch in stream:
        found += batch["i"].to_pylist()
    assert sorted(found) == list(range(ROWS))
