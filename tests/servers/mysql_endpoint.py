"""Where something answers that speaks MySQL's protocol."""

import contextlib
from dataclasses import dataclass
from typing import Any, ClassVar

import pymysql
from pymysql.constants import CLIENT

from tests.servers.address import Address

Rows = list[tuple[Any, ...]]


@dataclass(eq=False)
class MySQLEndpoint(Address):
    """Where it answers, and as whom to go there."""

    scheme: ClassVar[str] = "mysql"

    port: int = 3306
    user: str = "root"
    database: str = "test"

    def sql(self, script: str, *, database: str | None = None) -> Rows:
        """Run a script of statements, each its own transaction, and return the rows of the last one that has any."""
        rows: Rows = []
        with contextlib.closing(self.client(database=database)) as client, client.cursor() as cursor:
            more: bool | None = bool(cursor.execute(script)) or True
            while more:
                rows = list(cursor.fetchall()) if cursor.description else rows
                more = cursor.nextset()
        return rows

    def client(self, *, database: str | None = None, **options: Any) -> "pymysql.Connection[Any]":
        """Return a connection of PyMySQL's, which the caller closes."""
        return pymysql.connect(
            user=self.user,
            password=self.password or "",
            database=database or self.database,
            charset="utf8mb4",
            autocommit=True,
            client_flag=CLIENT.MULTI_STATEMENTS,
            # Else each connection loads all certificates of the system, which takes longer than most tests.
            **{"ssl_disabled": "ssl" not in options, **self._way(), **options},
        )

    def _way(self) -> dict[str, Any]:
        return {"host": self.host, "port": self.port}

    def _socket(self, place: str, port: int) -> dict[str, str | int]:  # noqa: ARG002  the socket's name says all
        return {"unix_socket": place}
