"""Both servers, and those of a test's own."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.cutter import Cutter
from tests.fixtures import require
from tests.mysql.comparing import ROWS, SHIPS, Options
from tests.servers import MariaDB, MySQL, Mysqld, MySQLEndpoint

#: Words that are equal in most collations, and not the same.
WORDS = ["a", "A", "á", "b", "B", "ss", "ß", "ä", "ae", "_", "", " ", "z "]
KINDS: dict[str, type[Mysqld]] = {"mariadb": MariaDB, "mysql": MySQL}


@pytest.fixture(scope="session", params=list(KINDS))
def server(request: pytest.FixtureRequest) -> MySQLEndpoint:
    """Give the shared MariaDB, and then the shared MySQL: leave no table behind."""
    endpoint: MySQLEndpoint = request.getfixturevalue(request.param)
    return endpoint


@pytest.fixture(scope="session")
def is_mariadb(server: MySQLEndpoint) -> bool:
    """Tell which of the two it is."""
    return "MariaDB" in server.sql("SELECT version()")[0][0]


@pytest.fixture
def url(server: MySQLEndpoint) -> str:
    """Give the shared server's URL."""
    return server.url()


@pytest.fixture
def tables(server: MySQLEndpoint) -> Iterator[Callable[[str], None]]:
    """Give a function that runs statements; the tables that they make go with the test."""
    before = _tables(server)

    def run(script: str) -> None:
        server.sql(script)

    yield run
    for name, kind in _tables(server) - before:
        server.sql(f"DROP {'VIEW' if kind == 'VIEW' else 'TABLE'} IF EXISTS `{name}`")


def _tables(server: MySQLEndpoint) -> set[tuple[str, str]]:
    rows = server.sql("SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = 'test'")
    return {(str(name), str(kind)) for name, kind in rows}


@pytest.fixture(params=list(KINDS))
def make_mysqld(request: pytest.FixtureRequest) -> Iterator[Callable[..., Mysqld]]:
    """Give a function that starts a MariaDB, and then a MySQL, for this test alone."""
    with contextlib.ExitStack() as stack:

        def make(**options: Any) -> Mysqld:
            return stack.enter_context(require(lambda: KINDS[request.param](**options)))

        yield make


@pytest.fixture
def cutter(server: MySQLEndpoint) -> Iterator[Cutter]:
    """Give a network to the shared server that fails where it is told to."""
    # Not the Unix socket: to the server it would be another user.
    with Cutter((server.host, server.port)) as cutter:
        yield cutter


@pytest.fixture
def together(is_mariadb: bool) -> Options:  # noqa: FBT001
    """Give the options with which the server can show one snapshot to several sessions."""
    return {} if is_mariadb else {"lock": True}


@pytest.fixture(scope="session")
def filled(server: MySQLEndpoint) -> Iterator[str]:
    """Give the URL of a server with a table of ROWS rows."""
    rows = ", ".join(
        f"({i}, 'word {i % 50}', {i % 7 or 'NULL'}, '2020-01-01' + INTERVAL {i} MINUTE)" for i in range(1, ROWS + 1)
    )
    server.sql(f"""
        DROP TABLE IF EXISTS parted, bare, void, small;
        CREATE TABLE parted (id int PRIMARY KEY, word varchar(20), k int, at datetime);
        INSERT INTO parted VALUES {rows};
        CREATE TABLE bare AS SELECT * FROM parted;
        CREATE TABLE void (id int PRIMARY KEY, word text);
        CREATE TABLE small (id int PRIMARY KEY); INSERT INTO small VALUES (1), (2);
        ANALYZE TABLE parted;
    """)
    yield server.url()
    server.sql("DROP TABLE parted, bare, void, small")


@pytest.fixture(scope="session")
def harbour(server: MySQLEndpoint) -> Iterator[str]:
    """Give the URL of a server with tables whose columns are of many types, each with equal values and NULLs."""
    values = ", ".join(
        f"({i}, {i % 9 or 'NULL'}, '{WORDS[i % len(WORDS)]}', '{WORDS[i % len(WORDS)].strip()}', {i % 11}.{i % 3}0, "
        f"{'-0.0' if i % 8 == 0 else i % 8}, '2020-01-01' + INTERVAL {i % 60} HOUR, {i % 4 + 1}, {i % 5}, "
        f"unhex(md5({i % 17})), {i % 7 or 'NULL'}, '{i % 30}')"
        for i in range(SHIPS)
    )
    server.sql(f"""
        DROP VIEW IF EXISTS plain; DROP TABLE IF EXISTS ships, ports;
        CREATE TABLE ships (id int PRIMARY KEY, k int, word varchar(20), bin varchar(20) COLLATE utf8mb4_bin,
            price decimal(9,2), weight double, at datetime, kind enum('z','a','M','b'), flag bit(4), hash binary(16),
            port int, number varchar(10), KEY (k), KEY (word));
        INSERT INTO ships VALUES {values};
        CREATE TABLE ports (id int PRIMARY KEY, name varchar(20) NOT NULL, word varchar(20) COLLATE utf8mb4_unicode_ci);
        INSERT INTO ports VALUES (1, 'Ayr', 'a'), (2, 'Brest', 'A'), (3, 'Cork', 'b'), (4, 'Deal', 'ss'),
            (5, 'Eu', NULL);
        CREATE VIEW plain (number, named) AS
            SELECT s.id + 1, p.name FROM ships AS s JOIN ports AS p ON p.id = s.port;
        ANALYZE TABLE ships, ports;
    """)
    yield server.url()
    server.sql("DROP VIEW plain; DROP TABLE ships, ports")
