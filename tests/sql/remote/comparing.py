"""The same query over attached databases, and over their tables loaded whole into the engine."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

import longshore
from longshore.duckdb.result import Form, deliver

__all__ = ["Harbour", "loaded", "same"]

Rows = list[tuple[str, ...]]


class Harbour:
    """Databases to attach, and an engine that has all of their tables."""

    def __init__(self, attach: Mapping[str, Any], engine: Any) -> None:
        """Keep both."""
        self.attach = attach
        self.engine = engine

    def expected(self, query: str, params: Any = None) -> pa.Table:
        """Run a query over the loaded tables."""
        relation = self.engine.sql(query, params=params)
        return deliver(relation, Form.of("arrow", None, longshore.Options()), cancel=self.engine.interrupt)

    def given(self, query: str, params: Any = None, **more: Any) -> pa.Table:
        """Run it over the attached databases."""
        return longshore.sql(query, attach=self.attach, params=params, return_type="arrow", **more)

    def plan(self, query: str, params: Any = None) -> str:
        """Give the SQL that each source receives."""
        return longshore.sql(query, attach=self.attach, params=params, explain=True)


@contextmanager
def loaded(attach: Mapping[str, Any], tables: Mapping[str, Sequence[str]]) -> Iterator[Harbour]:
    """Load the tables of each database, named ``schema.table``, or ``table`` where there is no schema."""
    engine = duckdb.connect(config={"arrow_lossless_conversion": True})
    engine.execute("SET TimeZone = 'UTC'")
    for name, paths in tables.items():
        engine.execute(f"ATTACH ':memory:' AS {name}")
        for path in paths:
            schema, _, _table = path.rpartition(".")
            if schema:
                engine.execute(f"CREATE SCHEMA IF NOT EXISTS {name}.{schema}")
            with longshore.read_sql(f"SELECT * FROM {path}", attach[name], return_type="arrow_stream") as stream:
                rows = _unpadded(pa.Table.from_batches(list(stream), stream.schema))
            engine.register("rows", rows)
            engine.execute(f"CREATE TABLE {name}.{path} AS SELECT * FROM rows")
            engine.unregister("rows")
    yield Harbour(attach, engine)
    engine.close()


def _unpadded(rows: pa.Table) -> pa.Table:
    """Take the padding from the columns that PostgreSQL compares without it."""
    for at, field in enumerate(rows.schema):
        if (field.metadata or {}).get(b"native_type", b"").startswith(b"bpchar"):
            rows = rows.set_column(at, field, pc.utf8_rtrim(rows[at], " "))
    return rows


def same(harbour: Harbour, query: str, params: Any = None) -> pa.Table:
    """Compare names, types and rows; the order of rows where the query has one. Give what came."""
    expected = harbour.expected(query, params)
    given = harbour.given(query, params)
    plan = harbour.plan(query, params)
    assert given.schema.names == expected.schema.names, (query, plan)
    assert _types(given) == _types(expected), (query, plan)
    ordered = bool(re.search(r"\border by\b[^)]*$", query, re.IGNORECASE))
    assert _rows(given, ordered=ordered) == _rows(expected, ordered=ordered), (query, params, plan)
    return given


def _types(table: pa.Table) -> list[str]:
    return [str(field.type).replace("large_", "").replace("_view", "") for field in table.schema]


def _rows(table: pa.Table, *, ordered: bool) -> Rows:
    # NaN is not itself, and 0 is -0: their texts tell.
    rows = [tuple(map(repr, row)) for row in zip(*(column.to_pylist() for column in table.columns), strict=True)]
    return rows if ordered else sorted(rows)
