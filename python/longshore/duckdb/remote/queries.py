"""A whole query in a source's SQL, where every part of it is known to mean the same there."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pyarrow as pa
from sqlglot import exp

from longshore.duckdb.parameters import Params
from longshore.duckdb.remote.dialect import Dialect
from longshore.duckdb.remote.expressions import NameScope, Relation, Test, Value, ValueWriter, relation_of, require_only
from longshore.duckdb.remote.text import Reference
from longshore.duckdb.remote.types import (
    Kind,
    Table,
    Trust,
    Type,
    Unsafe,
    arrow_type,
    constant,
    same_meaning,
    unsafe_if,
    whole_number,
)
from longshore.texts import quoted_name


@dataclass(frozen=True)
class Output:
    """A column of a query: its name in other parts of the query, its value and its tree."""

    name: str | None
    value: Value
    node: exp.Expression


class SelectWriter:
    """The writer of a SELECT over tables; a part that is not on the list raises ``Unsafe``."""

    def __init__(
        self, dialect: Dialect, tables: Sequence[tuple[Reference, Table]], params: Params, node: exp.Expression
    ) -> None:
        """Write it; ``params`` are the values of parameters."""
        if not isinstance(node, exp.Select):
            raise Unsafe
        require_only(node, *self._CLAUSES, "expressions", "from_", "joins", "distinct")
        self._node = node
        self._dialect = dialect
        self._params = params
        self._tables = {id(reference.node): (reference, table) for reference, table in tables}
        from_sql, self._names = self._relations()
        self._write = ValueWriter(dialect, self._names, params)
        self.outputs = [output for item in node.expressions for output in self._output(item)]
        clauses = [(node.args.get(name), write) for name, write in self._CLAUSES.items()]
        written = [write(self, clause) for clause, write in clauses if clause is not None]
        self._distinct = self._distinct_clause()
        self._rest = " ".join([f"FROM {from_sql}", *written])

    def sql(self, names: Sequence[str]) -> str:
        """Give the SQL with these quoted names of its columns."""
        items = (f"{output.value.sql} AS {name}" for output, name in zip(self.outputs, names, strict=True))
        return f"SELECT {self._distinct}{', '.join(items)} {self._rest}"

    def _relation(self, node: exp.Expression, number: int) -> tuple[str, Relation]:
        """Write a table of a FROM; a subquery there goes to the source by itself."""
        alias = self._dialect.name(f"t{number}")
        require_only(node, "this", "db", "catalog", "alias")
        if (name := node.args.get("alias")) is not None:
            require_only(name, "this")
        unsafe_if(id(node) not in self._tables)
        reference, table = self._tables[id(node)]
        table = replace(table, columns=[column.in_source for column in table.columns])
        return f"{table.sql} AS {alias}", relation_of(reference, table, alias)

    def _relations(self) -> tuple[str, NameScope]:
        place = self._node.args.get("from_")
        if place is None:
            raise Unsafe
        require_only(place, "this")
        sql, first = self._relation(place.this, 1)
        names = NameScope([first])
        for number, join in enumerate(self._node.args.get("joins") or [], 2):
            require_only(join, "this", "on", "using", "side", "kind")
            unsafe_if(join.side not in {"", "LEFT"} or join.kind not in {"", "INNER", "OUTER", "CROSS"})
            right, relation = self._relation(join.this, number)
            using = {one.name.lower(): one for one in join.args.get("using") or []}
            tests = [_using_test(names.column(name), relation.columns.get(name)) for name in using]
            names = NameScope([*names.relations, replace(relation, merged=using.keys())])
            sql += self._join(join, right, names, tests)
        return sql, names

    def _join(self, join: exp.Join, right: str, names: NameScope, tests: Sequence[str]) -> str:
        on = join.args.get("on")
        if tests:
            unsafe_if(on is not None or join.kind == "CROSS")
            return f" {join.side or 'INNER'} JOIN {right} ON {' AND '.join(tests)}"
        if on is None:
            unsafe_if(join.side)
            return f" CROSS JOIN {right}"
        unsafe_if(join.kind == "CROSS")
        test, trust = ValueWriter(self._dialect, names, self._params).test(on)
        unsafe_if(trust is not Trust.EXACT or on.find(exp.AggFunc))
        return f" {join.side or 'INNER'} JOIN {right} ON {test}"

    def _output(self, item: exp.Expression) -> list[Output]:
        if isinstance(item, exp.Star):
            require_only(item)
            return self._star(None)
        if isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
            require_only(item.this)
            return self._star(tuple(part.name.lower() for part in item.parts[:-1]))
        node, name = item, item.name if isinstance(item, exp.Column) else None
        if isinstance(item, exp.Alias):
            require_only(item, "this", "alias")
            node, name = item.this, item.alias
        return [Output(name, self._write.value(node), node)]

    def _star(self, table: tuple[str, ...] | None) -> list[Output]:
        relations = [one for one in self._names.relations if table is None or table in one.names]
        if not relations or (table is not None and len(relations) > 1):
            raise Unsafe
        outputs = []
        for relation in relations:
            for name in relation.spelled:
                if table is None and name.lower() in relation.merged:
                    continue
                value = relation.columns[name.lower()]
                if value is None:
                    raise Unsafe
                outputs.append(Output(name, value, exp.Star()))
        return outputs

    def _distinct_clause(self) -> str:
        distinct = self._node.args.get("distinct")
        if distinct is None:
            return ""
        require_only(distinct)
        unsafe_if(not all(output.value.type.groups for output in self.outputs))
        return "DISTINCT "

    def _where(self, where: exp.Where) -> str:
        if any(one.parent_select is self._node for one in where.find_all(exp.AggFunc)):
            raise Unsafe
        return f"WHERE {_exact(self._write.test(where.this))}"

    def _having(self, having: exp.Having) -> str:
        if self._node.args.get("group") is None:
            raise Unsafe
        # In the engine, an output's name means the output, even where a column has it, too.
        aliases = {item.alias.lower() for item in self._node.expressions if isinstance(item, exp.Alias)}
        if any(len(one.parts) == 1 and one.name.lower() in aliases for one in having.find_all(exp.Column)):
            raise Unsafe
        return f"HAVING {_exact(self._write.test(having.this))}"

    def _group(self, group: exp.Group) -> str:
        require_only(group, "expressions", "all")
        if group.args.get("all"):
            # The parser does not tell ALL from a quoted column of that name.
            if any("all" in relation.columns for relation in self._names.relations):
                raise Unsafe
            keys = [output.value for output in self.outputs if not output.node.find(exp.AggFunc)]
        else:
            keys = [self._key(node) for node in group.expressions]
        unsafe_if(not keys or not all(key.type.groups for key in keys))
        return f"GROUP BY {', '.join(key.sql for key in keys)}"

    def _key(self, node: exp.Expression) -> Value:
        """Write a key of a GROUP BY: an output's number, a column, or else an output's name."""
        if isinstance(node, exp.Literal):
            return self._output_at(node)
        try:
            return self._write.value(node)
        except Unsafe:
            return self._output_named(node)

    def _order(self, order: exp.Order) -> str:
        require_only(order, "expressions")
        return f"ORDER BY {', '.join(self._order_item(one) for one in order.expressions)}"

    def _order_item(self, one: exp.Expression) -> str:
        require_only(one, "this", "desc", "nulls_first")
        key = self._sort_key(one.this)
        unsafe_if(key.type.order is not Trust.EXACT)
        descending, first = bool(one.args.get("desc")), bool(one.args.get("nulls_first"))
        sql = self._dialect.sort(key.sql, key.type, descending=descending, nulls_first=first)
        # Rows of a DISTINCT are ordered by their columns alone, without expressions.
        if self._node.args.get("distinct") and not any(
            sql.removeprefix(output.value.sql).startswith((" DESC NULLS", " NULLS")) for output in self.outputs
        ):
            raise Unsafe
        return sql

    def _sort_key(self, node: exp.Expression) -> Value:
        """Write a key of an ORDER BY: an output's number or name, or else a value."""
        if isinstance(node, exp.Literal):
            return self._output_at(node)
        names = {(output.name or "").lower() for output in self.outputs}
        bare = node.unnest()
        if isinstance(bare, exp.Column) and len(bare.parts) == 1 and bare.name.lower() in names:
            return self._output_named(bare)
        return self._write.value(node)

    def _output_at(self, node: exp.Expression) -> Value:
        at = constant(node, None)
        if type(at) is not int or not 1 <= at <= len(self.outputs):
            raise Unsafe
        return self.outputs[at - 1].value

    def _output_named(self, node: exp.Expression) -> Value:
        if not isinstance(node, exp.Column) or len(node.parts) != 1:
            raise Unsafe
        values = [output.value for output in self.outputs if (output.name or "").lower() == node.name.lower()]
        unsafe_if(len(values) != 1)
        return values[0]

    def _limit(self, limit: exp.Limit) -> str:
        require_only(limit, "expression")
        return f"LIMIT {whole_number(limit.expression, self._params)}"

    def _offset(self, offset: exp.Offset) -> str:
        require_only(offset, "expression")
        unsafe_if(not self._node.args.get("limit"))
        return f"OFFSET {whole_number(offset.expression, self._params)}"

    _CLAUSES: ClassVar[Mapping[str, Callable[["SelectWriter", Any], str]]] = {
        "where": _where,
        "group": _group,
        "having": _having,
        "order": _order,
        "limit": _limit,
        "offset": _offset,
    }


def _exact(test: Test) -> str:
    sql, trust = test
    unsafe_if(trust is not Trust.EXACT)
    return sql


def _using_test(left: Value, right: Value | None) -> str:
    """Compare the columns of a USING, of which the left one stands for both."""
    if right is None or not (left.type.groups and right.type.groups):
        raise Unsafe
    same_meaning(left.type, right.type)
    unsafe_if(min(left.type.equal, right.type.equal) is not Trust.EXACT)
    return f"({left.sql} = {right.sql})"


#: PostgreSQL's: 63 bytes.
_LONGEST_NAME = 63


@dataclass(frozen=True)
class ResultColumn:
    """A column of the result."""

    #: Its name in the source's result, and in the engine's.
    read: str
    name: str
    #: Its Arrow type; None where the engine's is another than the source's.
    type: pa.DataType | None
    #: Whether it is an integer of 128 bits in the engine, which is a decimal in Arrow.
    huge: bool = False

    @property
    def field(self) -> pa.Field:
        """Its field in the engine's result."""
        return pa.field(self.name, self.type, metadata={"native_type": "hugeint"} if self.huge else None)

    @property
    def sql(self) -> str:
        """The engine's SQL that makes its column of the source's."""
        read = quoted_name(self.read)
        return f"{f'CAST({read} AS HUGEINT)' if self.huge else read} AS {quoted_name(self.name)}"


def empty_table(table: Table) -> str:
    """Give an empty table in the engine's SQL, with the names and types of a table."""
    columns = ", ".join(
        f"CAST(NULL AS {column.type.engine or 'VARCHAR'}) AS {quoted_name(column.name)}" for column in table.columns
    )
    return f"(SELECT {columns} LIMIT 0)"


def result_columns(written: SelectWriter, described: Sequence[tuple[str, str]]) -> list[ResultColumn]:
    """Give the columns with the engine's names and types; raises ``Unsafe`` where the source's types differ."""
    unsafe_if(len(described) != len(written.outputs))
    names = [name for name, _ in described]
    usable = len({name.lower() for name in names}) == len(names) and all(map(_is_portable, names))
    reads = names if usable else [f"c{at}" for at in range(1, len(names) + 1)]
    return [
        _result(read, name, engine, output.value.type, is_column=output.value.is_column)
        for read, output, (name, engine) in zip(reads, written.outputs, described, strict=True)
    ]


def _is_portable(name: str) -> bool:
    """Whether every source can name a column so, without truncation."""
    return 0 < len(name.encode()) <= _LONGEST_NAME and name.isprintable() and name == name.strip()


def _result(read: str, name: str, described: str, of: Type, *, is_column: bool) -> ResultColumn:
    if of.kind in {Kind.OTHER, Kind.UUID}:
        unsafe_if(not is_column)
        return ResultColumn(read, name, None)
    arrow = arrow_type(described)
    unsafe_if(arrow is None or of.engine != described)
    return ResultColumn(read, name, arrow, huge=described == "HUGEINT")
