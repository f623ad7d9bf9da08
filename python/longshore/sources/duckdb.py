"""DuckDB: a file, a database in memory, or a ``DuckDBPyConnection``."""

import importlib.util
import os
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qsl, unquote
from weakref import WeakKeyDictionary

from longshore.errors import Error, InterfaceError, NotSupportedError, OperationalError, ProgrammingError
from longshore.frames import missing
from longshore.sources import Result
from longshore.sources.loading import TableLoader
from longshore.sources.session import DriverSession

if importlib.util.find_spec("duckdb") is None:
    raise missing(library="duckdb", extra="duckdb", purpose="a DuckDB database")

from longshore.duckdb.failures import translate_errors
from longshore.duckdb.instance import duckdb
from longshore.duckdb.parameters import engine_params, with_dollars
from longshore.duckdb.result import Rebatched, bounded_rows, labels

_ROWS = "read_sql takes statements with a result: SELECT, VALUES, DESCRIBE, or INSERT ... RETURNING"
_ONE = "several statements are Connection.execute_script's; before a query they go into pre_execution_query"
_OTHER = "all connections of a process to one file share an instance: close those with other settings, or use theirs"
_KEEP = "give a connection that stays open: longshore.connect or duckdb.connect"
_FORKED = 'close it before the fork, or start new processes: multiprocessing\'s "spawn"'
_MAKE = "write_sql makes one; so does duckdb.connect"
#: Without it, integers of 128 bits wrap, times lose their offset, and bits cannot be told from bytes.
_LOSSLESS = "SET SESSION arrow_lossless_conversion = true"
#: Types whose text has names of the user's.
_NESTED = {"enum", "list", "array", "struct", "map", "union"}


def connect(rest: str, keywords: Mapping[str, str], *, creates: bool) -> "Session":
    """Open the file after ``duckdb://``; settings are DuckDB's own, such as ``read_only`` and ``threads``."""
    path, _, query = rest.partition("?")
    settings = {**dict(parse_qsl(query, keep_blank_values=True)), **keywords}
    path = settings.pop("database", unquote(path.removeprefix("/"))) or ":memory:"
    access = settings.pop("read_only", "false").lower()
    if access not in {"0", "1", "false", "true"}:
        message = f"read_only is true or false, not {access!r}"
        raise InterfaceError(message)
    if path == ":memory:" and creates:
        message = f"the database is in memory: what is written would be gone when the call ends\nHint: {_KEEP}"
        raise InterfaceError(message, hint=_KEEP)
    if path != ":memory:" and not creates and not Path(path).exists():
        message = f"there is no file {path!r}\nHint: {_MAKE}"
        raise OperationalError(message, hint=_MAKE)
    if os.path.realpath(path) in _inherited:
        message = f"the file {path!r} was open when this process was forked from another\nHint: {_FORKED}"
        raise InterfaceError(message, hint=_FORKED)
    with translate_errors():
        try:
            session = Session(_opened(path, read_only=access in {"1", "true"}, settings=settings), is_own=True)
        except duckdb.ConnectionException as error:
            if "different configuration" not in str(error):
                raise
            message = f"{path!r} is open in this process with other settings\nHint: {_OTHER}"
            raise InterfaceError(message, hint=_OTHER) from error
    if path != ":memory:":
        _files[session] = os.path.realpath(path)
    return session


def _opened(path: str, *, read_only: bool, settings: Mapping[str, str]) -> Any:
    """Open the file, once an instance that is just ending has ended."""
    for _ in range(200):
        try:
            return duckdb.connect(path, read_only=read_only, config=dict(settings))
        except duckdb.Error as error:
            if "Unique file handle conflict" not in str(error):
                raise
            time.sleep(0.01)
    return duckdb.connect(path, read_only=read_only, config=dict(settings))


def adopt(connection: Any) -> "Session":
    """Give a session over a connection of the caller's, which stays open."""
    return Session(connection, is_own=False)


class Session(DriverSession):
    """One connection."""

    not_split = "DuckDB reads a query in parallel inside"
    #: The query that lists what is not the system's own.
    tables = (
        "SELECT table_catalog AS catalog_name, table_schema AS db_schema_name, table_name, "
        "CASE table_type WHEN 'VIEW' THEN 'view' ELSE 'table' END AS table_type "
        "FROM information_schema.tables ORDER BY 1, 2, 3"
    )
    not_prepared = "DuckDB's Python package does not tell their types"

    def __init__(self, connection: Any, *, is_own: bool) -> None:
        """Keep the connection; the caller's own gets its setting back at the end."""
        self._connection, self._is_own = connection, is_own
        self.transaction = "none" if is_own else self._state()
        self._lossless = is_own or self.rows("SELECT current_setting('arrow_lossless_conversion')")[0][0]
        connection.execute(_LOSSLESS)

    def _state(self) -> Literal["none", "open", "failed"]:
        try:
            one, other = (self._connection.execute("SELECT txid_current()").fetchall() for _ in range(2))
        except duckdb.TransactionException:
            return "failed"
        return "open" if one == other else "none"

    def translated(self) -> AbstractContextManager[None]:
        """Raise Longshore's exceptions for DuckDB's."""
        return translate_errors()

    def _begin(self) -> None:
        self._connection.begin()

    def _end(self, how: Literal["commit", "rollback"]) -> None:
        getattr(self._connection, how)()

    def _statement(self, text: str, params: Any) -> tuple[Any, Any]:
        values = engine_params(params)
        with translate_errors():
            statements = self._connection.extract_statements(with_dollars(text, values))
        if len(statements) != 1:
            message = "the query holds no statement" if not statements else f"more than one statement\nHint: {_ONE}"
            raise ProgrammingError(message, hint=_ONE if statements else None)
        return statements[0], values

    def read(self, query: str, params: Any, rows: int) -> Result:
        """Bind a query; its rows come as they are asked for."""
        statement, values = self._statement(query, params)
        with self.running():
            relation = self._connection.sql(statement, params=values)
        # Of a statement that only changes something, the engine gives a count.
        if relation is None or (statement.type.name != "SELECT" and relation.columns in (["Count"], ["Success"])):
            message = f"the statement returns no rows, and was run\nHint: {_ROWS}"
            raise ProgrammingError(message, hint=_ROWS)
        return self._result(relation, rows)

    def describe(self, query: str, params: Any, rows: int) -> Result:
        """Bind a query, and take none of its rows."""
        statement, values = self._statement(query, params)
        if statement.type.name != "SELECT":
            message = "only a SELECT is described without running it"
            raise NotSupportedError(message)
        with self.running():
            return self._result(self._connection.sql(statement, params=values).limit(0), rows)

    def _result(self, relation: Any, rows: int) -> Result:
        types = relation.types
        native = [str(kind) if kind.id in _NESTED else str(kind).lower() for kind in types]
        names = [each for kind in types for each in labels(kind)]
        return Rebatched(relation, min(rows, bounded_rows(types) or rows)), native, names

    def execute(self, query: str, params: Any = None) -> int | None:
        """Run one statement."""
        statement, values = self._statement(query, params)
        with self.running():
            self._connection.execute(statement, values)
            count = self._connection.rowcount
            if statement.type.name == "SELECT":
                count = sum(map(len, iter(lambda: self._connection.fetchmany(10_000), [])))
        if statement.type.name == "TRANSACTION":
            begins = statement.query.lstrip()[:5].upper() in {"BEGIN", "START"}
            self.transaction = "open" if begins else "none"
        return None if count < 0 else int(count)

    def execute_script(self, script: str) -> None:
        """Run several statements."""
        with translate_errors():
            statements = self._connection.extract_statements(script)
        for at, statement in enumerate(statements, 1):
            try:
                self.execute(statement.query)
            except Error as error:
                error.args = (f"statement {at} of the script: {error}",)
                raise

    def rows(self, query: str, params: Any = None) -> list[tuple[Any, ...]]:
        """Give the rows of a query as objects."""
        with self.running():
            rows: list[tuple[Any, ...]] = self._connection.execute(query, params).fetchall()
        return rows

    def register(self, name: str, frame: object) -> None:
        """Make an object that hands an Arrow stream over a table of this name."""
        with self.running():
            self._connection.register(name, frame)

    def load(self, **load: Any) -> TableLoader:
        """Begin to write."""
        return TableLoader(self, **load)

    def reset(self) -> None:
        """Go on with another connection to the same instance."""
        before, self._connection = self._connection, self._connection.cursor()
        before.close()
        self.transaction = "none"
        self._connection.execute(_LOSSLESS)

    def cancel(self) -> None:
        """Stop what runs."""
        self._connection.interrupt()

    def close(self) -> None:
        """Close it, or give the caller's own its setting back."""
        if self._is_own:
            self._connection.close()
            _files.pop(self, None)
        elif not self._lossless:
            self._connection.execute("SET SESSION arrow_lossless_conversion = false")


#: The file of each session, and those that were open at a fork: their instances' threads are in the parent.
_files: WeakKeyDictionary[Session, str] = WeakKeyDictionary()
_inherited: set[str] = set()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: _inherited.update(_files.values()))
