"""A column of every type of each source into each other source: its values, or an error that says what to do."""

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

import longshore
from tests.conformance import mysql, postgresql, sqlite
from tests.conformance.case import Case
from tests.servers import Endpoint, MySQLEndpoint

SOURCES: dict[str, Any] = {"postgresql": postgresql, "mariadb": mysql, "sqlite": sqlite}
Targets = dict[str, str]


def cases(source: str) -> list[Case]:
    """Give the cases that a table of the shared server can have."""
    found = [case for case in SOURCES[source].CASES if case.query is None and not case.needs and case.cells]
    return [case for case in found if getattr(case, "only", None) in {None, "MariaDB"}]


@pytest.fixture(scope="module")
def targets(postgres: Endpoint, mariadb: MySQLEndpoint, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Targets]:
    """Give each database's URL for tables of this module's own."""
    lite = tmp_path_factory.mktemp("copies") / "copies.db"
    postgres.psql("CREATE SCHEMA copies")
    mariadb.sql("CREATE DATABASE copies")
    yield {
        "postgresql": postgres.url(options="-c search_path=copies"),
        "mariadb": mariadb.url(database="copies"),
        "sqlite": f"sqlite:///{lite}?mode=rwc",
    }
    postgres.psql("SET client_min_messages = error; DROP SCHEMA copies CASCADE")
    mariadb.sql("DROP DATABASE copies")


def plain(value: Any) -> Any:
    """Give a value in the form that all three databases have of it; None for one that has another in each."""
    if isinstance(value, bool):
        return Decimal(int(value))
    if isinstance(value, int | Decimal):
        return Decimal(value)
    if isinstance(value, str):
        try:
            return plain(json.loads(value, parse_float=Decimal, parse_int=Decimal))
        except ValueError:
            return value
    return value if isinstance(value, bytes | float) else None


def values(column: Any) -> list[Any]:
    """Give the values of a column; of dates that Python does not have, nothing."""
    try:
        return list(column.to_pylist())
    except (OverflowError, ValueError):
        return [None] * len(column)


@pytest.mark.costly
@pytest.mark.parametrize("target", SOURCES)
@pytest.mark.parametrize("source", SOURCES)
def test_every_type(source: str, target: str, targets: Targets, postgres: Endpoint, mariadb: MySQLEndpoint) -> None:
    if source == target:
        return
    module = SOURCES[source]
    origin = {"postgresql": postgres.url(), "mariadb": mariadb.url(), "sqlite": "sqlite://"}[source]
    arrived, refused = 0, []
    for number, case in enumerate(cases(source)):
        table = f"from_{source}_{number}"
        with longshore.connect(origin) as connection:
            for statement in module.setup(case, list(case.cells)):
                connection.execute(statement)
            query = module.query(case)
            given = longshore.read_sql(query, connection, return_type="arrow")["value"]
            try:
                rows = longshore.copy(query, connection, table, targets[target], options={"nested": "json"})
            except (longshore.DataError, longshore.NotSupportedError) as error:
                # The server's own refusals have their state.
                refused.append((case.type, error.column, bool(error.hint or error.sqlstate)))
                connection.rollback()
                continue
            assert rows == len(given), case.type
            connection.rollback()
        found = longshore.read_sql(f"SELECT * FROM {table}", targets[target], return_type="arrow")["value"]
        assert found.is_null().to_pylist() == given.is_null().to_pylist(), case.type
        for before, after in zip(values(given), values(found), strict=True):
            if plain(before) is not None and plain(after) is not None and type(plain(before)) is type(plain(after)):
                assert plain(before) == plain(after), (case.type, before, after)
        arrived += 1
    assert refused == [(kind, "value", True) for kind, _, _ in refused]
    assert arrived > len(cases(source)) * 0.6
