"""Columns that a query cannot read are left out, and no others."""

import itertools
import json

import duckdb
import pandas as pd
import pyarrow as pa
import pytest

from longshore.duckdb import pushdown
from longshore.duckdb.pushdown import referenced_columns, syntax_of
from tests.sql.rows import rows

pytestmark = pytest.mark.packages


def _referenced(query: str) -> frozenset[str] | None:
    with duckdb.connect() as connection:
        found = connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [query]).fetchall()
    return referenced_columns(json.loads(found[0][0]))


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT A, t.b FROM t", {"a", "t", "b"}),
        ("SELECT count(*) FROM t", set()),
        ("SELECT e.meta.X FROM t e", {"e", "meta", "x"}),
        ("SELECT sum(a) FILTER (b) OVER (PARTITION BY c ORDER BY d) FROM t", {"a", "b", "c", "d"}),
        (
            "SELECT 1 FROM t JOIN u USING (Key) WHERE EXISTS (SELECT 1 FROM v WHERE v.z = t.y)",
            {"key", "v", "z", "t", "y"},
        ),
        ('SELECT "odd ""name""" FROM t', {'odd "name"'}),
        ("SELECT a.upper(), t.b.upper().lower() FROM t", {"a", "t", "b"}),
        ("WITH c AS (SELECT a FROM t) SELECT x FROM c", {"a", "x"}),
        ("SELECT a FROM (SELECT * FROM t WHERE b > 1 ORDER BY c LIMIT 3)", {"a", "b", "c"}),
        ("WITH d AS (SELECT t.*, x + 1 AS y FROM t JOIN u USING (k)) SELECT y FROM d", {"t", "x", "y", "k"}),
        ("SELECT a FROM (SELECT * FROM (FROM t)) WHERE EXISTS (SELECT * FROM u)", {"a"}),
        ("SELECT a FROM (FROM t) UNION ALL SELECT b FROM (FROM u)", {"a", "b"}),
    ],
)
def test_names_are_found(query: str, expected: set[str]) -> None:
    assert _referenced(query) == frozenset(expected)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM t",
        "FROM t",
        "SELECT t FROM t",
        "SELECT u FROM t AS U",
        "SELECT COLUMNS('a') FROM t",
        "SELECT #1 FROM t",
        "SELECT a FROM t NATURAL JOIN u",
        "SELECT x FROM t AS u(x)",
        "SELECT a FROM (DESCRIBE t)",
        "SELECT a FROM query_table('t')",
        "SELECT a FROM query('SELECT b AS a FROM t')",
        "PIVOT t ON a",
        "COPY (SELECT a FROM t) TO 'x'",
        "SELECT a FROM (SELECT DISTINCT * FROM t)",
        "SELECT a FROM (SELECT DISTINCT ON (b) * FROM t ORDER BY ALL)",
        "SELECT a FROM (SELECT *, count(*) FROM t GROUP BY ALL)",
        "SELECT a FROM (SELECT * FROM t ORDER BY 2 DESC LIMIT 3)",
        "SELECT t.upper() FROM t",
        "SELECT a FROM (SELECT * EXCLUDE (b) FROM t)",
        "SELECT a FROM (SELECT * REPLACE (1 AS b) FROM t)",
        "SELECT a FROM (SELECT * RENAME (b AS a) FROM t)",
        "SELECT a FROM (SELECT COLUMNS(*) FROM t)",
        "SELECT a FROM (SELECT s.* FROM t)",
        "SELECT a FROM (FROM t UNION ALL FROM u)",
        "SELECT a FROM (FROM t) AS d(a)",
        "WITH d(a) AS (FROM t) SELECT a FROM d",
        "WITH RECURSIVE d AS (SELECT * FROM t UNION ALL SELECT a FROM d) SELECT a FROM d",
        "SELECT a_1 FROM (SELECT * FROM t JOIN u ON t.k = u.k)",
        "SELECT d FROM (FROM t) AS d",
        "SELECT a FROM t WHERE b IN (SELECT * FROM u)",
        "SELECT (SELECT * FROM u) AS a",
        "SELECT * FROM (FROM t)",
        "PIVOT (FROM t) ON a",
        "not SQL",
    ],
)
def test_a_query_that_may_read_every_column_says_so(query: str) -> None:
    assert _referenced(query) is None


def test_a_query_reads_the_same_of_all_columns_and_of_those_it_mentions() -> None:
    """With an interval of nanoseconds next to them, only the mentioned columns are handed over."""
    plain = pa.table({"a": [1, 2, 2], "b": ["x", "y", "y"], "s": [{"a": 5, "q": 1}] * 3})
    pruned = plain.append_column("odd", pa.array([1, 1, 1], pa.duration("ns")))
    froms = ["t", "(FROM t) AS t", "(SELECT *, a * 2 AS z FROM t) AS t", "t JOIN (SELECT * FROM t) AS u USING (a)"]
    selects = ["a", "b, count(*) AS n", "s.a", "t.s.q", "max(a) OVER (ORDER BY b) AS m", "list(b) AS l"]
    rests = ["", "WHERE a > 1", "GROUP BY ALL", "ORDER BY b, a", "QUALIFY row_number() OVER (ORDER BY a) = 1"]
    same = 0
    for select, table, rest in itertools.product(selects, froms, rests):
        query = f"SELECT {select} FROM {table} {rest}"
        try:
            expected = rows(query, t=plain)
        except Exception as error:  # noqa: BLE001  whatever it is, it is the same for both
            with pytest.raises(type(error)):
                rows(query, t=pruned)
            continue
        assert sorted(map(repr, rows(query, t=pruned))) == sorted(map(repr, expected))
        same += 1
    assert same > len(selects)


def test_a_sample_is_no_obstacle() -> None:
    frame = pd.DataFrame({"a": range(20_000), "s": ["x"] * 20_000})
    assert rows("SELECT count(a) AS n FROM t USING SAMPLE 10 ROWS", t=frame) == [{"n": 10}]


def test_what_a_text_mentions_is_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pushdown, "_syntaxes", {})
    asked = []

    def of(text: str) -> list[str]:
        def serialized() -> str:
            asked.append(text)
            return '{"error": false, "column_names": ["' + text + '"]}'

        return list(syntax_of(text, serialized).columns or ())

    assert [of("a"), of("b"), of("a")] == [["a"], ["b"], ["a"]]
    assert asked == ["a", "b"]
    for number in range(63):
        of(f"c{number}")
    # There is room for 64.
    assert (of("b"), of("a")) == (["b"], ["a"])
    assert asked[65:] == ["a"]
    long = "d" * 5000
    assert of(long) == of(long) == [long]
    assert asked[66:] == [long, long]
