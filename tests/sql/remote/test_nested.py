"""Queries within conditions, columns that a USING makes one, and values that are chosen: what goes, and what stays."""

import pytest

from tests.sql.remote.comparing import Harbour, same

WHOLE = "nothing to do"

GOES = [
    "SELECT id, h.id AS a, s.id AS b, s.* FROM {h} h LEFT JOIN {s} s USING (id, num)",
    "SELECT a.id, day FROM {s} a JOIN {s} b USING (id, day) JOIN {h} c USING (id, day)",
    "SELECT * FROM (SELECT id, num, word FROM {h}) AS a JOIN (SELECT day, num, id FROM {s}) AS b USING (NUM, id)",
    "SELECT id, count(*) FROM {s} a LEFT JOIN {h} b USING (ID) GROUP BY id HAVING count(*) > 0 ORDER BY id LIMIT 5",
    "SELECT id FROM {h} WHERE num IN (SELECT num FROM {s})",
    "SELECT id FROM {h} WHERE num NOT IN (SELECT num FROM {s})",
    "SELECT id FROM {h} WHERE num NOT IN (SELECT num FROM {s} WHERE num IS NOT NULL) OR num IS NULL",
    "SELECT id FROM {h} WHERE num IN (SELECT max(num) FROM {s} GROUP BY day)",
    "SELECT id FROM {h} h WHERE NOT EXISTS (SELECT * FROM {s} AS s WHERE s.num = h.num AND id > h.id)",
    "SELECT id FROM {h} h WHERE EXISTS (SELECT s.* FROM {s} AS s WHERE small > 5 AND s.id = h.id)",
    "SELECT h.id FROM {h} h WHERE id IN (SELECT id FROM {s} s WHERE EXISTS (SELECT 1 FROM {s} t WHERE t.day = h.day))",
    "SELECT id FROM {h} WHERE num = (SELECT max(num) FROM {s}) OR id > (SELECT count(*) - 5 FROM {s})",
    "SELECT id FROM {h} WHERE num <> (SELECT min(num) FROM {s} WHERE id < 0)",
    "WITH x AS (SELECT id FROM {h} WHERE num > 5) SELECT id FROM {s} s WHERE id IN (SELECT id FROM x)",
    "SELECT CASE WHEN num > 5 THEN 'big' WHEN num < 0 THEN 'neg' END AS k, count(*) FROM {h} GROUP BY k ORDER BY k",
    "SELECT sum(CASE WHEN num > 5 THEN 1 ELSE 0 END) AS s, count(CASE WHEN flag THEN 1 END) AS c FROM {h}",
    "SELECT sum(CASE WHEN flag THEN price * (1 - price) ELSE 0 END) AS s FROM {h} WHERE price BETWEEN -9 AND 9",
    "SELECT id, CASE num WHEN 7 THEN price WHEN 5 THEN 0.5 END AS c, coalesce(word, 'none') AS d FROM {h}",
    "SELECT coalesce(small, num, big) AS x, coalesce(small, 100000) AS s, ifnull(dbl, 1) AS e, nullif(num, 7) FROM {h}",
    "SELECT coalesce(kind, 'none') AS k, count(*) AS n FROM {h} GROUP BY ALL ORDER BY 1",
    "SELECT id FROM {h} WHERE coalesce(num, 0) = 0 AND CASE WHEN flag THEN price ELSE 1 END > 0.5",
    "SELECT count(DISTINCT CASE WHEN num > 5 THEN word ELSE 'x' END) AS c, min(coalesce(word, 'a')) AS m FROM {h}",
    "SELECT count(*) FILTER (WHERE num > 1), sum(num) FILTER (WHERE flag), max(word) FILTER (num = 7) FROM {h}",
    "SELECT count(DISTINCT word) FILTER (WHERE num > 1) AS n, flag FROM {h} GROUP BY flag",
]
STAYS = [
    "SELECT h.id FROM {h} h JOIN {h} s USING (dbl)",
    "SELECT id FROM {h} h RIGHT JOIN {s} s USING (id)",
    "SELECT h.id FROM {h} h NATURAL JOIN (SELECT id FROM {s}) s",
    "SELECT a.id FROM {s} a JOIN {s} b USING (id) JOIN {s} c ON c.id = a.id",
    "SELECT id FROM {h} WHERE dbl IN (SELECT dbl FROM {h} WHERE id > 5)",
    "SELECT id FROM {h} WHERE word IN (SELECT other FROM {h})",
    "SELECT id FROM {h} WHERE word = (SELECT max(word) FROM {s})",
    "SELECT id FROM {h} WHERE num IN (SELECT num FROM {s} ORDER BY id LIMIT 3)",
    "SELECT id FROM {h} WHERE num IN (SELECT num FROM {s} UNION ALL SELECT 7)",
    "SELECT id FROM {h} h WHERE EXISTS (SELECT max(num) FROM {s} s WHERE s.num = 123456)",
    "SELECT id FROM {h} h WHERE EXISTS (SELECT unnest([]) FROM {s} s)",
    "SELECT id FROM {h} h WHERE EXISTS (SELECT 1 FROM {s} s LIMIT 0)",
    "SELECT id FROM {h} h WHERE EXISTS (SELECT id AS small FROM {s} s WHERE small > 5 AND s.id = h.id)",
    "SELECT id FROM {h} WHERE num = ANY (SELECT num FROM {s})",
    "SELECT id, (SELECT max(num) FROM {s}) AS m FROM {h}",
    "SELECT CASE WHEN num > 5 THEN num ELSE 0.5 END AS k, coalesce(num, 1e0) AS d FROM {h}",
    "SELECT coalesce(day, '2024-02-29') AS d FROM {h}",
    "SELECT coalesce(word, other) AS w FROM {h}",
    "SELECT coalesce(padded, 'a') AS w, coalesce(free, 1) AS f FROM {h}",
    "SELECT max(CASE WHEN num > 5 THEN 'ä' ELSE 'b' END) AS w FROM {h}",
    "SELECT word AS w FROM {s} UNION SELECT max(word) AS w FROM {s}",
]


@pytest.mark.parametrize("query", GOES)
def test_what_goes_to_postgresql(held: Harbour, query: str) -> None:
    query = query.format(h="pg.docks.hostile", s="pg.docks.second")
    same(held, query)
    assert WHOLE in held.plan(query)


@pytest.mark.parametrize("query", STAYS)
def test_what_stays_with_the_engine(held: Harbour, query: str) -> None:
    query = query.format(h="pg.docks.hostile", s="pg.docks.second")
    same(held, query)
    assert WHOLE not in held.plan(query)


@pytest.mark.parametrize("value", [1, -1, True, "a", "ä", None, 2.5])
def test_chosen_parameters(held: Harbour, value: object) -> None:
    for column in ("num", "dbl", "flag", "word"):
        query = f"SELECT id, nullif({column}, {column}) AS n FROM pg.docks.hostile WHERE coalesce({column}, ?) = ?"
        try:
            held.expected(query, [value, value])
        except Exception:  # noqa: BLE001  whatever the engine says, it is said of the attached table, too
            with pytest.raises(Exception, match=r"."):
                held.given(query, [value, value])
        else:
            same(held, query, [value, value])


@pytest.mark.parametrize(
    ("query", "whole"),
    [
        ("SELECT h.id FROM lite.hostile h JOIN lite.hostile o USING (id, word)", True),
        ("SELECT id FROM lite.hostile WHERE word NOT IN (SELECT other FROM lite.hostile WHERE id < 9)", True),
        ("SELECT id FROM lite.hostile WHERE other IN (SELECT word FROM lite.hostile WHERE num > 0)", True),
        ("SELECT id FROM lite.hostile h WHERE EXISTS (SELECT 1 FROM lite.hostile o WHERE o.other = h.other)", True),
        ("SELECT id FROM lite.hostile WHERE num = (SELECT max(num) FROM lite.hostile)", True),
        ("SELECT coalesce(other, word, 'A') AS k, count(*) FROM lite.hostile GROUP BY k ORDER BY k", True),
        ("SELECT CASE WHEN other = 'a' THEN 'A' ELSE 'a' END AS k, count(*) FROM lite.hostile GROUP BY k", True),
        ("SELECT count(*) FILTER (WHERE other = 'a'), min(nullif(other, '')) AS m FROM lite.hostile", True),
        ("SELECT sum(CASE WHEN num > 5 THEN 1 ELSE 0 END) FROM lite.hostile", False),
        ("SELECT coalesce(dbl, 0) FROM lite.hostile", False),
        ("SELECT h.id FROM lite.loose h JOIN lite.loose o USING (id)", False),
    ],
)
def test_what_goes_to_sqlite(lite: Harbour, query: str, *, whole: bool) -> None:
    same(lite, query)
    assert (WHOLE in lite.plan(query)) is whole


@pytest.mark.parametrize(
    ("query", "whole"),
    [
        ("SELECT h.id FROM my.hostile h JOIN my.hostile o USING (id) WHERE h.num > 5", True),
        ("SELECT id FROM my.hostile WHERE num NOT IN (SELECT num FROM my.hostile WHERE id < 50)", True),
        ("SELECT id FROM my.hostile WHERE num = (SELECT max(num) FROM my.hostile) OR id < 5", True),
        ("SELECT id, CASE WHEN num > 5 THEN 'big' ELSE 'small ' END AS k FROM my.hostile", True),
        ("SELECT sum(CASE WHEN num > 5 THEN 1 ELSE 0 END) AS s, count(*) FILTER (flag = 1) FROM my.hostile", True),
        ("SELECT coalesce(num, 0) AS a, nullif(tiny, 7) AS c, coalesce(price, 0.5) AS d FROM my.hostile", True),
        ("SELECT id FROM my.hostile h WHERE EXISTS (SELECT 1 FROM my.hostile o WHERE o.num = h.num)", False),
        ("SELECT coalesce(big, 0) AS b FROM my.hostile", False),
        ("SELECT coalesce(big, num) AS b FROM my.hostile", False),
        ("SELECT coalesce(word, 'x') AS w FROM my.hostile", True),
        ("SELECT CASE WHEN num > 5 THEN 'A' ELSE 'a' END AS k, count(*) FROM my.hostile GROUP BY k", False),
        ("SELECT coalesce(num, 0) AS k, count(*) FROM my.hostile GROUP BY k ORDER BY k", False),
    ],
)
@pytest.mark.parametrize("source", ["my", "my8"])
def test_what_goes_to_mysql(source: str, query: str, *, whole: bool, request: pytest.FixtureRequest) -> None:
    harbour: Harbour = request.getfixturevalue(source)
    same(harbour, query)
    assert (WHOLE in harbour.plan(query)) is whole


@pytest.mark.parametrize("inner", ["tiny", "num", "big"])
@pytest.mark.parametrize("outer", ["tiny", "num", "big"])
def test_numbers_that_do_not_fit_beside_nulls(my: Harbour, outer: str, inner: str) -> None:
    # MariaDB itself says of 2147483647 that it is not among a NULL and numbers of a byte.
    for no in ("", "NOT "):
        query = f"SELECT id FROM my.hostile WHERE {outer} {no}IN (SELECT {inner} FROM my.hostile WHERE id < 50)"
        same(my, query)
        assert (WHOLE in my.plan(query)) is (outer == inner)
