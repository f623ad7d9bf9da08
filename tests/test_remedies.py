"""The forms of other drivers, and a bare table's name: the error has a hint with the form that works here."""

from collections.abc import Iterator
from typing import Any

import pytest

import longshore

NUMBERED = ["postgresql"]
QUESTION_MARKS = ["mariadb", "sqlite"]
SOURCES = NUMBERED + QUESTION_MARKS


@pytest.fixture(scope="module", name="places")
def _places(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Give a way to each source, whose table `boats` has two rows."""
    places = {
        "postgresql": request.getfixturevalue("url"),
        "mariadb": request.getfixturevalue("mariadb").url(),
        "sqlite": tmp_path_factory.mktemp("remedies") / "a.db",
    }
    for place in places.values():
        longshore.write_sql({"a": [1, 2], "t": ["x", "y"]}, "boats", place, if_exists="replace")
    yield places
    for name in ("postgresql", "mariadb"):
        with longshore.connect(places[name]) as connection:
            connection.execute("DROP TABLE boats")


LISTS = [
    ("a IN :x", {"x": (1, 2)}),
    ("a IN :x", {"x": [1, 2]}),
    ("a IN (:x)", {"x": (1, 2)}),
    ("t IN (:x)", {"x": ["x"]}),
]
CASES: list[tuple[str, str, Any, str]] = [
    *((source, "boats", None, "SELECT * FROM boats") for source in SOURCES),
    *((source, "public.boats;", None, "SELECT * FROM public.boats") for source in SOURCES),
    *((source, "SELECT * FROM boats WHERE a = %(x)s", {"x": 1}, ":x instead of %(x)s") for source in SOURCES),
    *((source, "SELECT * FROM boats WHERE a = %(x)s", None, ":x instead of %(x)s") for source in SOURCES),
    *((source, "SELECT * FROM boats WHERE a = :x", None, "a dict for :x") for source in SOURCES),
    *((source, "SELECT * FROM boats WHERE a = %s", [1], "$1, $2, ... instead of %s") for source in NUMBERED),
    *((source, "SELECT * FROM boats WHERE a = %s", [1], "? instead of %s") for source in QUESTION_MARKS),
    *((source, "SELECT * FROM boats WHERE a = ?", [1], "$1, $2, ... instead of ?") for source in NUMBERED),
    *((source, "SELECT * FROM boats WHERE a = ?", None, "$1, $2, ... instead of ?") for source in NUMBERED),
    ("postgresql", "SELECT * FROM boats WHERE a = :1", [1], "$1, $2, ... instead of :1"),
    ("mariadb", "SELECT * FROM boats WHERE a = $1", [1], "? instead of $1"),
    ("mariadb", "SELECT * FROM boats WHERE a = :1", [1], "? instead of :1"),
    *(
        (source, f"SELECT * FROM boats WHERE {where}", params, "= ANY(:x)")
        for source in NUMBERED
        for where, params in LISTS
    ),
    *(
        (source, f"SELECT * FROM boats WHERE {where}", params, "IN (?, ?, ?)")
        for source in QUESTION_MARKS
        for where, params in LISTS
    ),
    ("postgresql", "SELECT * FROM boats WHERE a IN $1", [(1, 2)], "= ANY($1)"),
    *((source, "SELECT * FROM boats WHERE a = ANY(:x)", {"x": [1]}, "IN (?, ?, ?)") for source in QUESTION_MARKS),
]


@pytest.mark.parametrize(("source", "query", "params", "remedy"), CASES)
def test_a_hint_has_the_right_form(places: dict[str, Any], source: str, query: str, params: Any, remedy: str) -> None:
    conn = places[source]
    with longshore.connect(conn) as connection:
        for run in (
            lambda: longshore.read_sql(query, conn, params=params, return_type="arrow"),
            lambda: longshore.read_sql([query, query], conn, params=params, return_type="arrow"),
            lambda: longshore.read_sql(
                query, conn, params=params, return_type="arrow", partition_on="a", partition_num=2
            ),
            lambda: longshore.copy(query, conn, "copied", conn, params=params),
            lambda: connection.execute(query, params),
        ):
            with pytest.raises((longshore.ProgrammingError, longshore.DataError)) as caught:
                run()
            assert caught.value.hint is not None
            assert remedy in caught.value.hint
            assert str(caught.value).endswith(caught.value.hint)
            connection.rollback()


def test_schema_says_it_too(places: dict[str, Any]) -> None:
    for conn in places.values():
        with pytest.raises(longshore.ProgrammingError, match=r"SELECT \* FROM boats"):
            longshore.schema("boats", conn)
    with pytest.raises(longshore.ProgrammingError, match=r"\$1, \$2"):
        longshore.partition_sql("SELECT a FROM boats WHERE a = %s", places["postgresql"], "a", 2)


def test_the_forms_of_the_hints_work(places: dict[str, Any]) -> None:
    def count(source: str, query: str, params: Any) -> int:
        return int(longshore.read_sql(query, places[source], params=params, return_type="arrow").num_rows)

    assert count("postgresql", "SELECT * FROM boats WHERE a = ANY(:x)", {"x": (1, 2)}) == 2
    assert count("postgresql", "SELECT * FROM boats WHERE t = ANY(:x)", {"x": ["x", "y"]}) == 2
    assert count("postgresql", "SELECT * FROM boats WHERE t = ANY($1)", [["x"]]) == 1
    for source in QUESTION_MARKS:
        assert count(source, "SELECT * FROM boats WHERE a IN (?, ?)", [1, 2]) == 2
    for source in SOURCES:
        assert count(source, "SELECT * FROM boats WHERE a = :x", {"x": 1}) == 1


@pytest.mark.parametrize(
    "query", ["SELECT nonsense, '%s', ':x' FROM boats", "SELECT a %s FROM boats", "SELECT FROM FROM"]
)
def test_no_hint_where_it_is_not_that(places: dict[str, Any], query: str) -> None:
    for conn in places.values():
        with pytest.raises(longshore.ProgrammingError) as caught:
            longshore.read_sql(query, conn)
        assert "params" not in (caught.value.hint or "")
