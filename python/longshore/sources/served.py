"""The sources that ``serve`` puts before strangers: DuckDB files, folders of Parquet and stores, and nothing else.

The engine runs with external access off and its configuration locked. What that leaves open, its own file and its
spill files, and pointers that a function would take from a number, is refused by the statement's type and names.
"""

from pathlib import Path
from typing import Any

from longshore import _core
from longshore.duckdb.failures import translate_errors
from longshore.duckdb.instance import MAKING_ROWS, Instance, engine
from longshore.duckdb.parameter_types import typed_nulls
from longshore.duckdb.parameters import by_parameter_name
from longshore.duckdb.statements import tokens
from longshore.errors import InterfaceError, NotSupportedError, ProgrammingError
from longshore.options import Options
from longshore.sources import duckdb, store
from longshore.sources.dialects import literal
from longshore.sources.session import Result
from longshore.texts import quoted_name

#: The engine's types of statements that read, and those that change what is served.
_READING = frozenset({"SELECT", "EXPLAIN"})
_WRITING = frozenset(
    {"INSERT", "UPDATE", "DELETE", "MERGE_INTO", "CREATE", "CREATE_FUNC", "DROP", "ALTER", "ANALYZE", "VACUUM"}
    | {"TRANSACTION", "SET", "VARIABLE_SET"}
)
#: Functions that reach nothing but what is served.
_TABLE_FUNCTIONS = (
    MAKING_ROWS
    | {"pragma_version", "pragma_table_info", "pragma_show", "duckdb_columns", "duckdb_constraints", "duckdb_functions"}
    | {"duckdb_indexes", "duckdb_keywords", "duckdb_schemas", "duckdb_sequences", "duckdb_tables", "duckdb_types"}
    | {"duckdb_views"}
)
#: The functions and views that tell settings and paths.
_REFUSED_NAMES = frozenset({"current_setting", "getenv", "pg_settings", "pragma_database_list", "duckdb_databases"})
#: Names that are a column's or a table's as well: refused where they are called.
_COMMON_PREFIXES = ("duckdb_", "pragma_")
_LOCK = ("SET GLOBAL enable_external_access = false", "SET GLOBAL lock_configuration = true")
_SETTINGS: dict[str, Any] = {
    "python_enable_replacements": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
    # Without it, integers of 128 bits wrap, times lose their offset, and bits cannot be told from bytes.
    "arrow_lossless_conversion": True,
}

_READS = "SELECT and EXPLAIN do; a writer's role is in the file of users"
_SERVED = "SELECT, INSERT, UPDATE, DELETE, MERGE, CREATE, ALTER and DROP over the tables that are served do"
_KNOWN = "PREPARE is the protocol's: prepare the statement by the client"


class Guard:
    """Refuses the statements that would reach more than what is served."""

    def __init__(self, connection: Any, *, reads: bool) -> None:
        """Ask the engine for its functions: those that are not known to be harmless are refused."""
        query = "SELECT DISTINCT function_name FROM duckdb_functions() WHERE function_type = 'table'"
        functions = {name for (name,) in connection.execute(query).fetchall()}
        self._refused = (functions - _TABLE_FUNCTIONS) | _REFUSED_NAMES
        self._types = _READING if reads else _READING | _WRITING
        self._reads = reads

    def check(self, statement: Any) -> None:
        """Raise the error of a statement that is refused."""
        kind = statement.type.name
        words = [each.text.strip('"').replace('""', '"').lower() for each in tokens(statement.query)]
        if kind in {"PREPARE", "EXECUTE"}:
            raise NotSupportedError(f"{kind} is not served", hint=_KNOWN, sqlstate="42501")
        is_run = kind == "EXPLAIN" and "analyze" in words[:4] and not store.CHANGING.isdisjoint(words)
        if kind not in self._types or is_run:
            if is_run or (self._reads and kind in _WRITING):
                raise ProgrammingError("this user only reads", hint=_READS, sqlstate="25006")
            name = kind.replace("_", " ")
            raise ProgrammingError(f"{name} is not served", hint=_SERVED, sqlstate="42501")
        for word, after in zip(words, [*words[1:], ""], strict=True):
            if word in self._refused and (after == "(" or word.startswith(_COMMON_PREFIXES) or word in _REFUSED_NAMES):
                message = f"{word} is not served: it would reach more than the tables"
                raise ProgrammingError(message, hint=_SERVED, sqlstate="42501")


class _Guarded(duckdb.Session):
    """A session whose statements are looked at first."""

    guard: Guard

    def _lossless(self, connection: Any) -> Any:
        # The configuration has it, and is locked.
        return connection

    def _prepare(self, query: str, params: Any) -> tuple[Any, Any]:
        statement, values = super()._prepare(query, params)
        if hasattr(statement, "type"):
            self.guard.check(statement)
        return statement, values

    def describe(self, query: str, params: Any) -> Result:
        """Describe a query; what is none leaves the transaction as it is."""
        statement, _ = self._check(query, params)
        if getattr(statement, "type", None) is None or statement.type.name != "SELECT":
            raise ProgrammingError("the statement returns no rows, and was not run")
        return super().describe(query, params)

    def _schema(self, statement: Any, params: Any) -> Result | None:
        return super()._schema(
            statement, params or by_parameter_name(dict.fromkeys(statement.named_parameters)) or None
        )

    def _follow(self) -> None:
        """See the tables as they are now."""

    def parameters(self, statement: str, params: Any) -> Result:
        """Describe the parameters in their order; one that the engine resolves no type of is NULL."""
        prepared, _ = self._check(statement, params)
        names = sorted(
            prepared.named_parameters, key=lambda name: (not name.isdigit(), int(name) if name.isdigit() else 0)
        )
        if not names:
            raise NotSupportedError("the statement has no parameters")
        with self.running():
            self._follow()
            nulls = typed_nulls(self.connection, prepared.query, names)
            columns = ", ".join(f"{null} AS {quoted_name(name)}" for null, name in zip(nulls, names, strict=True))
            return duckdb.result_of(self.connection.sql(f"SELECT {columns}").limit(0), 1)


class _Session(_Guarded):
    """A session of a database that all sessions share."""

    def __init__(self, root: Any, guard: Guard) -> None:
        self._root, self.guard = root, guard
        super().__init__(root.cursor())

    def _another(self) -> Any:
        return self._root.cursor()


class ServedDatabase:
    """A DuckDB file, or views over the files of a folder."""

    def __init__(self, root: Any, *, only_reads: bool) -> None:
        """Lock the engine of a connection."""
        with translate_errors():
            # The instance of a file is another server's, too.
            if not root.execute("SELECT current_setting('lock_configuration')").fetchall()[0][0]:
                # It would print on the standard output of whoever runs Python interactively; cursors inherit it.
                root.execute("SET SESSION enable_progress_bar = false")
                for setting in _LOCK:
                    root.execute(setting)
        self._root = root
        self._guards = {reads: Guard(root, reads=reads or only_reads) for reads in (False, True)}

    def session(self, *, reads: bool) -> duckdb.Session:
        """Open a session."""
        return _Session(self._root, self._guards[reads])

    def close(self) -> None:
        """End the engine."""
        self._root.close()


class _StoreSession(_Guarded, store.Session):
    """A session of a store, with an engine of its own."""

    def __init__(self, opened: "_core.Store", options: Options, *, reads: bool) -> None:
        self._options, self._reads = options, reads
        super().__init__(opened, is_shared=True)

    def _start(self) -> Instance:
        instance = Instance(self._options)
        instance.lock(_LOCK)
        self.guard = Guard(instance.connection(), reads=self._reads)
        return instance

    def _leave(self, instance: Instance) -> None:
        instance.close()

    def _follow(self) -> None:
        self.within(self.mirror.follow)


class ServedStore:
    """A store."""

    def __init__(self, path: str, options: Options) -> None:
        """Open the store in a directory."""
        self._store = _core.Store.open(path, read_only=False, timeout=None)
        self._options = options

    def session(self, *, reads: bool) -> duckdb.Session:
        """Open a session."""
        return _StoreSession(self._store, self._options, reads=reads)

    def close(self) -> None:
        """Close the store."""
        self._store.close()


#: The served database, by an engine of this process.
Served = ServedDatabase | ServedStore


def database(path: str, options: Options) -> ServedDatabase:
    """Serve a DuckDB file."""
    if not Path(path).is_file():
        raise InterfaceError(f"there is no file {path!r}")
    with translate_errors():
        return ServedDatabase(engine().connect(path, config={**_SETTINGS, **_limits(options)}), only_reads=False)


def folder(path: Path, options: Options) -> ServedDatabase:
    """Serve the Parquet files of a folder, each a table, and the files of a folder within it as one."""
    tables = {file.stem: [file] for file in sorted(path.glob("*.parquet"))}
    tables |= {each.name: files for each in sorted(path.iterdir()) if (files := sorted(each.rglob("*.parquet")))}
    if not tables:
        raise InterfaceError(f"there is no Parquet file in {str(path)!r}")
    with translate_errors():
        root = engine().connect(":memory:", config={**_SETTINGS, **_limits(options)})
        for name, files in tables.items():
            listed = ", ".join(literal(str(file.resolve())) for file in files)
            root.execute(f"CREATE VIEW {quoted_name(name)} AS FROM read_parquet([{listed}], union_by_name = true)")
        allowed = ", ".join(literal(str(file.resolve())) for files in tables.values() for file in files)
        root.execute(f"SET GLOBAL allowed_paths = [{allowed}]")
    return ServedDatabase(root, only_reads=True)


def _limits(options: Options) -> dict[str, Any]:
    limit = options.memory_limit_bytes
    return {} if limit is None else {"memory_limit": f"{limit}B"}
