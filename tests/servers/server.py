"""A server's process: started, watched, ended."""

import abc
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, ClassVar, Self

import psutil

from tests import installations
from tests.servers.address import LOOPBACK, Address

START_SECONDS = 60
STOP_SECONDS = 30
#: The bytes that must be free where a server's directory is in memory: the tests with the largest results have 4 GB.
_ROOM = 12 << 30


def _parent() -> Path:
    """Return where servers have their directories: in memory where that has room: files are made sooner.

    Not in TMPDIR, which may be private to root, or long: the path of a Unix socket has room for 100 bytes.
    """
    memory, disk = Path("/dev/shm"), Path("/tmp")  # noqa: S108 - the directories in them have random names
    with contextlib.suppress(OSError):
        if shutil.disk_usage(memory).free >= _ROOM and os.access(memory, os.W_OK):
            return memory
    return disk


class Server(Address):
    """A server's process, with a directory and a port of its own."""

    #: The signal by which the process ends at once, its children with it.
    end_now: ClassVar[signal.Signals] = signal.SIGTERM
    #: How long it may take to start.
    start_seconds: ClassVar[float] = START_SECONDS

    def __init__(self, *, user: str, password: str | None = None, database: str) -> None:
        """Choose a directory and a free port; `start` starts the server."""
        super().__init__(port=free_port(), user=user, password=password, database=database)
        self.home = Path(tempfile.mkdtemp(prefix="longshore-", dir=_parent()))
        self.give(self.home)
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
        """The server's log so far."""
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
        deadline = time.monotonic() + self.start_seconds
        while not self._ready():
            if not self.running or time.monotonic() > deadline:
                self.kill()
                message = f"{type(self).__name__} did not start:\n{self.log[-2000:]}"
                raise RuntimeError(message)
            time.sleep(0.02)

    def limit_files(self, size: int | None) -> None:
        """Have no file grow beyond ``size`` bytes: what a process can have instead of a full disk. None lifts it."""
        limit = f"--fsize={'unlimited' if size is None else size}:"
        subprocess.run(["prlimit", f"--pid={self.pid}", limit], check=True, **self._surroundings())

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

    def give(self, path: Path) -> None:
        """Make a path the server's own, and no one else's."""
        path.chmod(0o700 if path.is_dir() else 0o600)
        if user := installations.unprivileged():
            os.chown(path, user.pw_uid, user.pw_gid)

    def _write(self, path: Path, text: str) -> Path:
        path.write_text(text)
        self.give(path)
        return path


def free_port() -> int:
    """Return a port that no one listens on."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port
