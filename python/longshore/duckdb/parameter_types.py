"""The types of a statement's parameters, which DuckDB's C API tells, and its Python package does not.

The C API opens no database that Python has open. So a statement is prepared in an empty one, which has its tables.
"""

import ctypes
import os
import threading
from collections.abc import Iterator, Sequence
from ctypes import byref, c_char_p, c_int, c_uint8, c_uint64, c_void_p
from functools import cache
from typing import Any

import _duckdb

from longshore.duckdb.statements import names_in
from longshore.errors import NotSupportedError
from longshore.frames.pushdown import fold_name
from longshore.texts import quoted_name

_COLUMNS = """SELECT schema_name, table_name, column_name, data_type FROM duckdb_columns()
WHERE database_name = current_database() AND NOT internal ORDER BY schema_name, table_name, column_index"""
_KEYS = """SELECT schema_name, table_name, constraint_text FROM duckdb_constraints()
WHERE database_name = current_database() AND constraint_type IN ('PRIMARY KEY', 'UNIQUE')"""

#: The type told for each ``duckdb_type``. Apache's JDBC driver cuts a number to its type without a word, and writes
#: milliseconds in whatever unit the type has: so numbers are told as wide, timestamps in milliseconds, and times not.
_TOLD = {
    1: "BOOLEAN",
    **dict.fromkeys(range(2, 10), "BIGINT"),
    10: "DOUBLE",
    11: "DOUBLE",
    12: "TIMESTAMP_MS",
    13: "DATE",
    16: "DECIMAL(38, 0)",
    17: "VARCHAR",
    18: "BLOB",
    20: "TIMESTAMP_MS",
    21: "TIMESTAMP_MS",
    22: "TIMESTAMP_MS",
    23: "VARCHAR",
    27: "VARCHAR",
}
_DECIMAL = 19


def typed_nulls(connection: Any, statement: str, names: Sequence[str]) -> list[str]:
    """Give a NULL of its type for each parameter of a statement, or a plain one where the engine resolves no type."""
    definitions = [*_definitions(connection, names_in(statement))]
    found = _scratch(os.getpid()).types(statement, definitions)
    return [f"NULL::{found[name]}" if name in found else "NULL" for name in names]


def _definitions(connection: Any, named: set[str]) -> Iterator[str]:
    """Give the statements that make empty tables of those that a statement may name; views are tables, too."""
    tables: dict[tuple[str, str], list[str]] = {}
    for schema, table, column, kind in connection.execute(_COLUMNS).fetchall():
        if fold_name(table) in named:
            tables.setdefault((schema, table), []).append(f"{quoted_name(column)} {kind}")
    for schema, table, key in connection.execute(_KEYS).fetchall():
        if (schema, table) in tables:
            tables[schema, table].append(key)
    for (schema, table), parts in tables.items():
        yield f"CREATE SCHEMA IF NOT EXISTS {quoted_name(schema)}"
        yield f"CREATE TABLE {quoted_name(schema)}.{quoted_name(table)} ({', '.join(parts)})"


@cache
def c_api() -> Any:
    """Give the functions of the library that is loaded already."""
    library = ctypes.CDLL(_duckdb.__file__)
    for name, result, arguments in (
        ("library_version", c_char_p, []),
        ("open", c_int, [c_char_p, c_void_p]),
        ("connect", c_int, [c_void_p, c_void_p]),
        ("query", c_int, [c_void_p, c_char_p, c_void_p]),
        ("prepare", c_int, [c_void_p, c_char_p, c_void_p]),
        ("nparams", c_uint64, [c_void_p]),
        ("parameter_name", c_void_p, [c_void_p, c_uint64]),
        ("param_type", c_int, [c_void_p, c_uint64]),
        ("param_logical_type", c_void_p, [c_void_p, c_uint64]),
        ("decimal_width", c_uint8, [c_void_p]),
        ("decimal_scale", c_uint8, [c_void_p]),
        ("destroy_logical_type", None, [c_void_p]),
        ("destroy_prepare", None, [c_void_p]),
        ("free", None, [c_void_p]),
    ):
        function = getattr(library, f"duckdb_{name}")
        function.restype, function.argtypes = result, arguments
    if library.duckdb_library_version().decode() != f"v{_duckdb.__version__}":
        message = "DuckDB's library has another version than its package, and may name its types otherwise"
        raise NotSupportedError(message)
    return library


class _Scratch:
    """An empty database of the C API's."""

    def __init__(self) -> None:
        """Open it, which takes milliseconds: that is why one is kept."""
        self._library, self._lock = c_api(), threading.Lock()
        database, self._connection = c_void_p(), c_void_p()
        library = self._library
        if library.duckdb_open(None, byref(database)) or library.duckdb_connect(database, byref(self._connection)):
            raise MemoryError
        # To be prepared, a statement looks at the files that it names.
        for setting in ("enable_external_access = false", "threads = 1"):
            self._run(f"SET {setting}")

    def _run(self, statement: str) -> None:
        self._library.duckdb_query(self._connection, statement.encode(), None)

    def types(self, statement: str, definitions: Sequence[str]) -> dict[str, str]:
        """Give the types of the parameters of a statement over these tables; none where it cannot be prepared."""
        with self._lock:
            self._run("BEGIN")
            try:
                for definition in definitions:
                    self._run(definition)
                return self._types(statement)
            finally:
                self._run("ROLLBACK")

    def _types(self, statement: str) -> dict[str, str]:
        library, prepared = self._library, c_void_p()
        try:
            if library.duckdb_prepare(self._connection, statement.encode(), byref(prepared)):
                return {}
            places = range(1, library.duckdb_nparams(prepared) + 1)
            types = {self._name(prepared, at): self._type(prepared, at) for at in places}
            return {name: kind for name, kind in types.items() if kind is not None}
        finally:
            library.duckdb_destroy_prepare(byref(prepared))

    def _name(self, prepared: c_void_p, at: int) -> str:
        name = self._library.duckdb_parameter_name(prepared, at)
        try:
            return ctypes.string_at(name).decode()
        finally:
            self._library.duckdb_free(name)

    def _type(self, prepared: c_void_p, at: int) -> str | None:
        kind = self._library.duckdb_param_type(prepared, at)
        if kind != _DECIMAL:
            return _TOLD.get(kind)
        exact = c_void_p(self._library.duckdb_param_logical_type(prepared, at))
        try:
            width, scale = (getattr(self._library, f"duckdb_decimal_{part}")(exact) for part in ("width", "scale"))
        finally:
            self._library.duckdb_destroy_logical_type(byref(exact))
        return f"DECIMAL({width}, {scale})"


@cache
def _scratch(_process: int) -> _Scratch:
    return _Scratch()
