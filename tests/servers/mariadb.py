"""MariaDB."""

import contextlib
import hashlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from tests import installations
from tests.servers.mysql_endpoint import MySQLEndpoint
from tests.servers.mysqld import Mysqld


class MariaDB(Mysqld):
    """A MariaDB, which knows ed25519; see `Mysqld` for the arguments."""

    scheme: ClassVar[str] = "mariadb"

    def __init__(self, **options: Any) -> None:
        """Find the programs."""
        self.programs = [
            installations.program(name, "mariadb-server") for name in ("mariadbd", "mariadb-install-db", "mariadb")
        ]
        super().__init__(**options)

    @property
    def shell(self) -> list[str]:
        """The command line of MariaDB's own client, as root, on the socket."""
        return [self.programs[2], "--no-defaults", f"--socket={self.socket_path}", "--user=root"]

    def _command(self) -> list[str]:
        return [self.programs[0], f"--defaults-file={self._options}"]

    def _install(self, directory: Path) -> list[str | Path]:
        command = [self.programs[1], f"--defaults-file={self._options}", f"--datadir={directory}", "--skip-test-db"]
        return [*command, "--auth-root-authentication-method=normal"]

    @property
    def _template(self) -> Path:
        # Of this version's own tables.
        version = installations.run([self.programs[0], "--version"]).stdout
        return installations.cache() / f"mariadb-{hashlib.sha256(version).hexdigest()[:16]}-data"

    def _own_settings(self) -> Mapping[str, str | None]:
        return {"plugin-load-add": "auth_ed25519"}


@contextlib.contextmanager
def mariadb() -> Iterator[MySQLEndpoint]:
    """Give the MariaDB that tests share: the one of LONGSHORE_MARIADB_URL, or a private one."""
    if url := os.environ.get("LONGSHORE_MARIADB_URL"):
        yield MySQLEndpoint.parse(url)
    else:
        with MariaDB() as server:
            yield server
