"""Parts by a column of any distribution: of about one size, and no row twice."""

import warnings

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.postgres.parallel.comparing import Statements, in_parts
from tests.servers import PostgreSQL

pytestmark = pytest.mark.server


@pytest.mark.parametrize("number", [2, 3, 8, 16])
@pytest.mark.parametrize("heavy", ["7", "NULL"])
def test_a_value_that_dominates(heavy: str, number: int, server: PostgreSQL) -> None:
    server.psql(f"""
        DROP TABLE IF EXISTS skewed;
        CREATE TABLE skewed AS
        SELECT i, CASE WHEN i % 10 > 0 THEN {heavy} ELSE i END AS k, repeat('x', 20) AS filler
        FROM generate_series(1, 20000) AS i;
        ANALYZE skewed;
    """)
    statements = Statements(server)
    in_parts("SELECT k, i AS j FROM skewed WHERE i > 0", server.url(), partition_on="k", partition_num=number)
    parts = statements.of_parts()
    if heavy == "NULL":
        assert sum("IS NULL" in part for part in parts) == 1
        return
    found = [server.psql(f"SELECT count(DISTINCT k), min(k) FROM ({part}) AS p").strip() for part in parts]
    # What divides it is not its value: a part by blocks needs no partition_on.
    assert found.count("1|7") == 1
    assert len(found) > 1


def test_five_values_and_a_tail(server: PostgreSQL) -> None:
    server.psql("""
        CREATE TABLE five AS SELECT i, CASE WHEN i % 5 > 0 THEN i % 7 % 5 ELSE i END AS k
        FROM generate_series(1, 30000) AS i;
        VACUUM ANALYZE five;
    """)
    for number in (2, 4, 8):
        statements = Statements(server)
        whole = in_parts("SELECT k, i FROM five", server.url(), partition_on="k", partition_num=number)
        sizes = [int(server.psql(f"SELECT count(*) FROM ({part}) AS p")) for part in statements.of_parts()]
        assert sum(sizes) == whole.num_rows
        # One value alone has 23 %.
        assert max(sizes) < max(1.4 / number, 0.23) * whole.num_rows


@pytest.mark.parametrize("condition", ["id > 2700", "id BETWEEN 100 AND 300", "word = 'word 7'", "k = 3 AND id > 1000"])
def test_parts_are_even_whatever_the_condition(condition: str, server: PostgreSQL) -> None:
    statements = Statements(server)
    query = f"SELECT id, word FROM t WHERE {condition}"
    whole = in_parts(query, server.url(), partition_on="id", partition_num=4)
    sizes = [int(server.psql(f"SELECT count(*) FROM ({part}) AS p")) for part in statements.of_parts()]
    assert sum(sizes) == whole.num_rows
    assert max(sizes) <= 2 * whole.num_rows / 4


CELLS = st.one_of(
    st.none(),
    st.sampled_from([0, 1, 1, 1, 7]),
    st.integers(-5, 5),
    st.integers(-(2**31), 2**31 - 1),
)


@pytest.mark.once
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    keys=st.lists(st.tuples(CELLS, st.sampled_from([1, 2, 50, 400])), max_size=30),
    number=st.integers(2, 12),
    analyzed=st.booleans(),
)
def test_no_row_is_lost_or_doubled(
    keys: list[tuple[int | None, int]],
    number: int,
    analyzed: bool,  # noqa: FBT001
    server: PostgreSQL,
) -> None:
    values = ", ".join(f"({'NULL' if key is None else key}::int8, {times})" for key, times in keys) or "(NULL::int8, 0)"
    server.psql(f"""
        DROP TABLE IF EXISTS drawn;
        CREATE TABLE drawn AS SELECT row_number() OVER () AS n, key::int
        FROM (VALUES {values}) AS v (key, times), generate_series(1, times);
    """)
    if analyzed:
        server.psql("ANALYZE drawn")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        in_parts("SELECT * FROM drawn", server.url(), partition_on="key", partition_num=number)
        in_parts("SELECT * FROM drawn", server.url(), ordered=True, partition_num=number)
