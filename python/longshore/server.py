"""``serve``: a Flight SQL server in front of a store, a DuckDB file, a folder of Parquet, or any other source."""

import os
import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Union, final
from urllib.parse import unquote

from longshore import _core, sources
from longshore.arguments import seconds
from longshore.errors import InterfaceError
from longshore.foreign import refusing
from longshore.options import Options
from longshore.target import TargetLike, target
from longshore.texts import display, path_text

if TYPE_CHECKING:
    from longshore.sources.served import Served
    from longshore.store import Store

#: The bytes of a client's message, and of the parts of a result in memory and on the disk.
_MESSAGE = 256 << 20
_PART_MEMORY = 64 << 20
_PART_DISK = 16 << 30
#: How long a forgotten result, transaction or session is kept.
_IDLE = 300.0
#: How long a new connection may say nothing, and one that is there, which is sent pings meanwhile.
_GREETING = 10.0
_SILENCE = 60.0
#: How many prepared statements, results or sessions a user may hold.
_HANDLES = 10_000
_ENGINES = {"duckdb", "store"}
_FOLDER = 'write a store\'s URL as store:///path; a folder of Parquet files is a path: "data/"'

#: The names by which others call what is served.
_FOREIGN = dict.fromkeys(("target", "conn", "url", "uri", "path", "database"), "it is called served here")

PathLike = Union[str, "os.PathLike[str]"]


class _Limits(NamedTuple):
    connections: int
    sessions: int
    statement_timeout: float | None
    rows: int | None
    idle: float
    greeting: float
    silence: float
    handles: int
    message: int
    part_memory: int
    part_disk: int


@refusing(_FOREIGN)
def serve(
    served: "TargetLike | Store",
    *,
    host: str = "127.0.0.1",
    port: int = 31337,
    tls: Sequence[PathLike] | None = None,
    auth: PathLike | None = None,
    insecure: bool = False,
    max_connections: int = 100,
    max_sessions: int = 16,
    max_rows: int | None = None,
    statement_timeout: float | None = None,
    idle_timeout: float | None = None,
    memory_limit: int | str | None = None,
    log: bool = False,
) -> "Server":
    """Start a Flight SQL server, on threads of its own, and return it.

    >>> import longshore, tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     longshore.open(directory)["boats"] = {"berth": [1, 2]}
    ...     with longshore.serve(f"store:///{directory}", port=0) as server:
    ...         server.url.startswith("grpc://127.0.0.1:")
    True

    ``served``
        A store, as a URL or opened by ``longshore.open``; a DuckDB file; a folder with Parquet files, which is only
        read; or any other database that ``read_sql`` takes, with the rights of its account.
    ``host``, ``port``
        Where it listens; 0 is a port that is free. Other than this machine itself, a host needs ``tls`` and ``auth``.
    ``tls``
        The PEM files of the server's certificate and of its key, and of the authority of clients' certificates, if
        those are to be asked for.
    ``auth``
        The file of users that ``longshore users add`` writes; without it, everybody may write.
    ``insecure``
        Whether any host is taken without ``tls`` and ``auth``.
    ``max_connections``, ``max_sessions``
        How many clients there are at once, and how many sessions of what is served.
    ``max_rows``, ``statement_timeout``
        How many rows a result may have, and how many seconds a statement may take, its rows included.
    ``idle_timeout``
        After how many seconds a result, a transaction or a session ends that no client asks for: 300 by default.
    ``memory_limit``
        The bytes that the SQL engine may take, such as ``"4GB"``; of a store, that of each session.
    ``log``
        Whether each call is told on the standard error output, as a line of JSON without statements and values.

    Raises the exceptions of ``longshore.errors``.
    """
    limits = _Limits(
        connections=_count(max_connections, "max_connections"),
        sessions=_count(max_sessions, "max_sessions"),
        statement_timeout=seconds(statement_timeout),
        rows=None if max_rows is None else _count(max_rows, "max_rows"),
        idle=seconds(idle_timeout) or _IDLE,
        greeting=_GREETING,
        silence=_SILENCE,
        handles=_HANDLES,
        message=_MESSAGE,
        part_memory=_PART_MEMORY,
        part_disk=_PART_DISK,
    )
    options = Options() if memory_limit is None else Options(memory_limit=memory_limit)
    engine, writers = _engine_or_target(served, options)
    try:
        core = _core.FlightServer(
            writers if engine is None else lambda: engine.session(reads=False),
            None if engine is None else lambda: engine.session(reads=True),
            host=host,
            port=port,
            tls=_pem_files(tls),
            users=None if auth is None else path_text(os.fsdecode(auth), "auth"),
            insecure=insecure,
            limits=limits,
            log=log,
        )
    except BaseException:
        if engine is not None:
            engine.close()
        raise
    return Server(core, engine, is_encrypted=tls is not None)


@final
class Server(AbstractContextManager["Server"]):
    """A server that runs; made by ``longshore.serve``. Leaving a ``with`` block stops it."""

    def __init__(self, core: _core.FlightServer, engine: "Served | None", *, is_encrypted: bool) -> None:
        """Keep the server."""
        self._core, self._engine, self._is_encrypted = core, engine, is_encrypted
        self._stopped = threading.Event()
        self._process = os.getpid()

    def __repr__(self) -> str:
        """Show where it listens."""
        return f"<Server {self.url} {'stopped' if self._stopped.is_set() else 'running'}>"

    @property
    def host(self) -> str:
        """The address that it listens on."""
        return self._core.host

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return self._core.port

    @property
    def url(self) -> str:
        """The URL for clients."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"grpc{'+tls' if self._is_encrypted else ''}://{host}:{self.port}"

    def wait(self) -> None:
        """Wait until another thread stops the server; Ctrl-C raises ``KeyboardInterrupt``."""
        # A wait without an end would not hear of a signal on some systems.
        while not self._stopped.wait(1.0):
            pass

    def stop(self) -> None:
        """Take no more calls, wait a few seconds for those that run, and end. A forked child leaves it alone."""
        if os.getpid() != self._process:
            return
        self._core.stop()
        if self._engine is not None and not self._stopped.is_set():
            self._engine.close()
        self._stopped.set()

    def __exit__(self, *_exception: object) -> None:
        """Stop it."""
        self.stop()


def _count(number: object, name: str) -> int:
    if isinstance(number, int) and not isinstance(number, bool) and number > 0:
        return number
    raise InterfaceError(f"{name} is a number from 1, not {display(number)}")


def _pem_files(tls: Sequence[PathLike] | None) -> tuple[str, str, str | None] | None:
    if tls is None:
        return None
    if isinstance(tls, str) or len(tls) not in {2, 3}:
        raise InterfaceError("tls is the files of a certificate and of its key, and perhaps of the clients' authority")
    certificate, key, *authority = (path_text(os.fsdecode(each), "tls") for each in tls)
    return certificate, key, authority[0] if authority else None


def _engine_or_target(given: Any, options: Options) -> "tuple[Served | None, _core.Target | None]":
    """Give the engine of this process that serves, or the target of another."""
    from longshore.store import Store

    if isinstance(given, Store):
        return _engine("store", str(given.path), options), None
    if isinstance(given, str | os.PathLike) and "://" not in os.fsdecode(given) and Path(given).is_dir():
        return _engine("folder", os.fsdecode(given), options), None
    parts = target(given)
    if parts.scheme not in _ENGINES:
        keywords = {**parts.keywords, "attach": "false"} if parts.scheme == "sqlite" else parts.keywords
        return None, _core.Target(**parts._replace(keywords=keywords)._asdict())
    path, _, query = (parts.url or "").partition("://")[2].partition("?")
    settings = {**dict(_core.url_query(query)), **parts.keywords}
    path = settings.pop("database", unquote(path.removeprefix("/")))
    if settings or not path:
        message = f"what is served has a path, and no settings, not {display(sorted(settings))}"
        raise InterfaceError(message, hint=_FOLDER)
    return _engine(parts.scheme, path, options), None


def _engine(kind: str, path: str, options: Options) -> "Served":
    # The engine's package is asked for as that of any source is.
    sources.require("store" if kind == "store" else "duckdb")
    from longshore.sources import served

    if kind == "folder":
        return served.folder(Path(path), options)
    return served.ServedStore(path, options) if kind == "store" else served.database(path, options)
