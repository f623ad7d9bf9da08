"""The white list of a whole query: aggregates and decimals' arithmetic beside what a test may hold."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from sqlglot import exp

from longshore.engine.remote.expressions import Expressions
from longshore.engine.remote.literals import constant
from longshore.engine.remote.names import Value, only
from longshore.engine.remote.types import Kind, Trust, Type, Unsafe, decimal

__all__ = ["Values"]

_COUNT = Type(Kind.INTEGER, "BIGINT", equal=Trust.EXACT, order=Trust.EXACT, groups=True, nulls=True, sums=True)
_SUM = Type(Kind.INTEGER, "HUGEINT", equal=Trust.EXACT, order=Trust.EXACT, nulls=True)
#: Of a decimal whose sums the engine's 128 bits hold, however many rows there are.
_SUMMED_DIGITS = 19
#: The most digits of the engine's decimals, and after the point of MySQL's.
_MOST_DIGITS, _MOST_SCALE = 38, 30
#: The digits of whole numbers by their type; the longest of the rest is a UBIGINT.
_DIGITS = {"TINYINT": 3, "UTINYINT": 3, "SMALLINT": 5, "USMALLINT": 5, "INTEGER": 10, "UINTEGER": 10, "BIGINT": 19}
_MOST_DIGITS_OF_INTEGER = 20
_SIGNS: Mapping[type[exp.Expression], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*"}


class Values(Expressions):
    """Writes what a SELECT computes."""

    def value(self, node: exp.Expression) -> Value:
        """Write a column or an aggregate."""
        write = self._AGGREGATES.get(type(node))
        return write(self, node) if write else super().value(node)

    def computed(self, node: exp.Expression) -> Value:
        """Write a column, an aggregate, or decimals that are added and multiplied.

        The engine computes products of decimals in 18 digits, if both have no more, and fails beyond. Those go to the
        source all the same: its sums of them are exact, and are what remote tables are asked for most.
        """
        if isinstance(node, exp.Paren):
            return self.computed(node.this)
        if type(node) not in _SIGNS:
            return self.value(node)
        only(node, "this", "expression")
        if not self.dialect.calculates:
            raise Unsafe
        left, right = self._operand(node.this), self._operand(node.expression)
        # In MySQL, what becomes of unsigned numbers may not be negative; in the engine it may.
        if any((side.type.engine or "").startswith("U") for side in (left, right)):
            raise Unsafe
        of = _computed(left.type, right.type, multiplied=isinstance(node, exp.Mul))
        return Value(f"({left.sql} {_SIGNS[type(node)]} {right.sql})", of)

    def _operand(self, node: exp.Expression) -> Value:
        try:
            literal = constant(node, self.params)
        except Unsafe:
            value = self.computed(node)
            if value.type.kind not in {Kind.INTEGER, Kind.DECIMAL} or not value.type.sums:
                raise
            return value
        return self._number(literal)

    def _number(self, literal: Any) -> Value:
        if type(literal) is int and abs(literal) < 1 << 31:
            return Value(
                f"({literal})" if literal < 0 else str(literal), Type(Kind.INTEGER, precision=len(str(abs(literal))))
            )
        if type(literal).__name__ == "Decimal" and literal.is_finite():
            _, digits, exponent = literal.as_tuple()
            of = decimal(max(len(digits), -int(exponent)), max(-int(exponent), 0))
            return Value(f"({literal:f})", of)
        raise Unsafe

    def _count(self, node: exp.Expression) -> Value:
        only(node, "this", "big_int")
        argument, select = node.this, node.parent_select
        is_alone = select is not None and len(list(select.find_all(exp.Count))) == 1
        if argument is None or isinstance(argument, exp.Star):
            return Value(self.dialect.count("*", is_alone=is_alone), _COUNT)
        if not isinstance(argument, exp.Distinct):
            value = self._argument(argument)
            if not value.type.nulls:
                raise Unsafe
            return Value(self.dialect.count(value.sql, is_alone=is_alone), _COUNT)
        only(argument, "expressions")
        (one, *more) = argument.expressions
        value = self._argument(one)
        if more or not value.type.groups:
            raise Unsafe
        return Value(f"count(DISTINCT {value.sql})", _COUNT)

    def _sum(self, node: exp.Expression) -> Value:
        only(node, "this")
        value = self._argument(node.this)
        if not value.type.sums or value.type.kind not in {Kind.INTEGER, Kind.DECIMAL}:
            raise Unsafe
        of = _SUM
        if value.type.kind is Kind.DECIMAL:
            is_held = value.type.precision <= _SUMMED_DIGITS
            trust = Trust.EXACT if is_held else Trust.NONE
            of = decimal(_MOST_DIGITS, value.type.scale)
            of = dataclasses.replace(of, equal=trust, order=trust, nulls=is_held, sums=False, groups=False)
        return Value(f"sum({value.sql})", of)

    def _least(self, node: exp.Expression) -> Value:
        return self._end(node, "min")

    def _greatest(self, node: exp.Expression) -> Value:
        return self._end(node, "max")

    def _end(self, node: exp.Expression, name: str) -> Value:
        only(node, "this")
        value = self._argument(node.this)
        # Of values that are equal and not the same, such as 0 and -0, either may be the least.
        if not (value.type.groups or value.type.sums) or value.type.order is not Trust.EXACT:
            raise Unsafe
        ordered = self.dialect.ordered(value.sql, value.type)
        # A text that was given a collation is compared with no column's that has another.
        of = value.type if ordered == value.sql else dataclasses.replace(value.type, collation=None)
        return Value(f"{name}({ordered})", of)

    def _argument(self, node: exp.Expression) -> Value:
        """Write the argument of an aggregate, which has none in it."""
        if isinstance(node, exp.AggFunc) or node.find(exp.AggFunc):
            raise Unsafe
        return self.computed(node)

    _AGGREGATES: ClassVar[Mapping[type[exp.Expression], Callable[["Values", Any], Value]]] = {
        exp.Count: _count,
        exp.Sum: _sum,
        exp.Min: _least,
        exp.Max: _greatest,
    }


def _computed(left: Type, right: Type, *, multiplied: bool) -> Type:
    """Give the type of a sum or a product; raises ``Unsafe`` where the engine may turn to floating point.

    Two integers may overflow in the one and not in the other, so they are left to the engine.
    """
    if left.kind is right.kind is Kind.INTEGER:
        raise Unsafe
    left_digits, right_digits = _precision(left), _precision(right)
    if multiplied:
        digits, scale = left_digits + right_digits, left.scale + right.scale
    else:
        scale = max(left.scale, right.scale)
        digits = max(left_digits - left.scale, right_digits - right.scale) + scale + 1
    if digits > _MOST_DIGITS or scale > _MOST_SCALE:
        raise Unsafe
    # The engine's precision depends on more than the two types.
    return dataclasses.replace(decimal(digits, scale), engine=None, equal=Trust.NONE, groups=False)


def _precision(of: Type) -> int:
    return of.precision or _DIGITS.get(of.engine or "", _MOST_DIGITS_OF_INTEGER)
