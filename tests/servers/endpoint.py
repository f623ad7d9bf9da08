"""Where something answers that speaks PostgreSQL's wire."""

import os
import shutil
from dataclasses import dataclass
from typing import IO, ClassVar

from psycopg import pq

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
        """Run SQL in psql as the superuser, and return what it prints: fields parted by |, one row a line.

        Without `stdin` the SQL is a script of statements, each its own transaction; with it, one command that reads it.
        """
        # The caller's own PGUSER, PGSSLMODE and PGOPTIONS say nothing about this server.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        if stdin is None and ";" not in sql.rstrip("; \n") and len(environment) == len(os.environ):
            return self._answer(sql, database)
        command = [self._psql(), "-XqAt", "-v", "ON_ERROR_STOP=1", self._superuser_url(database)]
        command += ["-f", "-"] if stdin is None else ["-c", sql]
        feed = {"input": sql.encode()} if stdin is None else {"stdin": stdin}
        done = installations.run(command, env=environment, **feed)
        if done.returncode:
            raise RuntimeError(done.stderr.decode(errors="replace").strip())
        return done.stdout.decode().removesuffix("\n")

    def _answer(self, statement: str, database: str | None) -> str:
        """Run one statement by libpq: psql takes longer to start than most of them to run."""
        connection = pq.PGconn.connect(self._superuser_url(database).encode())
        try:
            if connection.status != pq.ConnStatus.OK:
                raise RuntimeError(connection.error_message.decode(errors="replace").strip())
            result = connection.exec_(statement.encode())
            if connection.status != pq.ConnStatus.OK or result.status not in _DONE:
                raise RuntimeError((result.error_message or connection.error_message).decode(errors="replace").strip())
            columns, rows = range(result.nfields), range(result.ntuples)
            cells = (((result.get_value(row, column) or b"").decode() for column in columns) for row in rows)
            return "\n".join(map("|".join, cells))
        finally:
            connection.finish()

    def _psql(self) -> str:
        return shutil.which("psql") or str(installations.postgresql().directory / "psql")

    def _superuser_url(self, database: str | None) -> str:
        return self.url(database=database)

    def _socket(self, place: str, port: int) -> dict[str, str | int]:
        return {"host": place, "port": port}
