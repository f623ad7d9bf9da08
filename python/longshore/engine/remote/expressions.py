"""The white list: tests and values that mean in a source what they mean in the engine."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from sqlglot import exp

from longshore.engine.remote.dialect import Dialect
from longshore.engine.remote.literals import Params, Spelled, constant, fitting
from longshore.engine.remote.names import Names, Value, only
from longshore.engine.remote.types import Kind, Trust, Type, Unsafe, same_meaning

__all__ = ["Expressions", "Test"]


#: SQL and how far it is the engine's.
Test = tuple[str, Trust]

_ORDERS: Mapping[type[exp.Expression], str] = {exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="}


class Expressions:
    """Writes expressions in a source's SQL; whatever is not known to be safe raises ``Unsafe``."""

    def __init__(self, dialect: Dialect, names: Names, params: Params) -> None:
        """Keep the source's dialect, what columns mean, and the values of parameters."""
        self.dialect = dialect
        self.names = names
        self.params = params

    def value(self, node: exp.Expression) -> Value:
        """Write what has a value in each row."""
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
        if value.type.kind is not Kind.BOOLEAN:
            raise Unsafe
        return value.sql, value.type.equal

    def _paren(self, node: exp.Expression) -> Test:
        return self.test(node.this)

    def _and(self, node: exp.Expression) -> Test:
        return self._both(node, "AND")

    def _or(self, node: exp.Expression) -> Test:
        return self._both(node, "OR")

    def _both(self, node: exp.Expression, word: str) -> Test:
        only(node, "this", "expression")
        (left, left_trust), (right, right_trust) = self.test(node.this), self.test(node.expression)
        return f"({left} {word} {right})", min(left_trust, right_trust)

    def _not(self, node: exp.Expression) -> Test:
        only(node, "this")
        if isinstance(node.this, exp.Is):
            return self._is_not_null(node.this)
        return self._negated(self.test(node.this))

    def _negated(self, test: Test) -> Test:
        sql, trust = test
        if trust is not Trust.EXACT:
            raise Unsafe
        return f"(NOT {sql})", trust

    def _is(self, node: exp.Expression) -> Test:
        value = self._of_null(node)
        if not value.type.nulls:
            raise Unsafe
        return f"({value.sql} IS NULL)", Trust.EXACT

    def _is_not_null(self, node: exp.Is) -> Test:
        value = self._of_null(node)
        if value.type.kind is Kind.OTHER and not value.type.nulls:
            raise Unsafe
        # What is NULL when it is loaded may be a value in the source, but not the other way.
        return f"({value.sql} IS NOT NULL)", Trust.EXACT if value.type.nulls else Trust.SUPERSET

    def _of_null(self, node: exp.Expression) -> Value:
        only(node, "this", "expression")
        if not isinstance(node.expression, exp.Null):
            raise Unsafe
        return self.value(node.this)

    def _equal(self, node: exp.Expression) -> Test:
        left, right, trust = self._sides(node, lambda of: of.equal)
        return f"({left} = {right})", trust

    def _unequal(self, node: exp.Expression) -> Test:
        left, right, trust = self._sides(node, lambda of: of.equal)
        if trust is not Trust.EXACT:
            raise Unsafe
        return f"({left} <> {right})", trust

    def _order(self, node: exp.Expression) -> Test:
        left, right, trust = self._sides(node, lambda of: of.order, ordered=True)
        return f"({left} {_ORDERS[type(node)]} {right})", trust

    def _sides(
        self, node: exp.Expression, how: Callable[[Type], Trust], *, ordered: bool = False
    ) -> tuple[str, str, Trust]:
        """Write both sides of a comparison, at least one of which is no constant."""
        only(node, "this", "expression")
        left, right = self._side(node.this), self._side(node.expression)
        if isinstance(left, Value) and isinstance(right, Value):
            trust = min(how(left.type), how(right.type))
            same_meaning(left.type, right.type)
            sides = left.compared, right.compared
            of = left.type
        elif isinstance(left, Value):
            of, trust = left.type, how(left.type)
            sides = left.compared, self._constant(left, right)
        elif isinstance(right, Value):
            of, trust = right.type, how(right.type)
            sides = self._constant(right, left), right.compared
        else:
            raise Unsafe
        if trust is Trust.NONE:
            raise Unsafe
        return (self.dialect.ordered(sides[0], of) if ordered else sides[0]), sides[1], trust

    def _side(self, node: exp.Expression) -> Any:
        try:
            return constant(node, self.params)
        except Unsafe:
            return self.value(node)

    def _constant(self, value: Value, literal: Any) -> str:
        """Write a constant that a value is compared with: blanks at its end are nothing to what is padded."""
        fits = fitting(literal, value.type)
        return self.dialect.literal(fits.rstrip(" ") if value.type.padded else fits, value.type)

    def _literal(self, value: Any, of: Type) -> str:
        return self.dialect.literal(fitting(value, of), of)

    def _in(self, node: exp.Expression) -> Test:
        only(node, "this", "expressions")
        value = self.value(node.this)
        if not node.expressions or value.type.equal is Trust.NONE:
            raise Unsafe
        literals = [self._constant(value, constant(item, self.params)) for item in node.expressions]
        return f"({value.compared} IN ({', '.join(literals)}))", value.type.equal

    def _between(self, node: exp.Expression) -> Test:
        only(node, "this", "low", "high")
        value = self.value(node.this)
        if value.type.order is Trust.NONE:
            raise Unsafe
        key = self.dialect.ordered(value.compared, value.type)
        low, high = (self._constant(value, constant(node.args[end], self.params)) for end in ("low", "high"))
        return f"({key} >= {low} AND {key} <= {high})", value.type.order

    def _like(self, node: exp.Expression) -> Test:
        only(node, "this", "expression", "negate")
        value = self.value(node.this)
        pattern = constant(node.expression, self.params)
        text = pattern.text if isinstance(pattern, Spelled) else pattern
        # A backslash escapes in sources, and is a character in the engine.
        if not isinstance(text, str) or "\\" in text or not self.dialect.matches:
            raise Unsafe
        if value.type.kind is not Kind.TEXT or value.type.equal is not Trust.EXACT:
            raise Unsafe
        if value.type.padded and value.padded is None:
            raise Unsafe
        test = f"({value.compared} LIKE {self._literal(pattern, value.type)})", Trust.EXACT
        return self._negated(test) if node.args.get("negate") else test

    _TESTS: ClassVar[Mapping[type[exp.Expression], Callable[["Expressions", Any], Test]]] = {
        exp.Paren: _paren,
        exp.And: _and,
        exp.Or: _or,
        exp.Not: _not,
        exp.Is: _is,
        exp.EQ: _equal,
        exp.NEQ: _unequal,
        **dict.fromkeys(_ORDERS, _order),
        exp.In: _in,
        exp.Between: _between,
        exp.Like: _like,
    }
