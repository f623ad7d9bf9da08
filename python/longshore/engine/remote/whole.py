"""A query that one source answers alone: the engine's names and types, and no engine."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from sqlglot import exp

from longshore.engine.remote.dialect import Dialect
from longshore.engine.remote.literals import Params
from longshore.engine.remote.names import Relation, known
from longshore.engine.remote.queries import Queries, Written
from longshore.engine.remote.references import Reference, quoted
from longshore.engine.remote.types import Kind, Table, Type, Unsafe

__all__ = ["Result", "arrow_type", "checked", "stub", "write"]

_ARROW = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INTEGER": pa.int32(),
    "BIGINT": pa.int64(),
    "UTINYINT": pa.uint8(),
    "USMALLINT": pa.uint16(),
    "UINTEGER": pa.uint32(),
    "UBIGINT": pa.uint64(),
    "HUGEINT": pa.decimal128(38, 0),
    "DOUBLE": pa.float64(),
    "VARCHAR": pa.string(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us"),
    "TIMESTAMP WITH TIME ZONE": pa.timestamp("us", "UTC"),
}
#: PostgreSQL's: 63 bytes.
_LONGEST_NAME = 63
_DECIMAL = re.compile(r"DECIMAL\((\d+),(\d+)\)")


@dataclass(frozen=True)
class Result:
    """A column of the result."""

    #: Its name in the source's result, and in the engine's.
    read: str
    name: str
    #: Its Arrow type; None where the engine hands over another than the source.
    type: pa.DataType | None
    #: Whether the source has to be asked for that type, as its own may be another.
    asked: bool = False
    #: Whether it is an integer of the engine's 128 bits, which Arrow has as decimals.
    huge: bool = False

    @property
    def field(self) -> pa.Field:
        """Its field, as the engine's results have it."""
        return pa.field(self.name, self.type, metadata={"native_type": "hugeint"} if self.huge else None)

    @property
    def sql(self) -> str:
        """Make of the source's column what the engine's would be, in the engine's SQL."""
        read = quoted(self.read)
        return f"{f'CAST({read} AS HUGEINT)' if self.huge else read} AS {quoted(self.name)}"


def write(tree: exp.Expression, dialect: Dialect, tables: Sequence[tuple[Reference, Table]], params: Params) -> Written:
    """Write a query in its source's SQL; raises ``Unsafe`` where a part of it may mean something else there."""
    by_node = {id(reference.node): (reference, table) for reference, table in tables}

    def relation(node: exp.Table, alias: str) -> tuple[str, Relation]:
        if id(node) not in by_node:
            raise Unsafe
        reference, table = by_node[id(node)]
        table = replace(table, columns=[column.in_source for column in table.columns])
        return f"{table.sql} AS {alias}", known(reference, table, alias)

    return Queries(dialect, relation, params).query(tree)


def stub(table: Table) -> str:
    """Give an empty table for the engine, with the names and types of a table."""
    columns = ", ".join(
        f"CAST(NULL AS {column.type.engine or 'VARCHAR'}) AS {quoted(column.name)}" for column in table.columns
    )
    return f"(SELECT {columns} LIMIT 0)"


def checked(written: Written, described: Sequence[tuple[str, str]]) -> list[Result]:
    """Compare what was written with what the engine would make of the query; raises ``Unsafe`` where they differ."""
    if len(described) != len(written.outputs):
        raise Unsafe
    names = [name for name, _ in described]
    usable = len({name.lower() for name in names}) == len(names) and all(map(_is_usable, names))
    reads = names if usable else [f"c{at}" for at in range(1, len(names) + 1)]
    return [
        _result(read, name, engine, output.value.type, plain=output.value.plain)
        for read, output, (name, engine) in zip(reads, written.outputs, described, strict=True)
    ]


def arrow_type(engine: str) -> pa.DataType | None:
    """Give the Arrow type of a type of the engine's; None where it is not one of the list."""
    number = _DECIMAL.fullmatch(engine)
    return pa.decimal128(int(number[1]), int(number[2])) if number else _ARROW.get(engine)


def _is_usable(name: str) -> bool:
    """Whether every source gives a column this name, uncut."""
    return 0 < len(name.encode()) <= _LONGEST_NAME and name.isprintable() and name == name.strip()


def _result(read: str, name: str, described: str, of: Type, *, plain: bool) -> Result:
    if of.kind in {Kind.OTHER, Kind.UUID}:
        if not plain:
            raise Unsafe
        return Result(read, name, None)
    number = _DECIMAL.fullmatch(described)
    arrow = arrow_type(described)
    if arrow is None or not _reckoned(of, described, scale=int(number[2]) if number else None):
        raise Unsafe
    return Result(read, name, arrow, asked=not plain, huge=described == "HUGEINT")


def _reckoned(of: Type, described: str, *, scale: int | None) -> bool:
    """Whether the engine's type is the one that was reckoned with."""
    if of.engine is not None:
        return of.engine == described
    if of.kind is Kind.DECIMAL:
        return scale == of.scale
    return of.kind is Kind.INTEGER and described.endswith(("INT", "INTEGER"))
