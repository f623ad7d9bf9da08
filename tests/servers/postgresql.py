"""PostgreSQL, and what follows it."""

import contextlib
import os
import select
import signal
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import ClassVar, Literal

import psutil
from psycopg import pq
from psycopg.pq.abc import PGconn

from tests import installations
from tests.certificates import Certificates
from tests.servers.address import LOOPBACK
from tests.servers.endpoint import Endpoint
from tests.servers.server import START_SECONDS, STOP_SECONDS, Server

Mode = Literal["smart", "fast", "immediate"]


class PostgreSQL(Server, Endpoint):
    """A PostgreSQL, on TCP and on a Unix socket; `postgres`, its superuser, is always trusted on the socket.

    `hba`: the lines of pg_hba.conf, without which everybody is trusted. `config`: settings. `certificates`: speak TLS.
    `needs`: "tls", "xml", or an extension's name; unless a version is asked for, one is taken that has them all.
    `data`: a directory that is kept, instead of one that goes with the server.
    """

    end_now = signal.SIGQUIT
    modes: ClassVar[dict[Mode, signal.Signals]] = {
        "smart": signal.SIGTERM,
        "fast": signal.SIGINT,
        "immediate": signal.SIGQUIT,
    }

    def __init__(
        self,
        version: str | None = None,
        *,
        hba: Iterable[str] = ("local all all trust", "host all all all trust"),
        config: Mapping[str, str] | None = None,
        certificates: Certificates | None = None,
        needs: Iterable[str] = (),
        shared_buffers: str = "128MB",
        data: Path | None = None,
    ) -> None:
        """Find the programs; `start` does the rest."""
        self.binaries = installations.postgresql(version, {*needs, *(["tls"] if certificates else [])})
        super().__init__(user="postgres", database="postgres")
        self.data = data or self.home / "data"
        self.hba = list(hba)
        self.config = {"shared_buffers": shared_buffers, **(config or {})}
        self.certificates = certificates
        self._idle: list[tuple[int, PGconn]] = []

    @property
    def version(self) -> str:
        """The major version."""
        return self.binaries.version

    @property
    def socket_directory(self) -> str:
        """The directory of the Unix socket: `host=` for libpq."""
        return str(self.home)

    @property
    def socket_path(self) -> str:
        """The Unix socket itself."""
        return f"{self.socket_directory}/.s.PGSQL.{self.port}"

    def stop(self, mode: Mode = "fast") -> None:
        """Stop: "smart" waits for clients, "fast" rolls them back, "immediate" drops them, as a crash would."""
        self._idle.clear()
        self._end(self.modes[mode])

    def kill(self) -> None:
        """End the server and its backends as a crash would. The next start recovers."""
        lock = self.data / "postmaster.pid"
        # Line 7 names the shared memory segment, which no one else would remove.
        lines = lock.read_text().split("\n") if lock.exists() else []
        super().kill()
        for segment in "".join(lines[6:7]).split()[-1:]:
            installations.run(["ipcrm", "-m", segment], **self._surroundings())

    def close(self) -> None:
        """Stop, and remove everything but data that was asked to be kept, which is left in order."""
        if self.data.parent != self.home:
            self.stop()
        super().close()

    def _prepare(self) -> None:
        if not (self.data / "PG_VERSION").exists():
            self._initdb()
        self._evict()
        self._write(self.data / "pg_hba.conf", "\n".join(["local all postgres trust", *self.hba, ""]))
        self._write(self.data / "postgresql.conf", "".join(f"{key} = '{value}'\n" for key, value in self._settings()))

    def _settings(self) -> Iterator[tuple[str, str]]:
        settings = {
            "listen_addresses": LOOPBACK,
            "port": str(self.port),
            "unix_socket_directories": self.socket_directory,
            "max_connections": "100",
            "max_prepared_transactions": "2",
            # Nothing in a test has to survive a loss of power.
            "fsync": "off",
            "synchronous_commit": "off",
            "full_page_writes": "off",
            # So that a table filled in the transaction that made it is not logged.
            "wal_level": "minimal",
            "max_wal_senders": "0",
            # In the data directory, where it does not outlive a server that is killed.
            "dynamic_shared_memory_type": "mmap",
        }
        if self.certificates:
            files = self.certificates
            settings["ssl"] = "on"
            for setting, file in (("ca", files.authority), ("cert", files.server), ("key", files.server_key)):
                settings[f"ssl_{setting}_file"] = str(self._write(self.data / f"{setting}.pem", file.read_text()))
        yield from {**settings, **self.config}.items()

    def _initdb(self) -> None:
        # A second of work, done once for all runs. Each server has a copy: what it writes ahead is in small files.
        template = installations.cache() / f"postgresql-{self.version}-template"
        if not template.exists():
            new = self.home / "template"
            new.mkdir()
            self.give(new)
            command: list[str | Path] = [self.binaries.directory / "initdb", "-D", new, "-U", "postgres"]
            command += ["--auth=trust", "--no-sync", "--no-locale", "--encoding=UTF8", "--wal-segsize=1"]
            done = installations.run(command, **self._surroundings())
            if done.returncode:
                raise RuntimeError(done.stderr.decode(errors="replace"))
            installations.copy(new, template)
        installations.copy(template, self.data)

    def _evict(self) -> None:
        """End a server that a killed run has left on this data directory, and its lock file."""
        lock = self.data / "postmaster.pid"
        if not lock.exists():
            return
        with contextlib.suppress(psutil.NoSuchProcess, ValueError):
            process = psutil.Process(int(lock.read_text().split("\n", 1)[0]))
            # The number may have gone to another program since.
            if str(self.data) in process.cmdline():
                process.send_signal(self.end_now)
                process.wait(STOP_SECONDS)
        lock.unlink(missing_ok=True)

    def _command(self) -> list[str]:
        return [str(self.binaries.directory / "postgres"), "-D", str(self.data)]

    def _ready(self) -> bool:
        """Look where pg_ctl looks: the lock file has the server's number first, and its state in line 8."""
        with contextlib.suppress(OSError, IndexError):
            lines = (self.data / "postmaster.pid").read_text().split("\n")
            return lines[0] == str(self.pid) and lines[7].strip() == "ready"
        return False

    def _psql(self) -> str:
        own = self.binaries.directory / "psql"
        return str(own) if own.exists() else super()._psql()

    def _superuser_url(self, database: str | None) -> str:
        return self.url(host=self.socket_directory, database=database)

    @contextlib.contextmanager
    def _superuser(self, database: str | None) -> Iterator[PGconn]:
        """Keep the main database's connection for the next: to start a backend takes longer than most statements."""
        if database is not None:
            with super()._superuser(database) as connection:
                yield connection
            return
        connection = self._idle_connection() or self._connect(None)
        try:
            yield connection
        except BaseException:
            connection.finish()
            raise
        if connection.exec_(b"DISCARD ALL").status == pq.ExecStatus.COMMAND_OK:
            self._idle.append((os.getpid(), connection))

    def _idle_connection(self) -> PGconn | None:
        with contextlib.suppress(IndexError):
            process, connection = self._idle.pop()
            words = select.poll()
            words.register(connection.socket, select.POLLIN)
            # What an idle server says is that it ends; and a process that is forked would speak into its parent's.
            return connection if process == os.getpid() and not words.poll(0) else None
        return None


class Standby(PostgreSQL):
    """A hot standby, which answers reads, of a PostgreSQL made with the settings `Standby.needs`."""

    needs: ClassVar[dict[str, str]] = {"wal_level": "replica", "max_wal_senders": "4", "hot_standby": "on"}

    def __init__(self, primary: PostgreSQL) -> None:
        """Take over the primary's version and settings; `start` copies its data."""
        super().__init__(primary.version, config=primary.config)
        self.primary = primary

    def catch_up(self) -> None:
        """Wait until everything is here that the primary has said so far."""
        position = self.primary.psql("SELECT pg_current_wal_insert_lsn()")
        deadline = time.monotonic() + START_SECONDS
        while self.psql(f"SELECT pg_last_wal_replay_lsn() >= '{position}'") != "t":
            if time.monotonic() > deadline:
                message = f"the standby does not catch up:\n{self.log[-2000:]}"
                raise RuntimeError(message)
            time.sleep(0.02)

    def _initdb(self) -> None:
        command: list[str | Path] = [self.binaries.directory / "pg_basebackup", "-D", self.data, "-U", "postgres"]
        command += ["-h", self.primary.socket_directory, "-p", str(self.primary.port), "-R", "--no-sync", "-c", "fast"]
        done = installations.run(command, **self._surroundings())
        if done.returncode:
            raise RuntimeError(done.stderr.decode(errors="replace"))


@contextlib.contextmanager
def postgresql() -> Iterator[Endpoint]:
    """Give the PostgreSQL that tests share: the one of LONGSHORE_POSTGRESQL_URL, or a private one."""
    if url := os.environ.get("LONGSHORE_POSTGRESQL_URL"):
        yield Endpoint.parse(url)
    else:
        with PostgreSQL() as server:
            yield server
