"""The white list: expressions that mean in a source what they mean in the engine."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, ClassVar

from sqlglot import exp

from longshore.duckdb.parameters import Params
from longshore.duckdb.remote.dialect import Dialect
from longshore.duckdb.remote.text import Reference
from longshore.duckdb.remote.types import (
    Kind,
    Quoted,
    Table,
    Trust,
    Type,
    Unsafe,
    constant,
    decimal_type,
    fit,
    same_meaning,
    unsafe_if,
)


@dataclass(frozen=True)
class Value:
    """An expression in the source's SQL."""

    sql: str
    type: Type
    #: Whether it is a column of a table, without a cast.
    is_column: bool = False
    #: The bare column of a ``char(n)``, for its comparisons with constants and LIKE.
    padded: str | None = None

    @property
    def comparison(self) -> str:
        """The SQL for comparisons with constants, for which the source may use an index."""
        return self.padded or self.sql


@dataclass(frozen=True)
class Relation:
    """A table of a FROM: its names in columns, and its columns."""

    names: AbstractSet[tuple[str, ...]]
    #: By name in lower case, in the table's order; None for a column that cannot be used.
    columns: Mapping[str, Value | None]
    #: The columns' names as they are spelled.
    spelled: Sequence[str] = field(default=())
    #: Those that a USING has merged with columns of the tables before.
    merged: AbstractSet[str] = frozenset()


class NameScope:
    """The relations of one FROM, in which columns are looked up."""

    def __init__(self, relations: Sequence[Relation]) -> None:
        """Take the relations in their order."""
        self.relations = relations

    def find(self, column: exp.Column) -> Value:
        """Give a column's value; raises ``Unsafe`` where it is ambiguous."""
        parts = column.parts
        if not all(isinstance(part, exp.Identifier) for part in parts):
            raise Unsafe
        require_only(column, "this", "table", "db", "catalog")
        *table, name = (part.name.lower() for part in parts)
        return self.column(name, tuple(table))

    def column(self, name: str, table: tuple[str, ...] = ()) -> Value:
        """Give the column of a name in lower case, of one table or of any; raises ``Unsafe`` as ``find`` does."""
        relations = [one for one in self.relations if (table in one.names if table else name not in one.merged)]
        values = [relation.columns[name] for relation in relations if name in relation.columns]
        if len(values) != 1 or values[0] is None:
            raise Unsafe
        return values[0]


def relation_of(reference: Reference, table: Table, alias: str) -> Relation:
    """Give a source's table under an alias in the source's SQL."""
    names = {(reference.alias.lower(),), *reference.full_names}
    columns: dict[str, Value | None] = {}
    for column in table.columns:
        name = column.name.lower()
        padded = f"{alias}.{column.quoted}" if column.padded is not None else None
        value = Value(column.sql(alias), column.type, is_column=column.form == "{}", padded=padded)
        # Names that differ in case are one to the engine.
        columns[name] = None if name in columns else value
    return Relation(names, columns, [column.name for column in table.columns])


def require_only(node: exp.Expression, *names: str) -> None:
    """Raise ``Unsafe`` where a node has other arguments than ``names``."""
    if any(value for name, value in node.args.items() if name not in names and name != "_type"):
        raise Unsafe


#: A condition's SQL, and how far it agrees with the engine.
Test = tuple[str, Trust]

_CONNECTORS: Mapping[type[exp.Expression], str] = {exp.And: "AND", exp.Or: "OR"}
_EQUALITIES: Mapping[type[exp.Expression], str] = {exp.EQ: "=", exp.NEQ: "<>"}
_ORDERS: Mapping[type[exp.Expression], str] = {exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="}


class ExpressionWriter:
    """The writer of conditions in a source's SQL; an expression that is not on the list raises ``Unsafe``."""

    def __init__(self, dialect: Dialect, names: NameScope, params: Params) -> None:
        """Take the source's dialect, the columns in scope, and the values of parameters."""
        self.dialect = dialect
        self.names = names
        self.params = params

    def value(self, node: exp.Expression) -> Value:
        """Write a column."""
        if isinstance(node, exp.Paren):
            return self.value(node.this)
        if isinstance(node, exp.Column):
            return self.names.find(node)
        raise Unsafe

    def test(self, node: exp.Expression) -> Test:
        """Write a condition."""
        for kind, write in self._TESTS.items():
            if isinstance(node, kind):
                return write(self, node)
        value = self.value(node)
        unsafe_if(value.type.kind is not Kind.BOOLEAN)
        return value.sql, value.type.equal

    def _paren(self, node: exp.Expression) -> Test:
        return self.test(node.this)

    def _both(self, node: exp.Expression) -> Test:
        require_only(node, "this", "expression")
        (left, left_trust), (right, right_trust) = self.test(node.this), self.test(node.expression)
        return f"({left} {_CONNECTORS[type(node)]} {right})", min(left_trust, right_trust)

    def _not(self, node: exp.Expression) -> Test:
        require_only(node, "this")
        if isinstance(node.this, exp.Is):
            return self._is_not_null(node.this)
        return self._negate(self.test(node.this))

    def _negate(self, test: Test) -> Test:
        sql, trust = test
        unsafe_if(trust is not Trust.EXACT)
        return f"(NOT {sql})", trust

    def _is(self, node: exp.Expression) -> Test:
        value = self._of_null(node)
        unsafe_if(not value.type.nulls)
        return f"({value.sql} IS NULL)", Trust.EXACT

    def _is_not_null(self, node: exp.Is) -> Test:
        value = self._of_null(node)
        unsafe_if(value.type.kind is Kind.OTHER and not value.type.nulls)
        # A value in the source may be loaded as NULL, but not the other way.
        return f"({value.sql} IS NOT NULL)", Trust.EXACT if value.type.nulls else Trust.SUPERSET

    def _of_null(self, node: exp.Expression) -> Value:
        require_only(node, "this", "expression")
        if not isinstance(node.expression, exp.Null):
            raise Unsafe
        return self.value(node.this)

    def _equality(self, node: exp.Expression) -> Test:
        values, left, right = self._sides(node)
        trust = min(value.type.equal for value in values)
        if trust is Trust.NONE or (isinstance(node, exp.NEQ) and trust is not Trust.EXACT):
            raise Unsafe
        return f"({left} {_EQUALITIES[type(node)]} {right})", trust

    def _order(self, node: exp.Expression) -> Test:
        values, left, right = self._sides(node)
        trust = min(value.type.order for value in values)
        unsafe_if(trust is Trust.NONE)
        return f"({self.dialect.sort_key(left, values[0].type)} {_ORDERS[type(node)]} {right})", trust

    def _sides(self, node: exp.Expression) -> tuple[list[Value], str, str]:
        """Write both sides of a comparison, after the list of those that are not constants, at least one."""
        require_only(node, "this", "expression")
        sides = [self._side(node.this), self._side(node.expression)]
        values = [side for side in sides if isinstance(side, Value)]
        unsafe_if(not values)
        if len(values) > 1:
            same_meaning(values[0].type, values[1].type)
        # Next to another column it is a text.
        bare = len(values) == 1 or all(value.padded for value in values)
        left, right = (
            (side.comparison if bare else side.sql) if isinstance(side, Value) else self._constant(values[0], side)
            for side in sides
        )
        return values, left, right

    def _side(self, node: exp.Expression) -> Any:
        try:
            return constant(node, self.params)
        except Unsafe:
            return self.value(node)

    def _constant(self, value: Value, literal: Any) -> str:
        """Write the constant that a value is compared with, of which a ``char(n)`` ignores blanks at the end."""
        fits = fit(literal, value.type)
        if (value.padded or value.type.padded) and fits.endswith(" "):
            unsafe_if(not value.type.padded)
            fits = fits.rstrip(" ")
        return self.dialect.literal(fits, value.type)

    def _in(self, node: exp.Expression) -> Test:
        require_only(node, "this", "expressions")
        value = self.value(node.this)
        unsafe_if(not node.expressions or value.type.equal is Trust.NONE)
        literals = [self._constant(value, constant(item, self.params)) for item in node.expressions]
        return f"({value.comparison} IN ({', '.join(literals)}))", value.type.equal

    def _between(self, node: exp.Expression) -> Test:
        require_only(node, "this", "low", "high")
        value = self.value(node.this)
        unsafe_if(value.type.order is Trust.NONE)
        key = self.dialect.sort_key(value.comparison, value.type)
        low, high = (self._constant(value, constant(node.args[end], self.params)) for end in ("low", "high"))
        return f"({key} >= {low} AND {key} <= {high})", value.type.order

    def _like(self, node: exp.Expression) -> Test:
        require_only(node, "this", "expression", "negate")
        value = self.value(node.this)
        pattern = constant(node.expression, self.params)
        text = pattern.text if isinstance(pattern, Quoted) else pattern
        # A backslash escapes in sources, and is a character in the engine.
        if not isinstance(text, str) or "\\" in text or not self.dialect.has_plain_like:
            raise Unsafe
        unsafe_if(value.type.kind is not Kind.TEXT or value.type.equal is not Trust.EXACT)
        if value.type.padded and value.padded is None:
            raise Unsafe
        column = value.comparison if value.type.padded else value.sql
        test = f"({column} LIKE {self.dialect.literal(fit(pattern, value.type), value.type)})", Trust.EXACT
        return self._negate(test) if node.args.get("negate") else test

    _TESTS: ClassVar[Mapping[type[exp.Expression], Callable[["ExpressionWriter", Any], Test]]] = {
        exp.Paren: _paren,
        **dict.fromkeys(_CONNECTORS, _both),
        exp.Not: _not,
        exp.Is: _is,
        **dict.fromkeys(_EQUALITIES, _equality),
        **dict.fromkeys(_ORDERS, _order),
        exp.In: _in,
        exp.Between: _between,
        exp.Like: _like,
    }


_COUNT = Type(Kind.INTEGER, "BIGINT", equal=Trust.EXACT, order=Trust.EXACT, groups=True, nulls=True, sums=True)
_SUM = Type(Kind.INTEGER, "HUGEINT", equal=Trust.EXACT, order=Trust.EXACT, nulls=True)
#: The digits of decimals whose sums fit the engine's 128 bits, for any number of rows.
_SUMMED_DIGITS = 19
#: The most digits of the engine's decimals.
_MOST_DIGITS = 38


class ValueWriter(ExpressionWriter):
    """The writer of a SELECT: aggregates as well."""

    def value(self, node: exp.Expression) -> Value:
        """Write a column or an aggregate."""
        write = self._AGGREGATES.get(type(node))
        return write(self, node) if write else super().value(node)

    def _count(self, node: exp.Expression) -> Value:
        require_only(node, "this", "big_int")
        argument, select = node.this, node.parent_select
        is_alone = select is not None and len(list(select.find_all(exp.Count))) == 1
        if argument is None or isinstance(argument, exp.Star):
            return Value(self.dialect.count("*", is_alone=is_alone), _COUNT)
        if not isinstance(argument, exp.Distinct):
            value = self._argument(argument)
            unsafe_if(not value.type.nulls)
            return Value(self.dialect.count(value.sql, is_alone=is_alone), _COUNT)
        require_only(argument, "expressions")
        (one, *more) = argument.expressions
        value = self._argument(one)
        unsafe_if(more or not value.type.groups)
        return Value(f"count(DISTINCT {value.sql})", _COUNT)

    def _sum(self, node: exp.Expression) -> Value:
        require_only(node, "this")
        value = self._argument(node.this)
        unsafe_if(not value.type.sums or value.type.kind not in {Kind.INTEGER, Kind.DECIMAL})
        of = _SUM
        if value.type.kind is Kind.DECIMAL:
            is_held = value.type.precision <= _SUMMED_DIGITS
            trust = Trust.EXACT if is_held else Trust.NONE
            of = decimal_type(_MOST_DIGITS, value.type.scale)
            of = dataclasses.replace(of, equal=trust, order=trust, nulls=is_held, sums=False, groups=False)
        return Value(f"sum({value.sql})", of)

    def _end(self, node: exp.Expression) -> Value:
        require_only(node, "this")
        value = self._argument(node.this)
        # Of equal values that differ, such as 0 and -0, either may be the least.
        unsafe_if(not (value.type.groups or value.type.sums) or value.type.order is not Trust.EXACT)
        ordered = self.dialect.sort_key(value.sql, value.type)
        # A text with an explicit collation is not compared with columns of others.
        of = value.type if ordered == value.sql else dataclasses.replace(value.type, collation=None)
        return Value(f"{node.key}({ordered})", of)

    def _argument(self, node: exp.Expression) -> Value:
        """Write the argument of an aggregate, which cannot contain another."""
        if isinstance(node, exp.AggFunc) or node.find(exp.AggFunc):
            raise Unsafe
        return self.value(node)

    _AGGREGATES: ClassVar[Mapping[type[exp.Expression], Callable[["ValueWriter", Any], Value]]] = {
        exp.Count: _count,
        exp.Sum: _sum,
        exp.Min: _end,
        exp.Max: _end,
    }
