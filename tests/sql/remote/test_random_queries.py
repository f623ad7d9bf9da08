"""Queries made at random: the answer over attached tables is that over loaded ones."""

import os
import warnings

import duckdb
import pytest

import longshore
from tests.sql.remote.asking import Asker
from tests.sql.remote.comparing import Harbour, same

pytestmark = pytest.mark.packages

COUNT = int(os.environ.get("LONGSHORE_RANDOM_QUERIES", "60"))


@pytest.mark.costly
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.once)])
@pytest.mark.parametrize(
    "source", ["pg", *(pytest.param(name, marks=pytest.mark.once) for name in ("my", "my8")), "lite"]
)
def test_queries_at_random(source: str, seed: int, request: pytest.FixtureRequest) -> None:
    harbour: Harbour = request.getfixturevalue(source)
    asker, pushed, whole = Asker(source, seed), 0, 0
    for _ in range(COUNT // 2):
        query = asker.query()
        try:
            harbour.expected(query)
        except (duckdb.Error, longshore.Error):
            # What the engine refuses is refused, unless a source has nothing to refuse.
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", longshore.DataWarning)
            same(harbour, query)
        plan = harbour.plan(query)
        pushed += " WHERE " in plan.partition("-- engine")[0]
        whole += "nothing to do" in plan
    # The tests would say nothing if nothing were pushed.
    assert pushed > COUNT // 20
    assert whole > (COUNT // 40 if source == "pg" else 0)
