"""`execute_script`: the statements of a text, in their order, as each source tells them apart."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import longshore

Place = tuple[str, str]  # a source's scheme and a URL

SCRIPT = """
-- a first; comment
CREATE TABLE script_boats (berth int, name text);
INSERT INTO script_boats VALUES (1, 'a;b'), (2, ';');
/* another ; */ SELECT * FROM script_boats;
UPDATE script_boats SET berth = berth + 1;
-- the end
"""


@pytest.fixture(params=["postgresql", "mariadb", "mysql", "sqlite"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """Give a source's scheme and a URL, where no table is called script_boats."""
    scheme: str = request.param
    if scheme == "sqlite":
        yield scheme, f"sqlite:///{tmp_path}/scripts.db?mode=rwc"
        return
    if scheme == "postgresql":
        schema = request.getfixturevalue("harbour")
        yield scheme, request.getfixturevalue("postgres").url(options=f"-c search_path={schema}")
        return
    server = request.getfixturevalue(scheme)
    yield scheme, server.url()
    server.sql("DROP TABLE IF EXISTS script_boats; DROP PROCEDURE IF EXISTS script_add")


def rows(conn: Any) -> list[tuple[Any, ...]]:
    found = longshore.read_sql("SELECT berth, name FROM script_boats ORDER BY berth", conn, return_type="arrow")
    return [tuple(row.values()) for row in found.to_pylist()]


def test_all_statements_run_in_their_order(place: Place) -> None:
    _, url = place
    with longshore.connect(url) as connection:
        connection.execute_script(SCRIPT)
        assert rows(connection) == [(2, "a;b"), (3, ";")]
    assert rows(url) == [(2, "a;b"), (3, ";")]


def test_a_rollback_undoes_what_a_script_has_done(place: Place) -> None:
    _, url = place
    with longshore.connect(url) as connection:
        # Where a new table ends every transaction, what follows it is undone.
        connection.execute_script(SCRIPT.partition("INSERT")[0])
        connection.commit()
        connection.execute_script(f"INSERT {SCRIPT.partition('INSERT')[2]}")
        assert connection.in_transaction
        connection.rollback()
        assert rows(connection) == []
        connection.execute("INSERT INTO script_boats VALUES (7, 'x')")
        connection.rollback()
    assert rows(url) == []


def test_what_follows_a_new_table_waits_for_the_commit(place: Place) -> None:
    _, url = place
    with longshore.connect(url) as connection:
        connection.execute_script(SCRIPT)
        assert connection.in_transaction
        connection.rollback()
    with contextlib.suppress(longshore.ProgrammingError):
        # The table has gone too, where the transaction has it.
        assert rows(url) == []


def test_each_statement_is_committed_with_autocommit(place: Place) -> None:
    _, url = place
    with longshore.connect(url, autocommit=True) as connection:
        connection.execute_script(SCRIPT)
        assert not connection.in_transaction
        assert rows(url) == [(2, "a;b"), (3, ";")]


def test_an_error_says_which_statement_and_the_connection_goes_on(place: Place) -> None:
    _, url = place
    with longshore.connect(url) as connection:
        connection.execute_script(SCRIPT)
        connection.commit()
        with pytest.raises(longshore.Error, match="statement 3") as caught:
            connection.execute_script(
                "UPDATE script_boats SET berth = 9;\nSELECT 1;\n"
                "INSERT INTO nowhere VALUES (1);\nDELETE FROM script_boats;"
            )
        assert "nowhere" in str(caught.value)
        connection.rollback()
        assert rows(connection) == [(2, "a;b"), (3, ";")]
        connection.execute("DELETE FROM script_boats WHERE berth = 2")
        connection.commit()
    assert rows(url) == [(3, ";")]


def test_syntax_errors(place: Place) -> None:
    scheme, url = place
    with longshore.connect(url) as connection:
        with pytest.raises(longshore.ProgrammingError) as caught:
            connection.execute_script("SELECT 1;\nSELECT 2 FROMM x y z;")
        connection.rollback()
    # PostgreSQL reads all of a script before it runs any.
    assert ("line 2" if scheme == "postgresql" else "statement 2") in str(caught.value)


@pytest.mark.parametrize("script", ["", " ; ;\n", "-- nothing"])
def test_nothing_to_run(place: Place, script: str) -> None:
    _, url = place
    with longshore.connect(url) as connection:
        connection.execute_script(script)
        assert connection.execute("SELECT 1") == 1


def test_bodies_with_semicolons(place: Place) -> None:
    scheme, url = place
    bodies = {
        "postgresql": "CREATE FUNCTION script_add() RETURNS int LANGUAGE sql BEGIN ATOMIC SELECT 1; SELECT 2; END;"
        " CREATE FUNCTION script_more() RETURNS int LANGUAGE sql AS $x$ SELECT 1; SELECT 3; $x$;",
        "sqlite": "CREATE TABLE script_boats (berth int); CREATE TRIGGER script_add AFTER INSERT ON script_boats "
        "BEGIN UPDATE script_boats SET berth = 1; UPDATE script_boats SET berth = berth + 1; END;",
    }
    routine = "CREATE PROCEDURE script_add() BEGIN SELECT 1; SELECT 2; END;"
    with longshore.connect(url) as connection:
        connection.execute_script(bodies.get(scheme, routine) + " SELECT 3")
        assert connection.execute("SELECT 4") == 1


def test_one_statement_alone_names_the_way(place: Place) -> None:
    _, url = place
    with longshore.connect(url) as connection:
        for params in (None, [1]):
            with pytest.raises(longshore.ProgrammingError, match="execute_script"):
                connection.execute("SELECT 1; SELECT 2" if params is None else "SELECT 1; SELECT ?", params)
            connection.rollback()
            if "postgresql" in url:
                break
    with pytest.raises(longshore.ProgrammingError, match="execute_script"):
        longshore.read_sql("SELECT 1; SELECT 2", url)


def test_a_script_that_is_not_a_text(place: Place) -> None:
    _, url = place
    with longshore.connect(url) as connection:
        with pytest.raises(longshore.InterfaceError, match="script is a text, not list"):
            connection.execute_script(["SELECT 1"])  # type: ignore[arg-type]
        with pytest.raises(longshore.Error, match=r"zero byte|1064"):
            connection.execute_script("SELECT 1;\0 SELECT 2")
        connection.rollback()


def test_a_timeout_stops_a_script(place: Place) -> None:
    scheme, url = place
    slow = {
        "postgresql": "SELECT pg_sleep(60)",
        "sqlite": "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n",
    }
    with longshore.connect(url) as connection:
        with pytest.raises(longshore.TimeoutError):
            connection.execute_script(f"SELECT 1; {slow.get(scheme, 'SELECT SLEEP(60)')}; SELECT 2", timeout=0.3)
        connection.rollback()
        assert connection.execute("SELECT 1") == 1
        # The server takes one statement again.
        with pytest.raises(longshore.ProgrammingError):
            connection.execute("SELECT 1; SELECT 2")
        connection.rollback()
