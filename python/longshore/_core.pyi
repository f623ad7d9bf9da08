import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias, final

__all__ = [
    "CATALOGUES",
    "READ_OPTIONS",
    "SCHEMES",
    "SOURCE_OPTIONS",
    "Answers",
    "Array",
    "Arrival",
    "ArrowConnection",
    "Batch",
    "CancelHandle",
    "Column",
    "Connection",
    "Description",
    "EngineStream",
    "FlightServer",
    "Hold",
    "MySqlConnection",
    "Objects",
    "Plan",
    "Pool",
    "Port",
    "Reading",
    "Result",
    "Rows",
    "Schema",
    "SqliteConnection",
    "Store",
    "StoreScan",
    "StoreTable",
    "StoreTransaction",
    "Stream",
    "Table",
    "Target",
    "TrinoPages",
    "TypeCache",
    "TypeLookup",
    "__version__",
    "block",
    "check_available_for_thread",
    "codes",
    "copy",
    "csv_lines",
    "current",
    "describe",
    "file_texts",
    "first_bytes",
    "has_table",
    "json_lines",
    "memory_left",
    "mysql_columns",
    "mysql_new_table",
    "objects",
    "open_read",
    "open_result",
    "parameters",
    "partition",
    "postgresql_columns",
    "postgresql_copy",
    "postgresql_inlined",
    "search",
    "sql_places",
    "sql_statements",
    "sql_words",
    "statistics",
    "table_schema",
    "table_types",
    "tables",
    "temporary_schema",
    "texts",
    "trino_answer",
    "url_query",
    "url_settings",
    "user_line",
    "with_reserve",
    "write",
]

_Limit: TypeAlias = int | Literal["auto"] | None

CATALOGUES: dict[str, dict[str, str]]
SCHEMES: dict[str, str]
READ_OPTIONS: dict[str, tuple[list[str], str]]
SOURCE_OPTIONS: dict[str, tuple[list[str], str]]
__version__: str

@final
class Column:
    """One finished column of a whole result."""

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def data(self) -> Any: ...
    @property
    def masked(self) -> bool: ...
    @property
    def mask(self) -> Any: ...
    @property
    def labels(self) -> list[str] | None: ...
    @property
    def ordered(self) -> bool: ...
    @property
    def timezone(self) -> str | None: ...
    @property
    def text(self) -> bool: ...
    def no_mask(self) -> Any: ...

@final
class Target:
    """A database, and how to connect to it."""

    def __new__(
        cls,
        *,
        url: str | None,
        scheme: str,
        keywords: Mapping[str, str],
        password: Callable[[], str] | None,
        creates: bool = False,
    ) -> Self: ...

@final
class FlightServer:
    """A Flight SQL server that runs until it is stopped."""

    def __new__(
        cls,
        writers: Target | Callable[[], object] | None,
        readers: Callable[[], object] | None,
        *,
        host: str,
        port: int,
        tls: tuple[str, str, str | None] | None,
        users: str | None,
        insecure: bool,
        limits: object,
        log: bool,
    ) -> Self: ...
    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...
    @property
    def held(self) -> int: ...
    def stop(self) -> None: ...

def user_line(name: str, password: str, role: str) -> str: ...

@final
class Pool:
    """A bounded number of sessions that outlive their reads."""

    def __new__(cls, target: Target, *, size: int) -> Self: ...
    @property
    def in_use(self) -> int: ...
    @property
    def idle(self) -> int: ...
    def hold(self, sessions: int) -> Hold: ...
    def close(self) -> None: ...

@final
class Hold:
    """Sessions of a pool that this thread's further reads leave to it."""

    def release(self) -> None: ...

@final
class Connection:
    """One session for many statements."""

    def __new__(
        cls, target: Target, *, autocommit: bool, timeout: float | None, cancel_handle: CancelHandle | None = None
    ) -> Self: ...
    def execute(
        self, statement: str, params: object, *, timeout: float | None, cancel_handle: CancelHandle | None = None
    ) -> int | None: ...
    def run(
        self,
        statement: str,
        params: object,
        *,
        whole: bool,
        policy: dict[str, str] | None = None,
        cancel_handle: CancelHandle,
    ) -> Result: ...
    def execute_partitions(
        self,
        query: str,
        partition: Mapping[str, Any],
        *,
        lease: float,
        policy: Mapping[str, Any] | None = None,
        cancel_handle: CancelHandle,
    ) -> tuple[Schema, list[bytes]]: ...
    def read_partition(
        self, partition: bytes, *, policy: Mapping[str, Any] | None = None, cancel_handle: CancelHandle
    ) -> Result: ...
    def execute_many(self, statement: str, sets: Iterator[object], *, cancel_handle: CancelHandle) -> int | None: ...
    def another(self, *, cancel_handle: CancelHandle) -> Connection: ...
    @property
    def autocommit(self) -> bool: ...
    def set_autocommit(self, autocommit: bool) -> None: ...
    def execute_script(
        self, script: str, *, timeout: float | None, cancel_handle: CancelHandle | None = None
    ) -> None: ...
    def use_schema(self, schema: str, *, timeout: float | None, cancel_handle: CancelHandle) -> None: ...
    def commit(self, *, cancel_handle: CancelHandle | None = None) -> None: ...
    def rollback(self, *, cancel_handle: CancelHandle | None = None) -> None: ...
    def close(self) -> None: ...
    def cancel(self) -> None: ...
    @property
    def closed(self) -> bool: ...
    @property
    def in_transaction(self) -> bool | None: ...

@final
class Result:
    """A statement that has been sent: what it has done, or its rows."""

    @property
    def done(self) -> tuple[int | None, int | None] | None: ...
    @property
    def rows(self) -> int | None: ...
    @property
    def ended(self) -> bool: ...
    @property
    def fails_transaction(self) -> bool: ...
    def columns(self) -> list[tuple[str, str, str | None, bool]]: ...
    def fetch_one(self) -> tuple[Any, ...] | None: ...
    def fetch(self, most: int | None = None) -> list[tuple[Any, ...]]: ...
    def read_ahead(self, most: int) -> bool: ...
    def reading(self, form: Literal["arrow", "pandas", "polars", "stream"]) -> Reading: ...
    def close(self, *, undone: bool = False) -> None: ...

@final
class Plan:
    """Which column of a statement goes into which field of a dtype, and how."""

    @staticmethod
    def of(
        columns: Sequence[tuple[int, bool]],
        fields: Sequence[tuple[str, int, int, tuple[str, int] | None, Sequence[tuple[str, int, int]]]],
        size: int,
    ) -> Plan | int: ...
    def rows(self, expected: int) -> Rows: ...

@final
class Rows:
    """The rows of one result on their way into NumPy's memory."""

    @property
    def count(self) -> int: ...
    def failure(self) -> tuple[int | None, int, str, str] | None: ...
    def finish(self) -> tuple[Any, list[int]]: ...

@final
class Objects:
    """A column of Python objects, whose one Arrow type is found; ``values`` is a NumPy array of objects."""

    def __new__(cls, values: Any, name: str, *, nan_is_null: bool, as_text: bool) -> Self: ...
    def __arrow_c_schema__(self) -> object: ...
    def array(self, start: int, end: int) -> Array: ...

def block(
    kind: Literal["wide", "text", "bytes", "date", "us", "ns"],
    values: Any,
    lengths: Any,
    most: int,
    long: Callable[[int], bytes],
    place: tuple[str, str, int],
) -> Array:
    """Give a column of a block of rows that an ODBC driver has filled, of which each value has room for ``most`` bytes.

    ``long`` gives a longer one by its row. ``place`` is the column, its native type and the rows before.
    """

def csv_lines(of: object, delimiter: str, before: int) -> bytes:
    """Give the lines of a frame as CSV; ``before`` rows went before it."""

def json_lines(of: object, before: int) -> bytes:
    """Give the lines of a frame as JSON; ``before`` rows went before it."""

def file_texts(of: object, as_json: bool) -> list[list[str | None]]:
    """Give the texts of the first batch's columns, as CSV or JSON has them."""

def texts(values: Any, name: str, *, nan_is_null: bool, chunk: int) -> list[Array] | None:
    """Give a column of texts and what is missing as views, in arrays of ``chunk`` rows; None for every other column."""

def search(
    table: object, piece: str, place: Literal["whole", "start", "end", "anywhere"], *, threads: int | None = None
) -> Array | None:
    """Tell for each row of a table's one column whether its text has ``piece`` in its place; None for no texts."""

def codes(table: object, *, most: int, threads: int | None = None) -> list[Array] | None:
    """Give a table's one column as dictionaries of ``most`` texts at most, one a chunk; None where there are more."""

@final
class Array:
    """An array under the Arrow PyCapsule interface."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...
    def __len__(self) -> int: ...

@final
class Description:
    """A statement's description, in which asyncpg sees other types."""

    def __new__(cls, columns: Sequence[int], otherwise: int) -> Self: ...
    def message(self) -> bytes | None: ...

@final
class TypeCache:
    """The facts that a connection has been told of the catalogue."""

    def __new__(cls) -> Self: ...
    def forget(self) -> None: ...

@final
class TypeLookup:
    """The facts to be asked for before a statement's rows can be read."""

    def __new__(
        cls,
        *,
        statement: str,
        type_cache: TypeCache,
        binary_forms: bool,
        types: dict[str, Any],
        policy: Mapping[str, str],
        batch_rows: int,
        batch_bytes: int,
        memory_limit: _Limit,
    ) -> Self: ...
    def describe(self, description: bytes | None) -> None: ...
    def question(self) -> str | None: ...
    def answer(self, answers: Answers) -> None: ...
    def give_up(self) -> None: ...
    def binary(self) -> list[bool]: ...
    def arrival(self) -> Arrival: ...

@final
class Answers:
    """The rows of one lookup."""

    def __new__(cls) -> Self: ...

@final
class Arrival:
    """The rows of one result, on their way into Arrow's memory."""

    def finish(self, tag: str) -> Reading: ...
    def page_rows(self) -> int: ...
    def page(self, asked: int, tag: str | None) -> list[Batch]: ...

@final
class Port:
    """The buffer between a transport and asyncpg's protocol."""

    def __new__(cls, receive: Callable[[bytes], object]) -> Self: ...
    def get_buffer(self, sizehint: int) -> memoryview: ...
    def buffer_updated(self, nbytes: int) -> None: ...
    def keep(self, rows: Rows | Arrival | Answers) -> bool: ...
    def describe(self, description: Description) -> None: ...
    def keep_none(self) -> None: ...
    def close(self) -> None: ...

@final
class SqliteConnection:
    """A ``sqlite3.Connection`` of the caller's."""

    def __new__(cls, connection: object) -> Self: ...

@final
class MySqlConnection:
    """A client of MySQL's, by an object of ``longshore.sources``, whose socket the core speaks on."""

    def __new__(cls, client: object) -> Self: ...

@final
class ArrowConnection:
    """A session of ``longshore.sources`` over a driver's connection of the caller's."""

    def __new__(cls, session: object) -> Self: ...

@final
class CancelHandle:
    """Stops a read from any thread."""

    def __new__(cls) -> Self: ...
    def cancel(self) -> None: ...

@final
class Table:
    """A whole result under the Arrow PyCapsule interface, handed over once."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class EngineStream:
    """The stream of an engine that has its first rows."""

    def __new__(cls, capsule: object) -> Self: ...

@final
class Batch:
    """One record batch under the Arrow PyCapsule interface."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...
    def __arrow_c_schema__(self) -> object: ...
    @property
    def num_rows(self) -> int: ...
    @property
    def num_columns(self) -> int: ...

@final
class TrinoPages:
    """The columns of a result of Trino's, into which its pages are decoded."""

    def __new__(cls, columns: str) -> Self: ...
    @property
    def schema(self) -> Schema: ...
    def decode(self, body: bytes, start: int, end: int) -> Batch: ...

def sql_places(
    statement: str, dialect: Literal["postgresql", "duckdb", "sqlite", "standard", "clickhouse"]
) -> list[str]:
    """Give a statement in pieces, of which every second is a parameter's place: ``:name``, ``$1``, ``?``."""

def sql_statements(
    script: str, dialect: Literal["postgresql", "duckdb", "sqlite", "standard", "clickhouse"]
) -> list[str]:
    """Give the statements of a script, which semicolons part, without those that say nothing."""

def sql_words(statement: str, most: int) -> list[str]:
    """Give the first tokens of a statement in capitals, without comments and what opens parentheses."""

def url_query(query: str) -> list[tuple[str, str]]:
    """Give the settings behind a URL's question mark, in order."""

def url_settings(rest: str) -> list[tuple[str, str]]:
    """Give the parts of what follows a URL's scheme: user, password, host, port, database, and its settings."""

def trino_answer(body: bytes) -> tuple[str, tuple[int, int] | None]: ...

@final
class Schema:
    """A schema under the Arrow PyCapsule interface."""

    def __arrow_c_schema__(self) -> object: ...

@final
class Stream:
    """A result on its way, taken batch by batch or handed over as a whole."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...
    def schema(self) -> Schema: ...
    def next(self) -> Batch | None: ...
    def next_for_polars(self) -> Batch | None: ...
    def next_columns(
        self, *, backend: str, arrow_strings: bool, json_objects: bool, exact: Sequence[str] | None
    ) -> tuple[list[Column], int] | None: ...
    def cancel(self) -> None: ...
    def close(self) -> None: ...

_Report: TypeAlias = Callable[[int, int, int | None, bool], object]

@final
class Reading:
    """A result whose statement has been sent and whose rows have not been taken."""

    @property
    def serial(self) -> str | None: ...
    def columns(
        self,
        *,
        backend: str,
        arrow_strings: bool,
        json_objects: bool,
    ) -> tuple[list[Column], int]: ...
    def table(self, *, for_polars: bool) -> Table: ...
    def close(self) -> None: ...
    def stream(self) -> Stream: ...

def first_bytes(path: str) -> bytes | None:
    """Give the first 16 bytes of a file, and leave the locks that others of this process have on it; None for less."""

def describe(
    *,
    source: Target | Pool | Connection | SqliteConnection | MySqlConnection | ArrowConnection,
    queries: Sequence[str],
    params: object,
    types: Mapping[str, Any],
    policy: Mapping[str, str],
    timeout: float | None,
) -> Schema: ...
def open_read(
    *,
    source: Target | Pool | Connection | SqliteConnection | MySqlConnection | ArrowConnection,
    setup: Sequence[str],
    queries: Sequence[str],
    params: object,
    partition: Mapping[str, Any] | None,
    types: Mapping[str, Any],
    policy: Mapping[str, str],
    batch_rows: int,
    batch_bytes: int,
    memory_limit: _Limit,
    timeout: float | None,
    progress: _Report | None,
    cancel_handle: CancelHandle,
) -> Reading: ...
def parameters(
    *,
    source: Target | Pool | Connection | SqliteConnection | MySqlConnection | ArrowConnection,
    statement: str,
    timeout: float | None,
    cancel_handle: CancelHandle,
) -> Schema: ...
def table_schema(
    *,
    source: Target | Pool | Connection | SqliteConnection | MySqlConnection | ArrowConnection,
    schema: str | None,
    table: str,
    timeout: float | None,
    cancel_handle: CancelHandle,
) -> Schema: ...
def tables(
    *,
    source: Target | Pool | Connection | SqliteConnection | MySqlConnection | ArrowConnection,
    timeout: float | None,
    cancel_handle: CancelHandle,
) -> Reading: ...
def objects(
    source: Target | Pool | Connection | SqliteConnection | MySqlConnection | ArrowConnection,
    wait: Mapping[str, Any],
    *,
    depth: str,
    catalog: str | None,
    schema: str | None,
    table: str | None,
    table_types: Sequence[str] | None,
    column: str | None,
) -> Table: ...
def statistics(
    source: Target | Pool | Connection | SqliteConnection | MySqlConnection | ArrowConnection,
    wait: Mapping[str, Any],
    *,
    catalog: str | None,
    schema: str | None,
    table: str | None,
    approximate: bool,
) -> Table: ...
def current(
    source: Target | Pool | Connection | SqliteConnection | MySqlConnection | ArrowConnection, wait: Mapping[str, Any]
) -> tuple[str | None, str | None, str, str]: ...
def table_types(
    source: Target | Pool | Connection | SqliteConnection | MySqlConnection | ArrowConnection, wait: Mapping[str, Any]
) -> list[str]: ...
def has_table(
    source: Target | Pool | Connection | SqliteConnection | MySqlConnection | ArrowConnection,
    wait: Mapping[str, Any],
    schema: str | None,
    table: str,
) -> bool: ...
def temporary_schema(
    source: Target | Pool | Connection | SqliteConnection | MySqlConnection | ArrowConnection, wait: Mapping[str, Any]
) -> str: ...
def partition(
    *,
    source: Target | Pool | Connection | SqliteConnection | MySqlConnection | ArrowConnection,
    query: str,
    partition: Mapping[str, Any],
    timeout: float | None,
) -> list[str]: ...
def open_result(
    begun: EngineStream,
    *,
    policy: Mapping[str, str],
    labels: Sequence[Sequence[str]],
    memory_limit: _Limit,
    cancel: Callable[[], object],
    close: Callable[[], object] | None,
    failed: Callable[[], BaseException | None] | None,
    cancel_handle: CancelHandle,
) -> Reading: ...
def memory_left() -> int | None: ...
def check_available_for_thread() -> None: ...
def with_reserve(work: Callable[[], object]) -> None: ...
def write(
    frames: Iterator[object],
    *,
    into: Mapping[str, Any],
    timeout: float | None,
    progress: _Report | None,
    cancel_handle: CancelHandle,
) -> int: ...
def mysql_columns(of: object, version: str) -> list[tuple[str, str]]: ...
def mysql_new_table(
    of: object, schema: str | None, table: str, key: list[str], types: list[tuple[str, str]], version: str
) -> str: ...
def postgresql_columns(of: object) -> list[tuple[str, str]]: ...
def postgresql_inlined(statement: str, literals: list[str]) -> str: ...
def postgresql_copy(of: object, natives: list[tuple[int, int]]) -> tuple[str, bytes]: ...
def copy(
    reading: Reading,
    *,
    into: Mapping[str, Any],
    timeout: float | None,
    progress: _Report | None,
    cancel_handle: CancelHandle,
) -> int: ...

@final
class Store:
    """An embedded store that is open."""

    @staticmethod
    def open(
        path: str | os.PathLike[str], *, read_only: bool = False, makes: bool = True, timeout: float | None = None
    ) -> Store: ...
    @property
    def path(self) -> Path: ...
    @property
    def read_only(self) -> bool: ...
    def begin(self, *, version: int | None = None, at: int | None = None) -> StoreTransaction: ...
    def versions(self, table: str | None = None) -> list[tuple[int, int, str, str, int]]: ...
    def vacuum(self, older_than: int) -> tuple[int, int]: ...
    def check(self) -> list[str]: ...
    def close(self) -> None: ...

@final
class StoreTransaction:
    """A transaction of a store."""

    @property
    def version(self) -> int: ...
    def tables(self) -> list[str]: ...
    def table(self, name: str) -> StoreTable | None: ...
    def scan(
        self,
        name: str,
        columns: Sequence[str] | None = None,
        predicates: Sequence[tuple[str, str, Any]] | None = None,
        *,
        positions: bool = False,
        form: str = "stored",
        verified: bool = False,
    ) -> StoreScan: ...
    def files(self, name: str) -> list[Path]: ...
    def lock(self, name: str) -> None: ...
    def create(self, name: str, schema: object, key: Sequence[str], definition: str | None, replace: bool) -> None: ...
    def drop(self, name: str) -> None: ...
    def rename(self, name: str, to: str) -> None: ...
    def alter(
        self,
        name: str,
        fields: Sequence[tuple[str, str | None]],
        schema: object,
        key: Sequence[str],
        definition: str | None,
    ) -> None: ...
    def append(self, name: str, stream: object, operation: str = "append") -> int: ...
    def begin_append(self, name: str, schema: object) -> None: ...
    def push(self, stream: object) -> None: ...
    def end_append(self) -> int: ...
    def upsert(self, name: str, key: Sequence[str], stream: object) -> int: ...
    def delete(self, name: str, positions: object) -> int: ...
    def update(self, name: str, positions: object, stream: object) -> int: ...
    def truncate(self, name: str) -> int: ...
    def compact(self, name: str) -> None: ...
    def mark(self) -> int: ...
    def undo_to(self, mark: int) -> None: ...
    def cancel(self) -> None: ...
    def commit(self) -> int: ...
    def rollback(self) -> None: ...

@final
class StoreTable:
    """A table of a transaction."""

    @property
    def name(self) -> str: ...
    @property
    def schema(self) -> Schema: ...
    @property
    def key(self) -> list[str]: ...
    @property
    def definition(self) -> str | None: ...
    @property
    def rows(self) -> int: ...
    @property
    def chunks(self) -> int: ...
    def is_same(self, other: StoreTable) -> bool: ...

@final
class StoreScan:
    """The rows of a table of a store, handed over once."""

    @property
    def schema(self) -> Schema: ...
    @property
    def chunks(self) -> int: ...
    @property
    def rows(self) -> int: ...
    def reading(
        self, *, policy: Mapping[str, Any], memory_limit: int | str | None = None, cancel_handle: CancelHandle
    ) -> Reading: ...
    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...
