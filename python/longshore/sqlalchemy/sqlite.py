"""``sqlite+longshore``: the dialect of SQLite's files."""

from pathlib import Path
from typing import Any

from sqlalchemy import URL, pool
from sqlalchemy.dialects.sqlite.base import SQLiteDialect as _SQLiteBase
from sqlalchemy.dialects.sqlite.base import SQLiteExecutionContext
from sqlalchemy.exc import ArgumentError

from longshore.sqlalchemy.dialect import MODULE, Context, Dialect


class _SQLiteContext(Context, SQLiteExecutionContext):
    # SQLAlchemy's own types read what is stored.
    options = {"sqlite_types": "stored"}


class SQLiteDialect(Dialect, _SQLiteBase):
    """``sqlite+longshore``."""

    supports_statement_cache = True
    returns_native_bytes = True
    execution_ctx_cls = _SQLiteContext

    @classmethod
    def get_pool_class(cls, url: URL) -> type[pool.Pool]:
        """Give a pool: each thread has one connection of its own to a database in memory, which is another one."""
        return pool.QueuePool if cls._is_url_file_db(url) else pool.SingletonThreadPool

    @classmethod
    def _is_url_file_db(cls, url: URL) -> bool:
        return url.database not in {None, "", ":memory:"} and url.query.get("mode") != "memory"

    def create_connect_args(self, url: URL) -> tuple[list[Any], dict[str, Any]]:
        """Give the keywords of ``longshore.connect``; a file that is not there is made, as other drivers do."""
        if url.username or url.password or url.host or url.port:
            forms = "sqlite+longshore:///relative/path.db, or four slashes before an absolute path"
            raise ArgumentError(f"a URL of SQLite has no user and no host: write {forms}")
        none, place = super().create_connect_args(url)
        if self._is_url_file_db(url):
            # The same file after the program has changed its folder.
            place["database"] = str(Path.cwd() / place["database"])
            if "immutable" not in place:
                place.setdefault("mode", "rwc")
        return none, place

    def _get_server_version_info(self, connection: Any) -> tuple[int, ...]:
        return MODULE.sqlite_version_info
