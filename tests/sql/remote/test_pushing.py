"""The queries that each source is asked, and what never goes there."""

import contextlib
import datetime as dt
import decimal
import sqlite3
import uuid
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest

import longshore
from tests.sql.remote.comparing import Harbour, same
from tests.sql.remote.conftest import url

pytestmark = pytest.mark.packages

WHOLE = "nothing to do"


def asked(harbour: Harbour, query: str, params: Any = None) -> str:
    """Give the SQL of the sources, after the answers were compared."""
    same(harbour, query, params)
    return harbour.plan(query, params)


@pytest.mark.parametrize(
    ("condition", "sql"),
    [
        ("num = 5", '"num" = 5)'),
        ("5 < num", '(5 < "t1"."num")'),
        ("big IN (7, -1)", '"big" IN (7, -1))'),
        ("day = '2024-02-29'", "\"day\" = '2024-02-29'::date)"),
        ("stamp >= '2024-02-29'", "\"stamp\" >= '2024-02-29 00:00:00'::timestamp)"),
        ("instant > '2024-02-29 01:00:00+01'", "> '2024-02-29 00:00:00+00'::timestamptz)"),
        ("key = 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", "::uuid)"),
        ("word > 'a'", '"word" COLLATE "C" > \'a\')'),
        ("word LIKE 'a%'", "\"word\" LIKE 'a%')"),
        ("word = 'o''clock'", "= 'o''clock')"),
        ("word = 'a\\b'", "= E'a\\\\b')"),
        ("padded = 'a'", "\"padded\" = 'a')"),
        ("padded <> 'a'", "\"padded\" <> 'a')"),
        ("padded > 'a'", '"padded" COLLATE "C" > \'a\')'),
        ("kind = 'Happy'", '"kind"::text ='),
        ("price = 2.50", '"price" = 2.50)'),
        ("dbl <> 0.1", "<> '0.1'::float8)"),
        ("flag AND NOT flag", '"flag"'),
        ("word IS NULL OR num > 3", '"word" IS NULL) OR ('),
        ("upper(word) = 'A' AND num > 3", '"num" > 3)'),
    ],
)
def test_conditions_go_to_the_source(held: Harbour, condition: str, sql: str) -> None:
    plan = asked(held, f"SELECT id, doc FROM pg.docks.hostile WHERE {condition}")
    assert sql in plan.partition("-- engine")[0]


@pytest.mark.parametrize(
    "condition",
    [
        "single = 0.1",
        "free = 1",
        "num / 2 = 1",
        "num % 7 = 1",
        "num = 2.5",
        "num = 1e0",
        "word = upper('a')",
        "word ILIKE 'A'",
        "word LIKE 'a\\_'",
        "word LIKE 'ab%' ESCAPE 'b'",
        "day = '2024-2-29'",
        "day = TIMESTAMP '2024-02-29 00:00:00'",
        "day + 1 > '2024-02-29'",
        "instant > '2024-02-29 00:00:00'",
        "upper(word) = 'A' OR num > 3",
        "random() < 2",
        "id IN (SELECT id FROM pg.docks.second WHERE second.id = hostile.id)",
        "num = ANY ([1, 2])",
        "word = 'a' COLLATE NOCASE",
        "(num, big) = (1, 1)",
    ],
)
def test_conditions_that_stay_with_the_engine(held: Harbour, condition: str) -> None:
    plan = asked(held, f"SELECT id, md5(word) FROM pg.docks.hostile WHERE {condition}")
    assert " WHERE " not in plan.partition("-- engine")[0]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT sum(price) FROM pg.docks.hostile WHERE day = '2024-02-29'",
        "SELECT day, count(*) n, sum(num), min(word) FROM pg.docks.hostile GROUP BY day ORDER BY n DESC, day LIMIT 3",
        "SELECT h.id, s.word FROM pg.docks.hostile h JOIN pg.docks.second s ON h.id = s.id AND s.num > 1",
        "SELECT DISTINCT word FROM pg.docks.hostile",
        "SELECT DISTINCT padded FROM pg.docks.hostile",
        "SELECT max(padded), count(DISTINCT padded) FROM pg.docks.hostile",
        "SELECT id, word, price FROM pg.docks.hostile WHERE word IS NOT NULL ORDER BY 2, 1 LIMIT 4 OFFSET 2",
    ],
)
def test_whole_queries_go_to_one_source(held: Harbour, query: str) -> None:
    assert WHOLE in asked(held, query)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT avg(num) FROM pg.docks.hostile",
        "SELECT sum(dbl) > 0 FROM pg.docks.hostile WHERE dbl < 2",
        "SELECT count(*) FROM pg.docks.hostile GROUP BY dbl",
        "SELECT sum(num) OVER (ORDER BY id) FROM pg.docks.hostile",
        "SELECT count(*) FROM pg.docks.hostile AS h JOIN pg.docks.second AS s ON h.other = s.word",
        "SELECT DISTINCT ON (num) num FROM pg.docks.hostile ORDER BY num",
        "SELECT num // 2 AS half FROM pg.docks.hostile",
        "SELECT word FROM pg.docks.hostile QUALIFY row_number() OVER (ORDER BY id) = 1",
        "SELECT max(num) FILTER (WHERE num > 1) OVER (ORDER BY id) FROM pg.docks.hostile",
    ],
)
def test_queries_that_stay_with_the_engine(held: Harbour, query: str) -> None:
    assert WHOLE not in asked(held, query)


@pytest.mark.parametrize("test", ["num > 1", "NUM > 1", '"num" > 1 AND count(*) > 0'])
def test_having_prefers_an_outputs_name(held: Harbour, lite: Harbour, test: str) -> None:
    query = f"SELECT word, count(*) AS num FROM {{}} GROUP BY word, {{}}.num HAVING {test}"
    assert WHOLE not in asked(held, query.format("pg.docks.hostile", "hostile"))
    assert WHOLE not in asked(lite, query.format("lite.hostile", "hostile"))


@pytest.mark.parametrize("key", ["num", "(num)", "((NUM))", "hostile.num, 1", "(hostile.num), 1"])
def test_sorting_prefers_an_outputs_name(held: Harbour, key: str) -> None:
    query = f"SELECT id AS num, num AS other FROM pg.docks.hostile ORDER BY {key}"
    assert held.given(query).to_pylist() == held.expected(query).to_pylist()
    assert WHOLE in held.plan(query)


def test_a_subquery_of_a_from_goes_by_itself(held: Harbour) -> None:
    query = "SELECT n, count(*) FROM (SELECT word, count(*) AS n FROM pg.docks.hostile GROUP BY ALL) AS d GROUP BY n"
    plan = asked(held, query)
    assert WHOLE not in plan
    assert "GROUP BY" in plan.partition("-- engine")[0]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM (SELECT id FROM my.hostile ORDER BY id DESC) AS d LIMIT 3",
        "WITH d AS (SELECT id FROM my.hostile ORDER BY id DESC) SELECT id FROM d LIMIT 3",
        "SELECT * FROM (SELECT id FROM (SELECT id FROM my.hostile ORDER BY id DESC LIMIT 9) AS d) AS e LIMIT 3",
        "SELECT e.id + 0 FROM (SELECT * FROM (SELECT id FROM my.hostile ORDER BY id DESC) AS d LIMIT 3) AS e",
    ],
)
def test_mysql_forgets_the_order_of_a_subquery(my: Harbour, query: str) -> None:
    assert WHOLE not in asked(my, query)


def test_only_columns_that_are_named_are_read(held: Harbour) -> None:
    plan = asked(held, "SELECT md5(word) FROM pg.docks.hostile AS h WHERE num + 1 > 2")
    assert plan.startswith('-- pg: longshore_1\nSELECT "num", "word" FROM "docks"."hostile"\n')


@pytest.mark.parametrize(
    "items",
    ["*", "h.*", "COLUMNS('n.*')", "* EXCLUDE (id)", "h", "#2", "struct_pack(a := h).a.word", "h.* REPLACE (1 AS id)"],
)
def test_columns_that_nothing_names_are_read_too(held: Harbour, items: str) -> None:
    same(held, f"SELECT {items} FROM pg.docks.hostile AS h WHERE num % 3 = 1")


def test_conditions_next_to_outer_joins(held: Harbour) -> None:
    on = "FROM pg.docks.hostile AS h {} JOIN pg.docks.second AS s ON h.id = s.id AND s.num > 1 AND h.num > 2"
    for side in ("LEFT", "RIGHT", "FULL", ""):
        for where in ("s.num IS NULL", "h.num IS NULL", "s.num = 7", "h.num = 7", "h.num = 7 AND s.num = 7"):
            same(held, f"SELECT h.id, s.id AS sid, md5(s.word) {on.format(side)} WHERE {where}")


@pytest.mark.parametrize(
    "value",
    [
        *[
            5,
            -5,
            True,
            None,
            2.5,
            float("nan"),
            "a",
            "a ",
            "o'clock",
            "a\\b",
            "2024-02-29",
            b"a",
            decimal.Decimal("2.50"),
        ],
        *[dt.date(2024, 2, 29), dt.datetime(2024, 2, 29, tzinfo=dt.UTC), dt.datetime(2024, 2, 29)],  # noqa: DTZ001
        *[decimal.Decimal("1E+3"), uuid.UUID("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"), 10**20, [1, 2]],
    ],
)
@pytest.mark.parametrize("column", ["num", "price", "dbl", "flag", "day", "stamp", "instant", "key", "word"])
def test_parameters(held: Harbour, column: str, value: Any) -> None:
    query = f"SELECT count(*) FROM pg.docks.hostile WHERE {column} {{}} ?"
    query = query.format("<=")
    try:
        expected = held.expected(query, [value]).to_pylist()
    except (duckdb.Error, longshore.Error):
        with pytest.raises(longshore.Error):
            held.given(query, [value])
    else:
        assert held.given(query, [value]).to_pylist() == expected


@pytest.mark.parametrize(
    ("query", "params"),
    [
        ("SELECT id FROM pg.docks.hostile WHERE num > ? AND word = ? LIMIT ?", [0, "a", 100]),
        ("SELECT id FROM pg.docks.hostile WHERE num > $2 AND word = $1", ["a", 0]),
        ("SELECT id FROM pg.docks.hostile WHERE num > $n AND big > $n AND word = $w", {"n": 0, "w": "a"}),
        ("SELECT id, $w || word AS x FROM pg.docks.hostile WHERE num > $n", {"n": 0, "w": "a"}),
        (
            "SELECT d.n, $w AS w FROM (SELECT count(*) AS n FROM pg.docks.hostile WHERE num > $n) AS d WHERE d.n > $m",
            {"n": 0, "m": 1, "w": "a"},
        ),
        ("SELECT d.n, ? AS w FROM (SELECT count(*) AS n FROM pg.docks.hostile WHERE num > ?) AS d", ["w", 0]),
        ("SELECT id FROM pg.docks.hostile WHERE num IN ($1,$2) AND word <> $3||$4", [1, 5, "a", "b"]),
        ("SELECT $$o'$a,$b$$ AS t, md5(word) FROM pg.docks.hostile WHERE num IN ($a,$b)", {"a": 1, "b": 5}),
        ("SELECT id, '$a,$b' AS t, /* $a,$b */ FROM pg.docks.hostile WHERE num IN($a,$b)--$a", {"a": 1, "b": 5}),
    ],
)
def test_parameters_by_place_and_by_name(held: Harbour, query: str, params: Any) -> None:
    same(held, query, params)


@pytest.mark.parametrize(
    ("query", "params"),
    [
        ("SELECT id, word FROM pg.docks.hostile WHERE id >= $1 AND id < ?", [5, 9]),
        ("SELECT md5(word) FROM pg.docks.hostile WHERE id >= $2 AND id < ? AND num <> $1", [3, 5, 9]),
        ("SELECT d.n, $1 AS w FROM (SELECT count(*) AS n FROM pg.docks.hostile WHERE id < ?) AS d", [7, 9]),
    ],
)
def test_numbered_parameters_next_to_others(held: Harbour, query: str, params: Any) -> None:
    plan = asked(held, query, params)
    assert " WHERE " not in plan.partition("-- engine")[0]


@pytest.mark.parametrize(
    ("before", "query", "value"),
    [
        ("SET default_collation = 'NOCASE'", "SELECT id FROM lite.cranes WHERE word = 'a' ORDER BY id DESC LIMIT 1", 2),
        ("PRAGMA default_collation = 'NOCASE'", "SELECT max(id) FROM lite.cranes WHERE word = 'a'", 2),
        ("SET default_order = 'DESC'", "SELECT d.id + 0 FROM (SELECT id FROM lite.cranes ORDER BY id LIMIT 1) AS d", 2),
        ("CREATE MACRO max(a) AS 5", "SELECT DISTINCT d.n + 0 FROM (SELECT max(id) AS n FROM lite.cranes) AS d", 5),
        ("RESET default_order", "SELECT id FROM lite.cranes WHERE word = 'a'", 1),
    ],
)
def test_what_statements_before_it_decide(tmp_path: Path, before: str, query: str, value: int) -> None:
    path = tmp_path / "cranes.db"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.executescript("CREATE TABLE cranes (id int, word text) STRICT")
        connection.executescript("INSERT INTO cranes VALUES (1, 'a'), (2, 'A')")
    harbour = Harbour({"lite": url(path)}, None)
    assert [list(row.values()) for row in harbour.given(f"{before}; {query}").to_pylist()] == [[value]]
    plan = harbour.plan(f"{before}; {query}")
    assert plan.partition("\n\n")[0].endswith('FROM "main"."cranes"')


def test_statements_before_it_that_decide_nothing(held: Harbour) -> None:
    before = "SELECT 1; CREATE TEMP TABLE crane AS SELECT 5 AS num"
    assert '"num" = 5)' in held.plan(f"{before}; SELECT md5(word) FROM pg.docks.hostile WHERE num = 5")


def test_names_with_a_colon(held: Harbour) -> None:
    query = "SELECT count(*) FROM pg.docks.hostile WHERE num > {}n AND word = ':n'"
    assert held.given(query.format(":"), {"n": 0}).equals(held.expected(query.format("$"), {"n": 0}))


@pytest.mark.parametrize(
    ("condition", "params"),
    [("num IN ($1,$2)", [1, 5]), ("num IN ($a,$b)", {"a": 1, "b": 5}), ("num IN (:a,:b)", {"a": 1, "b": 5})],
)
def test_parameters_without_a_space_between(held: Harbour, condition: str, params: Any) -> None:
    query = "SELECT count(*) FROM pg.docks.hostile WHERE {}"
    assert held.given(query.format(condition), params).equals(held.expected(query.format("num IN (1, 5)")))
    assert "IN (1, 5)" in held.plan(query.format(condition), params)
    explained = f"EXPLAIN {query.format(condition)}"
    assert held.given(explained, params).num_rows > 0


@pytest.mark.parametrize(("params", "message"), [([], "parameter"), ([1, 2], "parameter"), (None, "parameter")])
def test_parameters_that_do_not_fit_are_an_error(held: Harbour, params: Any, message: str) -> None:
    with pytest.raises(longshore.Error, match=f"(?i){message}"):
        held.given("SELECT id FROM pg.docks.hostile WHERE num > ?", params)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(*) FROM {} WHERE num > $a",
        "SELECT md5(word) FROM {} WHERE num > $a",
        "SELECT d.n + 0, $a FROM (SELECT count(*) AS n FROM {} WHERE num > $a) AS d",
        "SELECT d.n + 0 FROM (SELECT count(*) AS n FROM {} WHERE num > $a) AS d",
    ],
)
def test_a_named_parameter_too_many_is_the_engines_error(held: Harbour, query: str) -> None:
    params = {"a": 1, "zz": 2}
    with pytest.raises(longshore.Error) as expected:
        longshore.sql(query.format("frame"), frame=pd.DataFrame({"num": [5], "word": ["a"]}), params=params)
    with pytest.raises(type(expected.value), match="zz") as raised:
        held.given(query.format("pg.docks.hostile"), params)
    assert str(raised.value) == str(expected.value)


def test_values_that_options_change_are_not_asked_for(held: Harbour) -> None:
    query = "SELECT count(*) FROM pg.docks.hostile WHERE {}"
    for options, condition in [
        ({"numeric_nan": "null"}, "price IS NULL"),
        ({"infinity": "null"}, "day IS NULL"),
        ({"uuid": "text"}, "key = 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'"),
    ]:
        plan = longshore.sql(query.format(condition), attach=held.attach, options=options, explain=True)
        assert " WHERE " not in plan.partition("-- engine")[0]
    assert held.given(query.format(condition), options={"uuid": "text"}).to_pylist() == [{"count_star()": 0}]


@pytest.mark.parametrize(
    "items",
    [
        "count(big), count(*)",
        "count(*), count(DISTINCT num), count(num)",
        "count(big), count(id), max(id)",
    ],
)
def test_mysql_counts_values_next_to_rows(my8: Harbour, items: str) -> None:
    # MySQL 8.0.15 by itself gives the number of rows for both.
    for rest in ("", " WHERE id > 1000", " GROUP BY flag", " HAVING count(big) > 1"):
        same(my8, f"SELECT {items} FROM my.hostile{rest}")
    assert WHOLE in asked(my8, f"SELECT {items} FROM my.hostile")


def test_sqlite_asks_strict_tables_only(lite: Harbour) -> None:
    query = "SELECT count(*) FROM lite.{} WHERE num = 5 AND word > 'a'"
    assert WHOLE in asked(lite, query.format("hostile"))
    assert " WHERE " not in asked(lite, query.format("loose")).partition("-- engine")[0]


@pytest.mark.parametrize("backend", [None, "numpy_nullable", "pyarrow"])
def test_frames_are_those_of_loaded_tables(held: Harbour, backend: Any) -> None:
    harbour = held.engine.sql("SELECT * FROM pg.docks.hostile").to_arrow_table()
    columns = "small, num, big, price, flag, day, stamp, instant, word, other, kind"
    for query in (
        f"SELECT {columns} FROM {{}} ORDER BY id",
        "SELECT sum(num), sum(small), sum(price), count(*), min(word), max(day), max(instant) FROM {} WHERE num < 100",
        "SELECT sum(num) AS s, word FROM {} WHERE num < 100 GROUP BY word ORDER BY word",
        "SELECT d.s, d.s + 1 AS t, upper('a') FROM (SELECT sum(num) AS s FROM {} WHERE num < 100) AS d",
    ):
        given = longshore.sql(query.format("pg.docks.hostile"), attach=held.attach, dtype_backend=backend)
        expected = longshore.sql(query.format("harbour"), harbour=harbour, dtype_backend=backend)
        pd.testing.assert_frame_equal(given, expected)
