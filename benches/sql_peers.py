"""The engines that are compared: each runs SQL over what it is given, and returns a DataFrame."""

import importlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Run = Callable[[str, dict[str, Any]], Any]


@dataclass(frozen=True)
class Engine:
    """An engine, what it imports when it runs, and how it runs a query over frames by their names."""

    name: str
    modules: tuple[str, ...]
    export: Callable[[Path, str, int | None], Any]
    """Columns of a Parquet file, and the first rows of it or all."""
    run: Run | None = None
    """None for a library without SQL."""

    def prepare(self) -> None:
        """Import what the engine needs, so that it belongs to no measurement."""
        for module in self.modules:
            importlib.import_module(module)


def _select(columns: str, source: str, rows: int | None) -> str:
    return f"SELECT {columns} FROM {source}" + (f" LIMIT {rows}" if rows else "")


def _longshore(frame: str) -> Engine:
    def run(query: str, tables: dict[str, Any]) -> Any:
        import longshore

        return longshore.sql(query, return_type=frame, **tables)

    def export(file: Path, columns: str, rows: int | None) -> Any:
        return run(_select(columns, f"'{file}'", rows), {})

    return Engine(f"longshore, {frame}", ("longshore", "duckdb", "pandas", "pyarrow"), export, run)


def _duckdb(method: str) -> Engine:
    def run(query: str, tables: dict[str, Any]) -> Any:
        import duckdb

        # The connection that the module keeps: a new one would cost more than a small query.
        for name, table in tables.items():
            duckdb.register(name, table)
        return getattr(duckdb.sql(query), method)()

    def export(file: Path, columns: str, rows: int | None) -> Any:
        return run(_select(columns, f"'{file}'", rows), {})

    return Engine(f"DuckDB .{method}()", ("duckdb", "pandas", "pyarrow"), export, run)


def _chdb(query: str, tables: dict[str, Any]) -> Any:
    chdb = importlib.import_module("chdb")
    for name in tables:
        query = re.sub(rf"\b(FROM|JOIN) {name}\b", rf"\1 Python({name}) AS {name}", query)
    # It looks for variables of its callers.
    locals_ = dict(tables)
    return eval("query_of(text, 'DataFrame')", {"query_of": chdb.query, "text": query, **locals_})  # noqa: S307


def _chdb_export(file: Path, columns: str, rows: int | None) -> Any:
    chdb = importlib.import_module("chdb")
    return chdb.query(_select(columns, f"file('{file}', Parquet)", rows), "DataFrame")


def _polars(query: str, tables: dict[str, Any]) -> Any:
    import polars as pl

    context = pl.SQLContext({name: pl.from_pandas(table) for name, table in tables.items()})
    return context.execute(query, eager=True).to_pandas()


def _polars_export(file: Path, columns: str, rows: int | None) -> Any:
    import polars as pl

    context = pl.SQLContext({"source": pl.scan_parquet(file)})
    return context.execute(_select(columns, "source", rows), eager=True).to_pandas()


def _pandas_export(file: Path, columns: str, rows: int | None) -> Any:
    import pandas as pd

    frame = pd.read_parquet(file, columns=None if columns == "*" else columns.split(", "))
    return frame.head(rows) if rows else frame


ENGINES = [
    _duckdb("to_arrow_table"),
    _longshore("pandas"),
    _longshore("arrow"),
    _duckdb("df"),
    Engine("chDB", ("chdb", "pandas"), _chdb_export, _chdb),
    Engine("Polars", ("polars", "pandas", "pyarrow"), _polars_export, _polars),
    Engine("pandas", ("pandas", "pyarrow"), _pandas_export),
]
