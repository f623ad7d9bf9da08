"""Joins whose columns a USING merges, which a source may answer, and the forms that are left to the engine."""

import pytest

from tests.sql.remote.comparing import Harbour, same

pytestmark = pytest.mark.packages

WHOLE = "nothing to do"

GOES = [
    "SELECT id, h.id AS a, s.id AS b, s.* FROM {h} h LEFT JOIN {s} s USING (id, num)",
    "SELECT a.id, day FROM {s} a JOIN {s} b USING (id, day) JOIN {h} c USING (id, day)",
    "SELECT id, count(*) FROM {s} a LEFT JOIN {h} b USING (ID) GROUP BY id HAVING count(*) > 0 ORDER BY id LIMIT 5",
    "SELECT a.id FROM {s} a JOIN {s} b USING (id) JOIN {s} c ON c.id = a.id",
    "SELECT * FROM {s} a JOIN {s} b USING (id) JOIN {s} c ON c.id = a.id",
]
STAYS = [
    "SELECT sum(price * 2), max(price + id) FROM {h}",
    "SELECT * FROM (SELECT id, num, word FROM {h}) AS a JOIN (SELECT day, num, id FROM {s}) AS b USING (NUM, id)",
    "SELECT h.id FROM {h} h JOIN {h} s USING (dbl)",
    "SELECT id FROM {h} h RIGHT JOIN {s} s USING (id)",
    "SELECT h.id FROM {h} h NATURAL JOIN (SELECT id FROM {s}) s",
    "SELECT id FROM {h} WHERE dbl IN (SELECT dbl FROM {h} WHERE id > 5)",
    "SELECT id FROM {h} WHERE word IN (SELECT other FROM {h})",
    "SELECT id FROM {h} WHERE word = (SELECT max(word) FROM {s})",
    "SELECT id FROM {h} WHERE num IN (SELECT num FROM {s} ORDER BY id LIMIT 3)",
    "SELECT id FROM {h} WHERE num IN (SELECT num FROM {s} UNION ALL SELECT 7)",
    "SELECT id FROM {h} WHERE num NOT IN (SELECT num FROM {s})",
    "SELECT id FROM {h} h WHERE NOT EXISTS (SELECT * FROM {s} AS s WHERE s.num = h.num AND id > h.id)",
    "SELECT id FROM {h} WHERE num = (SELECT max(num) FROM {s}) OR id > (SELECT count(*) - 5 FROM {s})",
    "WITH x AS (SELECT id FROM {h} WHERE num > 5) SELECT id FROM {s} s WHERE id IN (SELECT id FROM x)",
    "WITH x AS (SELECT num, count(*) AS n FROM {h} GROUP BY num) SELECT max(n) FROM x",
    "SELECT id FROM {h} UNION SELECT id FROM {s}",
    "SELECT sum(CASE WHEN num > 5 THEN 1 ELSE 0 END) AS s, count(CASE WHEN flag THEN 1 END) AS c FROM {h}",
    "SELECT coalesce(kind, 'none') AS k, count(*) AS n FROM {h} GROUP BY ALL ORDER BY 1",
    "SELECT id FROM {h} WHERE coalesce(num, 0) = 0 AND CASE WHEN flag THEN price ELSE 1 END > 0.5",
    "SELECT count(*) FILTER (WHERE num > 1), sum(num) FILTER (WHERE flag), max(word) FILTER (num = 7) FROM {h}",
    "SELECT sum(id + small), max(big) FROM {h} WHERE id < 9",
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


@pytest.mark.parametrize(
    ("query", "whole"),
    [
        ("SELECT h.id FROM lite.hostile h JOIN lite.hostile o ON h.id = o.id AND h.word = o.word", True),
        ("SELECT coalesce(other, word, 'A') AS k, count(*) FROM lite.hostile GROUP BY k ORDER BY k", False),
        ("SELECT h.id FROM lite.loose h JOIN lite.loose o USING (id)", False),
    ],
)
def test_what_goes_to_sqlite(lite: Harbour, query: str, *, whole: bool) -> None:
    same(lite, query)
    assert (WHOLE in lite.plan(query)) is whole


@pytest.mark.parametrize(
    ("query", "whole"),
    [
        ("SELECT h.id FROM my.hostile h JOIN my.hostile o ON h.id = o.id WHERE h.num > 5", True),
        # MariaDB itself says of 2147483647 that it is not among a NULL and numbers of a byte.
        ("SELECT id FROM my.hostile WHERE num NOT IN (SELECT tiny FROM my.hostile WHERE id < 50)", False),
        ("SELECT coalesce(big, num) AS b FROM my.hostile", False),
    ],
)
@pytest.mark.parametrize("source", ["my", "my8"])
def test_what_goes_to_mysql(source: str, query: str, *, whole: bool, request: pytest.FixtureRequest) -> None:
    harbour: Harbour = request.getfixturevalue(source)
    same(harbour, query)
    assert (WHOLE in harbour.plan(query)) is whole
