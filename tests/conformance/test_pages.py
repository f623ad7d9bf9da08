"""The pages of types in the reference are what arrives, on the newest servers and packages."""

from tests.conformance import mysql as mysql_quirks
from tests.conformance import postgresql
from tests.conformance import sqlite as sqlite_quirks
from tests.fixtures import Place
from tests.servers import MySQLEndpoint

SAYS = "run python -m tests.conformance.generate"


def test_postgresql(place: Place) -> None:
    assert postgresql.page(place) == postgresql.PAGE.read_text(), SAYS


def test_mysql(mariadb: MySQLEndpoint, mysql: MySQLEndpoint) -> None:
    servers = {"MariaDB": mariadb, "MySQL": mysql}
    assert mysql_quirks.page(lambda name: servers[name].url()) == mysql_quirks.PAGE.read_text(), SAYS


def test_sqlite() -> None:
    assert sqlite_quirks.page() == sqlite_quirks.PAGE.read_text(), SAYS
