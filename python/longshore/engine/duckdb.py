"""DuckDB: its instances in this process, and what they are told before they run anything."""

import atexit
import os
import secrets
import shutil
import tempfile
import threading
from pathlib import Path
from typing import Any

from longshore.frames.libraries import missing, require_version
from longshore.options import Options

try:
    import duckdb
except ImportError as error:
    raise missing(library="duckdb", extra="sql", purpose="longshore.sql") from error

require_version("duckdb", duckdb.__version__, (1, 2))

__all__ = ["Instance", "duckdb", "shared"]


class Instance:
    """One DuckDB of its own: its settings, its memory, and the directory that it spills to."""

    def __init__(self, options: Options) -> None:
        """Start it: a matter of milliseconds, which is why one is shared."""
        self._spill = Path(tempfile.gettempdir()) / f"longshore-{os.getpid()}-{secrets.token_hex(8)}"
        # Its own search for Python variables would find others than ours.
        settings: dict[str, Any] = {"python_enable_replacements": False, "temp_directory": str(self._spill)}
        if options.threads is not None:
            settings["threads"] = options.threads
        if (limit := options.memory_limit_bytes) is not None:
            settings["memory_limit"] = f"{limit}B"
        self._root = duckdb.connect(":memory:", config=settings)
        # As an argument of connect it would need an extension that is not loaded yet.
        self._root.execute("SET GLOBAL TimeZone = 'UTC'")

    def connection(self) -> Any:
        """Open one more connection, which sees no other's registered tables."""
        return self._root.cursor()

    def close(self) -> None:
        """End it, and leave no file behind."""
        self._root.close()
        shutil.rmtree(self._spill, ignore_errors=True)


class _Shared:
    """The instance of all queries that change nothing and ask for no settings."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._instance: Instance | None = None
        # A forked child has no threads of DuckDB's: it may neither use nor end what it inherits.
        self._inherited: list[Instance] = []

    def get(self) -> Instance:
        with self._lock:
            if self._instance is None:
                self._instance = Instance(Options())
            return self._instance

    def forked(self) -> None:
        self._lock = threading.Lock()
        if self._instance is not None:
            self._inherited.append(self._instance)
            self._instance = None

    def close(self) -> None:
        with self._lock:
            if self._instance is not None:
                self._instance.close()
                self._instance = None


_shared = _Shared()
shared = _shared.get
atexit.register(_shared.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_shared.forked)
