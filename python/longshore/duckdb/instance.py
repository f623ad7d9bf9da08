"""DuckDB: its instances in this process, and the settings that they start with."""

import atexit
import contextlib
import ctypes
import os
import secrets
import shutil
import tempfile
import threading
from collections.abc import Collection, Iterator, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from longshore import _core
from longshore.duckdb.waiting import defer_interrupts, finish
from longshore.frames import needing, require_version
from longshore.options import Options

#: How the engine has to export its results. Without it, integers of 128 bits wrap, times lose their offset, and bits
#: and JSON cannot be told from bytes and text.
_SETTINGS = {"arrow_lossless_conversion": True}
#: Another database in memory in place of the one that all tables were made in.
_RENEW = """ATTACH ':memory:' AS renewed; USE renewed; DETACH memory;
ATTACH ':memory:' AS memory; USE memory; DETACH renewed"""
#: Table functions that make rows of their arguments alone.
MAKING_ROWS = frozenset(
    {"range", "generate_series", "unnest", "repeat", "repeat_row", "json_each", "json_tree", "summary", "histogram"}
    | {"histogram_values", "test_all_types", "icu_calendar_names", "pg_timezone_names"}
)
#: Others that change nothing.
_READING = {"glob", "sniff_csv", "seq_scan", "arrow_scan", "arrow_scan_dumb", "pandas_scan", "python_arrow_scan"}
_READING_PREFIXES = ("duckdb_", "pragma_", "read_", "parquet_")
#: The bytes that an instance may keep which no one uses.
_LITTLE = 1 << 20
#: How many are kept: a session's, and one that its definitions of tables are tried in.
_SPARE = 2


@cache
def engine() -> Any:
    """Import DuckDB, which takes longer than a small write into a store: only a statement needs it."""
    with needing(library="duckdb", extra="sql", purpose="longshore.sql"), defer_interrupts():
        import duckdb
    # Before, a filter over Arrow data loses NaN, and a reader that is read twice is empty the second time.
    require_version("duckdb", duckdb.__version__, (2, 0))
    return duckdb


class Instance:
    """A DuckDB with settings, memory and a spill directory of its own."""

    def __init__(self, options: Options) -> None:
        """Start it, which takes milliseconds: that is why one is shared."""
        self._spill = Path(tempfile.gettempdir()) / f"longshore-{os.getpid()}-{secrets.token_hex(8)}"
        # DuckDB looks for Python variables by other rules than ``Scope``.
        settings: dict[str, Any] = {
            "python_enable_replacements": False,
            "temp_directory": str(self._spill),
            **_SETTINGS,
        }
        if options.threads is not None:
            settings["threads"] = options.threads
        if (limit := options.memory_limit_bytes) is not None:
            settings["memory_limit"] = f"{limit}B"
        self._root = engine().connect(":memory:", config=settings)
        # It would print on the standard output of whoever runs Python interactively; cursors inherit it.
        self._root.execute("SET SESSION enable_progress_bar = false")
        # As an argument of connect it would need an extension that is not loaded yet.
        self._root.execute("SET GLOBAL TimeZone = 'UTC'")
        # It makes an anti-join of LEFT JOIN ... IS NULL and loses rows of Arrow data. A version without it raises.
        with contextlib.suppress(engine().Error):
            self._root.execute("SET GLOBAL disabled_optimizers = 'outer_join_simplification'")
        self._default_limit = _shown_bytes(self._value("current_setting('memory_limit')"))
        self._limit = self._default_limit
        self.limit_memory(options)

    def limit_memory(self, options: Options) -> None:
        """Lower its memory limit to what the system has left, where that is less than its default."""
        free = _core.memory_left() if options.memory_limit == "auto" else None
        share = self._default_limit if free is None else min(free * 4 // 5, self._default_limit)
        # What comes and goes on every system is not worth two statements.
        if abs(share - self._limit) * 20 <= self._limit:
            return
        with contextlib.suppress(engine().Error):
            used = self._value("sum(memory_usage_bytes)::BIGINT FROM duckdb_memory()")
            limit = min(used + share, self._default_limit)
            self._root.execute(f"SET GLOBAL memory_limit = '{limit}B'")
            self._limit = limit

    def _value(self, expression: str) -> Any:
        return self._root.execute(f"SELECT {expression}").fetchall()[0][0]

    def connection(self) -> Any:
        """Open a connection, which does not see the tables registered with others."""
        return self._root.cursor()

    @cached_property
    def changing_functions(self) -> Collection[str]:
        """The functions by which a query may change the engine: all table functions that are not known to read."""
        query = "SELECT DISTINCT function_name FROM duckdb_functions() WHERE function_type = 'table'"
        names = {name for (name,) in self._root.execute(query).fetchall()}
        unknown = names - MAKING_ROWS - _READING
        return {"write_log"} | {name for name in unknown if not name.startswith(_READING_PREFIXES)}

    def is_renewed(self) -> bool:
        """Make it like new once the connections of whoever used it, who changed no setting, are closed."""
        try:
            self._root.execute(_RENEW)
            used = self._value("coalesce(sum(memory_usage_bytes), 0)::BIGINT FROM duckdb_memory()")
        except engine().Error:
            return False
        return bool(used < _LITTLE)

    def lock(self, settings: Sequence[str]) -> None:
        """Run the last settings, after which there are no others."""
        for setting in settings:
            self._root.execute(setting)

    def is_usable(self) -> bool:
        """Whether it still answers: an internal error ends it for good."""
        try:
            self._root.execute("SELECT 1").fetchall()
        except engine().Error:
            return False
        return True

    def abandon(self) -> None:
        """Forget it in a forked child: it belongs to the parent."""
        abandon(self._root)

    def close(self) -> None:
        """End it and remove its files."""
        self._root.close()
        shutil.rmtree(self._spill, ignore_errors=True)


class _Kept:
    """Instances that outlive queries: they end with the process, and before a fork: a child has not their threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        atexit.register(self.close)
        if hasattr(os, "register_at_fork"):
            release = self._lock.release
            os.register_at_fork(before=self.before_fork, after_in_parent=release, after_in_child=self.after_fork)

    def close(self) -> None:
        """End them, with the process; a later query starts another."""
        with self._lock:
            self._end()

    def before_fork(self) -> None:
        """End them, and have no one start any meanwhile."""
        self._lock.acquire()
        self._end()

    def after_fork(self) -> None:
        """Let the child start its own."""
        self._lock.release()

    def _end(self) -> None:
        raise NotImplementedError


class _SharedInstance(_Kept):
    """The instance that all queries share which only read and ask for no settings."""

    def __init__(self) -> None:
        super().__init__()
        self._instance: Instance | None = None
        #: The number of connections that are not released.
        self.open = 0

    def connection(self, options: Options | None = None) -> Any:
        """Open a connection, for ``release`` to close; without options the memory limit stays as it is."""
        with self._lock:
            if self._instance is None:
                self._instance = Instance(options or Options())
            elif options is not None:
                self._instance.limit_memory(options)
            connection = self._instance.connection()
            self.open += 1
            return connection

    def release(self, connection: Any) -> None:
        """Close a connection of this process."""
        try:
            connection.close()
        finally:
            # A Ctrl-C that comes while it closes leaves no count behind.
            with self._lock:
                self.open -= 1

    def restart_if_broken(self) -> None:
        """End an instance that an error has broken: the next query starts another."""
        with self._lock:
            if self._instance is not None and not self._instance.is_usable():
                self._end()

    def before_fork(self) -> None:
        """End it, unless queries run: then it goes on in the parent."""
        self._lock.acquire()
        if self.open == 0:
            self._end()

    def after_fork(self) -> None:
        """Have the child start an instance of its own when it needs one."""
        if self._instance is not None:
            self._instance.abandon()
            self._instance = None
        self.open = 0
        self._lock.release()

    def _end(self) -> None:
        instance, self._instance = self._instance, None
        if instance is not None:
            instance.close()


class _SpareInstances(_Kept):
    """Instances whose sessions have ended and left them as they were: to start one takes tens of milliseconds."""

    def __init__(self) -> None:
        super().__init__()
        self._instances: list[Instance] = []
        self._most = _SPARE

    def take(self) -> Instance:
        """Give one, or start one."""
        with self._lock:
            instance = self._instances.pop() if self._instances else None
        if instance is None:
            return Instance(Options())
        instance.limit_memory(Options())
        return instance

    def give(self, instance: Instance) -> None:
        """Keep one whose connections are closed and whose settings are as they were, or end it."""
        is_kept = False
        if instance.is_renewed():
            with self._lock:
                is_kept = len(self._instances) < self._most
                self._instances += [instance] * is_kept
        if not is_kept:
            instance.close()

    @contextlib.contextmanager
    def connection(self) -> Iterator[Any]:
        """Give a connection to one with no tables, which is made like new in the end."""
        instance = self.take()
        connection = instance.connection()
        try:
            yield connection
        finally:
            connection.close()
            self.give(instance)

    def close(self) -> None:
        """End them, with the process, and keep no more."""
        self._most = 0
        super().close()

    def _end(self) -> None:
        while self._instances:
            self._instances.pop().close()


def _shown_bytes(size: str) -> int:
    number, unit = size.split()
    return int(float(number) * 1024 ** ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB").index(unit))


def abandon(connection: Any) -> None:
    """Leak a connection that was open at a fork: closing it in the child would wait for the parent's threads."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


shared, spare = _SharedInstance(), _SpareInstances()
# The last that is registered is called first: what uses the instance ends before it.
atexit.register(finish)
