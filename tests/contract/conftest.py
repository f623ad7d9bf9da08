"""A database of every source, and tables that go with their test."""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

import longshore
from tests.servers import Endpoint, MySQLEndpoint

SOURCES = ("postgresql", "mariadb", "mysql", "sqlite")


@dataclass(frozen=True)
class Database:
    """A place for tables, and the name of the source that has it."""

    source: str
    url: str

    def execute(self, *statements: str) -> None:
        """Run statements, each a transaction of its own."""
        with longshore.connect(self.url, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)


@pytest.fixture(scope="session", params=SOURCES)
def database(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """Give an empty database of each source in turn."""
    if request.param == "sqlite":
        file = tmp_path_factory.mktemp("contract") / "contract.db"
        file.touch()
        yield Database("sqlite", f"sqlite:///{file}")
        return
    server: Endpoint | MySQLEndpoint = request.getfixturevalue(
        "postgres" if request.param == "postgresql" else request.param
    )
    run = server.psql if isinstance(server, Endpoint) else server.sql
    run("CREATE DATABASE contract")
    yield Database(request.param, server.url(database="contract"))
    run("DROP DATABASE contract")


@pytest.fixture
def table(database: Database) -> Iterator[str]:
    """Give a name that no table has; the one that gets it goes with the test."""
    name = f"t_{uuid.uuid4().hex[:8]}"
    yield name
    database.execute(f"DROP TABLE IF EXISTS {name}")
