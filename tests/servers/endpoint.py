"""Where something answers that speaks PostgreSQL's wire."""

import contextlib
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, ClassVar

from psycopg import pq
from psycopg.pq.abc import PGconn

from longshore._core import sql_statements
from tests import installations
from tests.servers.address import Address

_DONE = {pq.ExecStatus.COMMAND_OK, pq.ExecStatus.TUPLES_OK, pq.ExecStatus.EMPTY_QUERY}


@dataclass(eq=False)
class Endpoint(Address):
    """Where it answers, and as whom to go there."""

    scheme: ClassVar[str] = "postgresql"

    port: int = 5432
    user: str = "postgres"
    database: str = "postgres"

    def psql(self, sql: str, *, database: str | None = None, stdin: IO[bytes] | None = None) -> str:
        """Run SQL as the superuser, and return what psql would print: fields parted by |, one row a line.

        Without `stdin` the SQL is a script of statements, each its own transaction; with it, one command that reads it.
        """
        # The caller's own PGUSER, PGSSLMODE and PGOPTIONS say nothing about this server.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        if stdin is None and len(environment) == len(os.environ):
            # By libpq: psql takes longer to start than most statements to run.
            with self._superuser(database) as connection:
                statements = sql_statements(sql, "postgresql")
                return "\n".join(row for statement in statements for row in _rows(connection, statement))
        command = [self._psql(), "-XqAt", "-v", "ON_ERROR_STOP=1", self._superuser_url(database)]
        command += ["-f", "-"] if stdin is None else ["-c", sql]
        feed = {"input": sql.encode()} if stdin is None else {"stdin": stdin}
        done = installations.run(command, env=environment, **feed)
        if done.returncode:
            raise RuntimeError(done.stderr.decode(errors="replace").strip())
        return done.stdout.decode().removesuffix("\n")

    @contextlib.contextmanager
    def _superuser(self, database: str | None) -> Iterator[PGconn]:
        """Give a connection of the superuser's to a database."""
        connection = self._connect(database)
        try:
            yield connection
        finally:
            connection.finish()

    def _connect(self, database: str | None) -> PGconn:
        connection = pq.PGconn.connect(self._superuser_url(database).encode())
        if connection.status != pq.ConnStatus.OK:
            raise RuntimeError(connection.error_message.decode(errors="replace").strip())
        return connection

    def _psql(self) -> str:
        return shutil.which("psql") or str(installations.postgresql().directory / "psql")

    def _superuser_url(self, database: str | None) -> str:
        return self.url(database=database)

    def _socket(self, place: str, port: int) -> dict[str, str | int]:
        return {"host": place, "port": port}


def _rows(connection: PGconn, statement: str) -> Iterator[str]:
    """Run a statement, and give its rows."""
    result = connection.exec_(statement.encode())
    if connection.status != pq.ConnStatus.OK or result.status not in _DONE:
        raise RuntimeError((result.error_message or connection.error_message).decode(errors="replace").strip())
    for row in range(result.ntuples):
        yield "|".join((result.get_value(row, column) or b"").decode() for column in range(result.nfields))
