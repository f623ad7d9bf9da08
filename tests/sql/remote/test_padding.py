"""``char(n)`` of PostgreSQL: what a query over it finds is what the server finds."""

import itertools
import warnings
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import longshore
from tests.long import IS_LONG
from tests.servers import Endpoint

COLUMNS = ["c", "one", "wide", "domain", "nested"]
WORDS = ["", " ", "A", "A ", "a  ", " A", "é", "A B", "日本", "_", "%"]
#: Keeps a query from being pushed whole, in both dialects.
MIXED = "random() >= 0"


@pytest.fixture(scope="module")
def boxes(postgres: Endpoint) -> Iterator[str]:
    """Give the URL of a database with `boxes` and `names`, whose texts have blanks at their ends, or none."""
    quoted = [f"'{word}'" for word in WORDS]
    rows = [
        f"({at}, {word}, substr({word}, 1, 1), {', '.join([word] * 4)}, {other}, {other}, ARRAY[{word}, {other}])"
        for at, (word, other) in enumerate(itertools.product([*quoted, "NULL"], quoted))
    ]
    postgres.psql(f"""
        DROP SCHEMA IF EXISTS padding CASCADE; CREATE SCHEMA padding; SET search_path = padding;
        CREATE DOMAIN three AS char(3); CREATE DOMAIN own AS three CHECK (VALUE <> 'never');
        CREATE TABLE boxes (id int PRIMARY KEY, c char(3), one char(1), wide char(5), domain three, nested own,
            free bpchar, word text, short varchar(9), list char(3)[]);
        INSERT INTO boxes VALUES {", ".join(rows)};
        CREATE TABLE names AS SELECT id % 7 AS id, c AS name, word FROM boxes WHERE id % 5 = 0;
    """)
    yield (
        postgres.url(database="postgres") + ("&" if "?" in postgres.url() else "?") + "options=-csearch_path%3Dpadding"
    )
    postgres.psql("DROP SCHEMA padding CASCADE")


@pytest.fixture(scope="module")
def held(boxes: str) -> Iterator[longshore.Connection]:
    """Give a connection to the same, for the many conditions: each would open three."""
    with longshore.connect(boxes, autocommit=True) as connection:
        yield connection


def rows(table: pa.Table) -> list[tuple[Any, ...]]:
    """Give the rows, in any order."""
    found = zip(*(column.to_pylist() for column in table.columns), strict=True)
    return sorted((tuple(row) for row in found), key=repr)


def warned(query: str, url: str | longshore.Connection, **more: Any) -> tuple[pa.Table, bool]:
    """Give what a query over `pg` finds, and whether it warns that the server may find something else."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        table = longshore.sql(query, attach={"pg": url}, return_type="arrow", **more)
    assert all(one.category is longshore.DataWarning and "char" in str(one.message) for one in caught)
    return table, bool(caught)


def found(query: str, url: str | longshore.Connection, *, warns: bool = False, **more: Any) -> list[tuple[Any, ...]]:
    """Give what a query over `pg` finds, once it is clear that the server finds the same, or that the query warns."""
    table, has_warned = warned(query, url, **more)
    assert has_warned is warns, query[:200]
    mine = rows(table)
    server = rows(longshore.read_sql(query.replace("pg.", ""), url, return_type="arrow", **more))
    differing = [pair for pair in itertools.zip_longest(mine, server) if pair[0] != pair[1]]
    assert warns or not differing[:3], query[:200]
    return mine


def engine(query: str, url: str) -> str:
    """Give what the engine does of a query."""
    return longshore.sql(query, attach={"pg": url}, explain=True).partition("-- engine")[2]


def conditions(form: str, words: list[str] = WORDS) -> list[str]:
    """Give a condition over each column and with each word."""
    return [form.format(column=column, word=word) for column in COLUMNS for word in words]


#: Conditions that PostgreSQL tests for the engine.
PUSHED = [
    "{column} = '{word}'",
    "'{word}' <> {column}",
    "{column} IN ('{word}', 'A   ')",
    "{column} NOT IN ('{word}', 'a ')",
    "{column} LIKE '{word}'",
    "{column} NOT LIKE '{word}%'",
    "boxes.{column} = '{word}'",
    "pg.boxes.{column} LIKE '{word}'",
]
#: Of the conditions, each so manieth.
STRIDE = 1 if IS_LONG else 11
#: Conditions in which the engine compares texts.
ENGINE = [
    "{column} IS DISTINCT FROM '{word}'",
    "{column} = '{word}'::text",
    "{column} || '' LIKE '{word}'",
    "{column} || 'x' = '{word}x'",
    "CASE {column} WHEN '{word}' THEN 1 ELSE 2 END = 1",
    "nullif({column}, '{word}') IS NULL",
    "length({column}) = length('{word}')",
    "trim({column}) = '{word}'",
    "{column} = '{word}' || ''",
]
#: Conditions that see the padding.
LOUD = [
    "{column} ILIKE '{word}'",
    "{column} LIKE '%{word}' ESCAPE '!'",
    "{column} ~ '^{word}$'",
    "{column} !~ '^{word}$'",
    "concat({column}, 'x') = '{word}x'",
    "coalesce({column}, 'x') LIKE '{word}'",
    "CASE WHEN id > 5 THEN {column} ELSE 'x' END LIKE '{word}%'",
]


@pytest.mark.parametrize("form", PUSHED)
def test_the_server_tests_conditions_on_one_table(held: longshore.Connection, form: str) -> None:
    for condition in conditions(form)[::STRIDE]:
        for text in (condition, f"{condition} AND {MIXED}"):
            found(f"SELECT id FROM pg.boxes WHERE {text}", held)


@pytest.mark.parametrize("form", [PUSHED[0], PUSHED[1], PUSHED[6], *ENGINE])
def test_conditions_find_what_the_server_finds(held: longshore.Connection, form: str) -> None:
    every = conditions(form, [word for word in WORDS if not word.endswith(" ")])
    assert found(f"SELECT id, {', '.join(f'{one} AS c{at}' for at, one in enumerate(every))} FROM pg.boxes", held)
    for condition in every[::STRIDE]:
        found(f"SELECT id FROM pg.boxes WHERE {condition}", held)
    for condition in conditions(form, ["A ", "a  ", " "])[::4]:
        query = f"SELECT id, {condition} AS c FROM pg.boxes"
        found(query, held, warns=warned(query, held)[1])


@pytest.mark.parametrize("form", [*PUSHED[2:6], *LOUD])
def test_what_sees_the_padding_warns(held: longshore.Connection, form: str) -> None:
    for condition in conditions(form)[::STRIDE]:
        assert found(f"SELECT id, {condition} AS c FROM pg.boxes", held, warns=True)


@pytest.mark.parametrize("form", ["{column} < '{word}'", "'{word}' <= {column}", "{column} BETWEEN '' AND '{word}'"])
def test_order_is_by_bytes_without_padding(held: longshore.Connection, form: str) -> None:
    for condition in conditions(form)[::STRIDE]:
        query = f"SELECT id FROM pg.boxes WHERE {condition}"
        server = query.replace("pg.", "").replace("<", 'COLLATE "C" <').replace("BETWEEN", 'COLLATE "C" BETWEEN')
        expected = rows(longshore.read_sql(server, held, return_type="arrow"))
        for text in (query, f"{query} AND {MIXED}"):
            assert rows(longshore.sql(text, attach={"pg": held}, return_type="arrow")) == expected, text


@pytest.mark.parametrize(
    "query",
    [
        "SELECT b.id FROM pg.boxes AS b JOIN pg.boxes AS o ON b.c = o.wide",
        "SELECT b.id FROM pg.boxes AS b JOIN pg.boxes AS o ON b.c = o.word",
        "SELECT b.id FROM pg.boxes AS b LEFT JOIN pg.names AS n ON c = name AND name LIKE 'A%' WHERE n.id IS NULL",
        "SELECT length(c), count(*) FROM pg.boxes GROUP BY c",
        "SELECT c || '|', count(*) FROM pg.boxes GROUP BY 1",
        "SELECT count(DISTINCT c), count(DISTINCT nested) FROM pg.boxes",
        "SELECT DISTINCT length(wide) FROM pg.boxes",
        "SELECT id FROM pg.boxes WHERE c IN (SELECT name FROM pg.names)",
        "SELECT id FROM pg.boxes WHERE word IN (SELECT name FROM pg.names)",
        "SELECT id FROM pg.boxes WHERE c NOT IN (SELECT word FROM pg.names WHERE word IS NOT NULL)",
        "SELECT k || '|' FROM (SELECT c AS k FROM pg.boxes UNION SELECT name FROM pg.names) AS d",
        "SELECT k || '|' FROM (SELECT c AS k FROM pg.boxes EXCEPT SELECT name FROM pg.names WHERE id > 2) AS d",
        "SELECT id FROM pg.boxes AS b WHERE EXISTS (SELECT 1 FROM pg.names WHERE name LIKE 'A%' AND c = name)",
        "SELECT c || word, c::text || '|', CAST(wide AS varchar) || '|', length(c), md5(c) FROM pg.boxes",
        "SELECT left(c, 2), replace(c, ' ', 'x'), rpad(c, 4, 'x'), reverse(c), trim(c) || 'x' FROM pg.boxes",
        "SELECT list[1] || '|', list[2] || 'x' FROM pg.boxes",
        "SELECT id FROM pg.boxes WHERE word LIKE c",
        "SELECT id FROM pg.boxes WHERE c LIKE 'it''s' OR c LIKE 'A_B'",
        "SELECT id FROM pg.boxes WHERE free = 'A' OR free = word",
    ],
)
def test_queries_find_what_the_server_finds(boxes: str, query: str) -> None:
    assert found(query, boxes)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT b.id, o.id FROM pg.boxes AS b JOIN pg.boxes AS o ON b.domain = o.short AND b.id < 40",
        "SELECT id FROM pg.boxes WHERE (c, 1) = ('A ', 1) AND (1, wide) <> (1, 'a ')",
        "SELECT id FROM (SELECT c AS k, id FROM pg.boxes) AS d WHERE d.k LIKE 'A  '",
        "SELECT id FROM (SELECT * FROM pg.boxes) AS d WHERE c LIKE 'A__'",
        "SELECT k FROM (SELECT * FROM (SELECT c FROM pg.boxes) AS b) AS d(k) WHERE k LIKE 'A  '",
        "WITH d AS (SELECT id, c FROM pg.boxes) SELECT id FROM d WHERE c NOT LIKE '%A'",
        "WITH d(x, y) AS (SELECT id, c FROM pg.boxes) SELECT x FROM d WHERE y LIKE 'A  '",
        "SELECT id FROM (SELECT id, c FROM pg.boxes UNION ALL SELECT id, name FROM pg.names) AS d WHERE c LIKE 'A  '",
        "SELECT id FROM pg.boxes WHERE (SELECT max(name) FROM pg.names) NOT LIKE '_ '",
        "SELECT id FROM pg.boxes AS b WHERE EXISTS (SELECT 1 FROM pg.names AS n WHERE n.id = b.id AND c NOT LIKE 'A')",
        "SELECT word FROM pg.names GROUP BY word HAVING max(name) NOT LIKE 'A'",
        "SELECT concat(c, '|', wide, word), concat_ws(',', c, word) FROM pg.boxes",
        "SELECT k FROM (SELECT id, c FROM pg.boxes) AS d(k, v) WHERE v LIKE 'A  '",
        "SELECT i FROM pg.boxes AS b(i, v) WHERE b.v LIKE 'A  ' AND \"v\" NOT LIKE 'A'",
        "SELECT id FROM pg.boxes WHERE c = ANY (SELECT short FROM pg.boxes WHERE id < 9)",
        """WITH RECURSIVE r(i, v) AS (
            SELECT 35, c FROM pg.boxes WHERE id = 35 UNION ALL SELECT i + 1, v FROM r WHERE i < 38
        ) SELECT i FROM r WHERE v LIKE 'A  '""",
        "SELECT id FROM pg.boxes WHERE c = short AND one <> word",
        "SELECT id FROM pg.boxes WHERE c IN (SELECT short FROM pg.boxes WHERE id < 9)",
        "SELECT id FROM pg.boxes WHERE c BETWEEN short AND short",
        "SELECT id FROM pg.boxes WHERE coalesce(short, 'A ') = c AND coalesce(c, 'a ') <> 'a'",
        "SELECT c || '', word FROM pg.boxes GROUP BY c, word HAVING c = max(short)",
        "SELECT id FROM (SELECT id, short AS s, c FROM pg.boxes) AS d WHERE CASE s WHEN c THEN 'x' END = 'x'",
    ],
)
def test_queries_that_see_the_padding_warn(boxes: str, query: str) -> None:
    found(query, boxes, warns=True)


def test_what_comes_out_has_no_padding(boxes: str) -> None:
    query = "SELECT DISTINCT c, one, wide, domain, nested, free, list FROM pg.boxes WHERE id = 35"
    expected = {"c": "A", "one": "A", "wide": "A", "domain": "A", "nested": "A", "free": "A", "list": ["A", "A"]}
    assert longshore.sql(query, attach={"pg": boxes}, return_type="arrow").to_pylist() == [expected]
    with longshore.connect(boxes, autocommit=True) as connection:
        frame = longshore.sql(f"SELECT * FROM pg.boxes WHERE id = 35 AND {MIXED}", attach={"pg": connection})
    assert {name: frame[name].tolist() for name in expected if name != "list"} == {
        name: [value] for name, value in expected.items() if name != "list"
    }


def test_ends_and_order(boxes: str) -> None:
    (row,) = rows(longshore.sql("SELECT min(c), max(c) FROM pg.boxes", attach={"pg": boxes}, return_type="arrow"))
    assert row == ("", "日本")
    query = "SELECT DISTINCT c FROM pg.boxes ORDER BY c DESC NULLS LAST"
    ordered = longshore.sql(query, attach={"pg": boxes}, return_type="arrow")["c"].to_pylist()
    assert ordered == ["日本", "é", "a", "_", "A B", "A", "%", " A", "", None]


def test_an_index_is_of_use(boxes: str) -> None:
    plan = longshore.sql("SELECT id FROM pg.boxes WHERE c = 'A '", attach={"pg": boxes}, explain=True)
    assert '("t1"."c" = \'A\')' in plan
    assert "nothing to do" in plan
    assert "WHERE TRUE AND" in engine(f"SELECT id FROM pg.boxes WHERE c LIKE 'A' AND {MIXED}", boxes)


@pytest.mark.parametrize("value", ["A", "A  ", "a ", " "])
@pytest.mark.parametrize("params", [list, dict])
def test_parameters_are_constants(boxes: str, value: str, params: type) -> None:
    place, given = ("?", [value]) if params is list else ("$v", {"v": value})
    query = f"SELECT id FROM pg.boxes WHERE c = {place}"
    expected = rows(longshore.read_sql(f"SELECT id FROM boxes WHERE c = '{value}'", boxes, return_type="arrow"))
    assert rows(longshore.sql(query, attach={"pg": boxes}, params=given, return_type="arrow")) == expected
    table, has_warned = warned(f"{query} AND {MIXED}", boxes, params=given)
    # The place of a parameter without a name cannot be taken out of the query.
    assert has_warned is (params is list and value.endswith(" "))
    assert has_warned or rows(table) == expected


def test_a_parameter_that_means_two_things(boxes: str) -> None:
    query = f"SELECT id FROM pg.boxes WHERE c = $v AND word = $v AND {MIXED}"
    for value in ("A", "A "):
        expected = longshore.read_sql(query.replace("pg.", "").replace("$v", f"'{value}'"), boxes, return_type="arrow")
        given = longshore.sql(query, attach={"pg": boxes}, params={"v": value}, return_type="arrow")
        assert rows(given) == rows(expected) != []


def test_a_length_that_is_not_known(boxes: str) -> None:
    assert found(f"SELECT id FROM pg.boxes WHERE free LIKE 'A' AND {MIXED}", boxes)
    with pytest.warns(longshore.DataWarning, match=r"pg\.boxes\.free \(bpchar\)"):
        longshore.sql("SELECT free ILIKE 'A' AS found FROM pg.boxes", attach={"pg": boxes})
    found(f"SELECT id FROM pg.boxes WHERE CAST(free AS VARCHAR) LIKE 'A' AND {MIXED}", boxes)
    found("SELECT id, rpad(c, 3, ' ') LIKE 'A  ' AS found FROM pg.boxes WHERE c LIKE 'A'", boxes)


def test_subqueries_without_a_name(boxes: str) -> None:
    query = "SELECT id FROM (SELECT id, c FROM pg.boxes) JOIN (SELECT short AS k FROM pg.boxes WHERE id = 2) ON c = k"
    named = query.replace(") JOIN", ") AS a JOIN").replace(") ON", ") AS b ON")
    assert rows(warned(query, boxes)[0]) == found(named, boxes, warns=True)


def test_a_frame_is_compared_as_text(boxes: str) -> None:
    frame = pa.table({"word": ["A", "A ", "a"]})
    query = "SELECT DISTINCT frame.word FROM pg.boxes JOIN frame ON c = frame.word ORDER BY ALL"
    assert rows(longshore.sql(query, attach={"pg": boxes}, frame=frame, return_type="arrow")) == [("A",), ("a",)]
