"""PgBouncer."""

from collections.abc import Mapping

from tests import installations
from tests.servers.address import LOOPBACK
from tests.servers.endpoint import Endpoint
from tests.servers.server import Server


class PgBouncer(Server, Endpoint):
    """A PgBouncer in transaction mode in front of a PostgreSQL that trusts it."""

    def __init__(self, behind: Endpoint, *, config: Mapping[str, str] | None = None) -> None:
        """Find the program; `config` is more lines for the section [pgbouncer]."""
        self.program = installations.program("pgbouncer", "pgbouncer")
        super().__init__(user=behind.user, password=behind.password, database=behind.database)
        self.behind = behind
        self.config = dict(config or {})

    def _prepare(self) -> None:
        users = self._write(self.home / "users", f'"{self.user}" "{self.password or ""}"\n')
        settings = {
            "listen_addr": LOOPBACK,
            "listen_port": str(self.port),
            "unix_socket_dir": "",
            "auth_type": "trust",
            "auth_file": str(users),
            "pool_mode": "transaction",
            **self.config,
        }
        lines = [f"[databases]\n* = host={self.behind.host} port={self.behind.port}", "[pgbouncer]"]
        lines += [f"{key} = {value}" for key, value in settings.items()]
        self._write(self.home / "pgbouncer.ini", "\n".join(lines) + "\n")

    def _command(self) -> list[str]:
        return [self.program, str(self.home / "pgbouncer.ini")]
