"""MySQL."""

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests import installations
from tests.servers.mysql_endpoint import MySQLEndpoint
from tests.servers.mysqld import Mysqld


class MySQL(Mysqld):
    """A MySQL 8.0; see `Mysqld` for the arguments."""

    def __init__(self, **options: Any) -> None:
        """Fetch the programs."""
        self.programs = installations.mysql()
        super().__init__(**options)

    def _command(self) -> list[str]:
        return [str(self.programs / "bin" / "mysqld"), f"--defaults-file={self._options}"]

    def _install(self, directory: Path) -> list[str | Path]:
        command = [*self._command(), *self._places(), f"--datadir={directory}"]
        return [*command, "--initialize-insecure"]

    @property
    def _template(self) -> Path:
        return self.programs.with_name(f"{self.programs.name}-data")

    def _places(self) -> list[str]:
        return [f"--basedir={self.programs}", f"--lc-messages-dir={self.programs / 'share'}"]

    def _own_settings(self) -> Mapping[str, str | None]:
        return {
            "basedir": str(self.programs),
            "lc-messages-dir": str(self.programs / "share"),
            # Its second protocol would take a port that is not ours.
            "mysqlx": "0",
            # What it would count is asked by no one.
            "performance-schema": "0",
        }


@contextlib.contextmanager
def mysql() -> Iterator[MySQLEndpoint]:
    """Give the MySQL that tests share: the one of LONGSHORE_MYSQL_URL, or a private one."""
    if url := os.environ.get("LONGSHORE_MYSQL_URL"):
        yield MySQLEndpoint.parse(url)
    else:
        with MySQL() as server:
            yield server
