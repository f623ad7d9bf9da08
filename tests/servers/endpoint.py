"""Where something answers that speaks PostgreSQL's wire."""

import os
import shutil
from dataclasses import dataclass
from typing import IO, ClassVar

from tests import installations
from tests.servers.address import Address


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
        command = [self._psql(), "-XqAt", "-v", "ON_ERROR_STOP=1", self._superuser_url(database)]
        command += ["-f", "-"] if stdin is None else ["-c", sql]
        feed = {"input": sql.encode()} if stdin is None else {"stdin": stdin}
        # The caller's own PGUSER, PGSSLMODE and PGOPTIONS say nothing about this server.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        done = installations.run(command, env=environment, **feed)
        if done.returncode:
            raise RuntimeError(done.stderr.decode(errors="replace").strip())
        return done.stdout.decode().removesuffix("\n")

    def _psql(self) -> str:
        return shutil.which("psql") or str(installations.postgresql().directory / "psql")

    def _superuser_url(self, database: str | None) -> str:
        return self.url(database=database)

    def _socket(self, place: str, port: int) -> dict[str, str | int]:
        return {"host": place, "port": port}
