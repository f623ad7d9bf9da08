"""Texts whose collation finds more equal than bytes: the server compares them, or the query warns."""

import uuid
import warnings
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pytest

import longshore
from tests.servers import MySQLEndpoint

_WORDS = ["a", "A", "á", "a ", "b", "B ", "", " ", "a_"]


@pytest.fixture(scope="module", params=["mariadb", "mysql"])
def signs(request: pytest.FixtureRequest) -> Iterator[str]:
    """Give the URL of a database with `signs`, a column for each kind of collation."""
    server: MySQLEndpoint = request.getfixturevalue(request.param)
    name = f"signs_{uuid.uuid4().hex[:8]}"
    rows = ", ".join(f"({at}, {at % 3}, '{word}', '{word}', 'Red')" for at, word in enumerate(_WORDS))
    server.sql(f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
    server.sql(
        f"""CREATE TABLE signs (id int PRIMARY KEY, num int, word varchar(9) COLLATE utf8mb4_general_ci,
            spaced varchar(9) COLLATE utf8mb4_bin, color enum('Red', 'Blue') COLLATE utf8mb4_general_ci);
        INSERT INTO signs VALUES {rows}, (99, NULL, NULL, NULL, NULL)""",
        database=name,
    )
    yield server.url(database=name)
    server.sql(f"DROP DATABASE {name}")


def mine(query: str, url: str, **more: Any) -> list[tuple[Any, ...]]:
    """Give the rows of a query over `my`; a warning is an error."""
    found = longshore.sql(query, attach={"my": url}, return_type="arrow", **more)
    return [tuple(row.values()) for row in found.to_pylist()]


def warned(query: str, url: str, **more: Any) -> list[str]:
    """Give the warnings of a query."""
    frame = pd.DataFrame({"num": [1], "word": ["a"]})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        longshore.sql(query, attach={"my": url}, **more)
    del frame
    assert all(one.filename == __file__ for one in caught)
    assert all(one.category is longshore.DataWarning for one in caught)
    return [str(one.message) for one in caught]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id FROM my.signs WHERE word = 'a'",
        "SELECT id FROM my.signs WHERE word <> 'a'",
        "SELECT id FROM my.signs WHERE word IN ('a', 'B')",
        "SELECT id FROM my.signs WHERE word NOT IN ('a', 'B') OR num = 1",
        "SELECT id FROM my.signs WHERE word LIKE 'A%'",
        "SELECT id FROM my.signs WHERE word NOT LIKE 'A_' AND spaced LIKE 'a'",
        "SELECT id FROM my.signs WHERE spaced = 'a'",
        "SELECT count(DISTINCT word) AS n, count(DISTINCT spaced) AS m FROM my.signs",
        "SELECT count(*) AS n FROM my.signs GROUP BY word",
        "SELECT a.id, b.id AS other FROM my.signs AS a JOIN my.signs AS b ON a.word = b.word",
        "SELECT id, upper(hex(num)) AS h FROM my.signs WHERE word = 'a' AND spaced <> 'b'",
        "SELECT id, hex(num) AS h FROM my.signs WHERE (word = 'a' OR word NOT IN ('A', 'B')) AND num < 2",
        "SELECT s.id, hex(s.num) AS h FROM my.signs AS s LEFT JOIN my.signs AS o ON s.id = o.id AND o.word = 'a'",
    ],
)
def test_the_server_compares(signs: str, query: str) -> None:
    server = longshore.read_sql(query.replace("my.", ""), signs, return_type="arrow").to_pylist()
    assert sorted(mine(query, signs)) == sorted(tuple(row.values()) for row in server)


def test_a_condition_next_to_a_frame_is_the_servers(signs: str) -> None:
    frame = pd.DataFrame({"num": [0, 1, 2], "fee": [5, 6, 7]})
    query = "SELECT id, fee FROM frame JOIN my.signs USING (num) WHERE word = {} ORDER BY id"
    expected = [(0, 5), (1, 6), (2, 7), (3, 5)]
    assert mine(query.format("'A'"), signs, frame=frame) == expected
    assert mine(query.format("$w"), signs, frame=frame, params={"w": "A"}) == expected


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ("SELECT id FROM my.signs WHERE md5(word) <> '' AND word > 'a'", ["my.signs.word (utf8mb4_general_ci)"]),
        ("SELECT id FROM my.signs WHERE spaced = lower(word)", ["my.signs.spaced (utf8mb4_bin)"]),
        ("SELECT hex(num) FROM my.signs WHERE color = 'red'", ["my.signs.color (utf8mb4_general_ci)"]),
        ("SELECT id FROM my.signs JOIN frame USING (word)", ["my.signs.word (utf8mb4_general_ci)"]),
        ("SELECT id FROM my.signs NATURAL JOIN (SELECT word, id FROM my.signs WHERE hex(num) <> '')", ["signs.word"]),
        ("SELECT DISTINCT word, hex(num) FROM my.signs", ["my.signs.word"]),
        ("SELECT DISTINCT ON (d.word) hex(num) FROM (SELECT * FROM my.signs) AS d", ["my.signs.word"]),
        ("WITH d AS (SELECT word AS w, hex(num) FROM my.signs) SELECT DISTINCT * FROM d", ["my.signs.word"]),
        ("SELECT i FROM (SELECT * FROM my.signs) AS d(i, n, w) WHERE w = md5('a')", ["my.signs."]),
        ("SELECT md5(w) FROM (SELECT 'a' AS w UNION ALL SELECT word FROM my.signs) WHERE w = 'a'", ["my.signs.word"]),
        ("SELECT word, avg(num) FROM my.signs GROUP BY ALL", ["my.signs.word"]),
        ("SELECT spaced AS k, avg(num) FROM my.signs GROUP BY k", ["my.signs.spaced"]),
        ("SELECT word, avg(num) FROM my.signs GROUP BY 1", ["my.signs.word"]),
        ("SELECT word FROM my.signs EXCEPT SELECT word FROM frame", ["my.signs.word"]),
        ("SELECT avg(num) OVER (PARTITION BY word) FROM my.signs", ["my.signs.word"]),
        ("SELECT id FROM my.signs WHERE word IN (SELECT word FROM my.signs WHERE num = 2)", ["my.signs.word"]),
        ("SELECT CASE WHEN word = 'A' THEN 1 ELSE 0 END AS k FROM my.signs", ["my.signs.word"]),
        ("SELECT avg(num), count(DISTINCT word) FROM my.signs", ["my.signs.word"]),
        (
            "SELECT hex(id) FROM my.signs AS s, frame AS f WHERE s.word = f.word AND s.spaced = f.word",
            ["word", "spaced"],
        ),
    ],
)
def test_what_the_engine_compares_warns_once(signs: str, query: str, columns: list[str]) -> None:
    (message,) = warned(query, signs)
    assert all(column in message for column in columns)
    assert message.startswith("compared byte by byte")
    assert "CAST(" in message


@pytest.mark.parametrize(
    "query",
    [
        "SELECT word, spaced, hex(num) FROM my.signs ORDER BY word",
        "SELECT signs.* FROM my.signs JOIN frame USING (num) WHERE id > 1",
        "SELECT hex(num) FROM my.signs WHERE CAST(word AS VARCHAR) = 'a' AND lower(spaced) = 'a'",
        "SELECT num, avg(num) FROM my.signs WHERE word IS NOT NULL GROUP BY num",
        "SELECT max(word), min(length(word)), avg(num) FROM my.signs",
        "SELECT word FROM my.signs UNION ALL SELECT word FROM frame",
        "SELECT hex(num) FROM my.signs WHERE word = 'a' AND word IN ('A', 'b') AND (spaced <> 'a')",
    ],
)
def test_what_is_the_same_warns_of_nothing(signs: str, query: str) -> None:
    assert warned(query, signs) == []


def test_what_a_collation_decides_is_not_tested_again(signs: str) -> None:
    query = "SELECT hex(num) AS h FROM my.signs WHERE (word = 'a') AND num > 0 AND NOT spaced = 'b'"
    source, _, engine = longshore.sql(query, attach={"my": signs}, explain=True).partition("-- engine")
    assert "`word` = 'a')" in source
    assert "WHERE (TRUE) AND num > 0 AND NOT spaced = 'b'" in engine


def test_nothing_is_told_of_what_is_only_explained(signs: str) -> None:
    assert warned("SELECT DISTINCT word, hex(num) FROM my.signs", signs, explain=True) == []


def test_a_collation_that_is_bytewise_warns_of_nothing(mariadb: MySQLEndpoint) -> None:
    name = f"signs_{uuid.uuid4().hex[:8]}"
    mariadb.sql(f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
    mariadb.sql("CREATE TABLE signs (word varchar(9) COLLATE utf8mb4_nopad_bin)", database=name)
    mariadb.sql("INSERT INTO signs VALUES ('a'), ('A'), ('a ')", database=name)
    url = mariadb.url(database=name)
    assert warned("SELECT hex(word) AS h FROM my.signs WHERE word = upper('a') GROUP BY word", url) == []
    assert mine("SELECT hex(word) AS h FROM my.signs WHERE word = 'a'", url) == [("61",)]
    mariadb.sql(f"DROP DATABASE {name}")
