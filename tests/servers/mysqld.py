"""The server mysqld, which MariaDB and MySQL share."""

import abc
import contextlib
import shutil
import signal
import socket
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil
import pymysql

from tests import installations
from tests.certificates import Certificates
from tests.servers.address import LOOPBACK
from tests.servers.mysql_endpoint import MySQLEndpoint
from tests.servers.server import STOP_SECONDS, Server


class Mysqld(Server, MySQLEndpoint):
    """A MySQL or a MariaDB, on TCP and on a Unix socket, with the database `test`; `root` has no password.

    `config`: settings, None for one that has no value. `certificates`: speak TLS. `data`: a directory that is kept,
    instead of one that goes with the server.
    """

    end_now = signal.SIGKILL

    def __init__(
        self,
        *,
        config: Mapping[str, str | None] | None = None,
        certificates: Certificates | None = None,
        data: Path | None = None,
    ) -> None:
        """Choose a directory and a port; `start` does the rest."""
        super().__init__(user="root", database="test")
        self.data = data or self.home / "data"
        self.config = dict(config or {})
        self.certificates = certificates

    @property
    def socket_path(self) -> str:
        """The Unix socket."""
        return str(self.home / "mysqld.sock")

    @property
    def version(self) -> str:
        """The server's name for its version."""
        return str(self.sql("SELECT version()")[0][0])

    def stop(self) -> None:
        """Stop in good order: connections are ended, tables closed."""
        self._end(signal.SIGTERM)

    def close(self) -> None:
        """Stop at once, and remove everything but data that was asked to be kept, which is left in order."""
        if self.data.parent != self.home:
            self.stop()
        super().close()

    @abc.abstractmethod
    def _install(self, directory: Path) -> list[str | Path]:
        """Return the command that makes a data directory; the server's option file is `self._options`."""

    @property
    @abc.abstractmethod
    def _template(self) -> Path:
        """The data directory that is made once for all runs, and copied for each server."""

    @abc.abstractmethod
    def _own_settings(self) -> Mapping[str, str | None]:
        """Return the settings that the other server does not know."""

    @property
    def _options(self) -> Path:
        return self.home / "my.cnf"

    def _prepare(self) -> None:
        self._evict()
        start = self._write(self.home / "start.sql", "CREATE DATABASE IF NOT EXISTS test CHARACTER SET utf8mb4;\n")
        settings = {**dict(self._settings()), **self._own_settings(), **self.config}
        if not self.data.exists():
            # Neither logs nor plugins while the system's tables are made, nor what all servers of a user share: one
            # that starts removes every temporary table in its directory, whoever made it.
            settings_of_making = ("skip-log-bin", "innodb-flush-log-at-trx-commit=0", "innodb-use-native-aio=0")
            self._write(self._options, "\n".join(["[mysqld]", *settings_of_making, f"tmpdir={self.home}", ""]))
            self._initialize()
        lines = [key if value is None else f"{key}={value}" for key, value in settings.items()]
        self._write(self._options, "\n".join(["[mysqld]", *lines, f"init-file={start}", ""]))

    def _settings(self) -> Iterator[tuple[str, str | None]]:
        yield from {
            "bind-address": LOOPBACK,
            "port": str(self.port),
            "socket": self.socket_path,
            "pid-file": str(self.home / "pid"),
            "datadir": str(self.data),
            "tmpdir": str(self.home),
            "server-id": "1",
            # Snapshots of several sessions are compared by their place in the binary log.
            "log-bin": "binlog",
            "max-connections": "200",
            "max-allowed-packet": "1G",
            "local-infile": "1",
            "character-set-server": "utf8mb4",
            # Nothing in a test has to survive a loss of power, but what is committed outlives the process.
            "innodb-flush-log-at-trx-commit": "2",
            "innodb-buffer-pool-size": "256M",
            "sync-binlog": "0",
        }.items()
        if self.certificates:
            files = self.certificates
            for setting, file in (("ca", files.authority), ("cert", files.server), ("key", files.server_key)):
                yield f"ssl-{setting}", str(self._write(self.home / f"{setting}.pem", file.read_text()))
        else:
            yield "skip-ssl", None

    def _initialize(self) -> None:
        # Seconds of work, done once for all runs.
        template = self._template
        if not template.exists():
            new = self.home / "template"
            new.mkdir()
            self.give(new)
            done = installations.run(self._install(new), **self._surroundings())
            if done.returncode:
                raise RuntimeError((done.stdout + done.stderr).decode(errors="replace")[-2000:])
            # A server without an identity makes one.
            (new / "auto.cnf").unlink(missing_ok=True)
            installations.copy(new, template)
            shutil.rmtree(new)
        self.data.parent.mkdir(parents=True, exist_ok=True)
        installations.copy(template, self.data)

    def _evict(self) -> None:
        """End a server that a killed run has left on this data directory."""
        if self.data.parent == self.home:
            return
        for process in self._left():
            process.send_signal(self.end_now)
            process.wait(STOP_SECONDS)

    def _left(self) -> Iterable[psutil.Process]:
        for process in psutil.process_iter(["cwd"]):
            # A server's working directory is its data directory.
            if process.info["cwd"] == str(self.data):
                yield process

    def _ready(self) -> bool:
        """Tell whether root may come in, and finds the database."""
        with contextlib.suppress(OSError, pymysql.err.MySQLError):
            # PyMySQL leaves a socket open that no one answers.
            with socket.socket(socket.AF_UNIX) as probe:
                probe.connect(self.socket_path)
            self.sql("SELECT 1")
            return True
        return False

    def _way(self) -> dict[str, Any]:
        return {"unix_socket": self.socket_path}
