"""``CASE``, ``coalesce`` and ``nullif``: one of several values, all of which mean the same in a source."""

import dataclasses
import decimal as numbers
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from sqlglot import exp

from longshore.engine.remote.literals import Params, Spelled, constant, fitting
from longshore.engine.remote.names import Value, only
from longshore.engine.remote.types import Kind, Trust, Type, Unsafe, decimal, same_meaning

if TYPE_CHECKING:
    from longshore.engine.remote.dialect import Dialect
    from longshore.engine.remote.expressions import Test

__all__ = ["Choices"]

#: What a constant is in Python, for the engine to give it the type of what it stands beside.
_CONSTANTS: dict[Kind, tuple[type, ...]] = {
    Kind.INTEGER: (int,),
    Kind.DECIMAL: (int, numbers.Decimal),
    Kind.DOUBLE: (int, numbers.Decimal, float),
    Kind.TEXT: (str, Spelled),
    Kind.BOOLEAN: (bool,),
}
_NULL = object()
_DIGITS = 19


class Choices:
    """Writes them, with the tests and the values of the place where they stand."""

    def __init__(
        self,
        dialect: "Dialect",
        params: Params,
        test: "Callable[[exp.Expression], Test]",
        value: Callable[[exp.Expression], Value],
    ) -> None:
        """Keep how conditions and values are written."""
        self._dialect = dialect
        self._params = params
        self._test = test
        self._value = value

    def written(self, node: exp.Expression) -> Value | None:
        """Write one of the three; None for what is none of them."""
        write = self._KINDS.get(type(node))
        if write is None:
            return None
        value = write(self, node)
        groups = value.type.groups and self._dialect.groups_values
        return dataclasses.replace(value, type=dataclasses.replace(value.type, groups=groups))

    def _case(self, node: exp.Case) -> Value:
        only(node, "this", "ifs", "default")
        tests = []
        for one in node.args["ifs"]:
            only(one, "this", "true")
            compared = node.this
            condition = exp.EQ(this=compared.copy(), expression=one.this.copy()) if compared else one.this
            tests.append(self._exact(condition))
        default = node.args.get("default") or exp.Null()
        of, branches = self._together([*(one.args["true"] for one in node.args["ifs"]), default])
        whens = " ".join(f"WHEN {test} THEN {branch}" for test, branch in zip(tests, branches, strict=False))
        return Value(f"CASE {whens} ELSE {branches[-1]} END", of)

    def _coalesce(self, node: exp.Coalesce) -> Value:
        only(node, "this", "expressions")
        of, values = self._together([node.this, *node.expressions])
        if len(values) == 1:
            raise Unsafe
        return Value(f"coalesce({', '.join(values)})", of)

    def _nullif(self, node: exp.Nullif) -> Value:
        only(node, "this", "expression")
        value = self._value(node.this)
        self._together([node.this])
        test = self._exact(exp.EQ(this=node.this.copy(), expression=node.expression.copy()))
        return dataclasses.replace(value, sql=f"CASE WHEN {test} THEN NULL ELSE {value.sql} END", plain=False)

    def _exact(self, condition: exp.Expression) -> str:
        sql, trust = self._test(condition)
        if trust is not Trust.EXACT:
            raise Unsafe
        return sql

    def _together(self, nodes: Sequence[exp.Expression]) -> tuple[Type, list[str]]:
        """Write values that stand for each other, and find their common type."""
        items = [self._item(node) for node in nodes]
        types = [item.type for item in items if isinstance(item, Value)]
        constants = [item for item in items if item is not _NULL and not isinstance(item, Value)]
        of = _common(types, constants) if types else self._of_constants(constants)
        return of, [self._spelled(item, of) for item in items]

    def _item(self, node: exp.Expression) -> Any:
        if isinstance(node, exp.Null):
            return _NULL
        try:
            return constant(node, self._params)
        except Unsafe:
            return self._value(node)

    def _spelled(self, item: Any, of: Type) -> str:
        if isinstance(item, Value):
            return item.sql
        if item is _NULL:
            return "NULL"
        value = fitting(item, of)
        # Blanks at its end would mean nothing in the source.
        if of.padded and value.endswith(" "):
            raise Unsafe
        return self._dialect.literal(value, of)

    def _of_constants(self, constants: Sequence[Any]) -> Type:
        if constants and all(type(one) is int for one in constants):
            of = Type(Kind.INTEGER, equal=Trust.EXACT, order=Trust.EXACT, groups=True, nulls=True, precision=_DIGITS)
            return dataclasses.replace(of, sums=self._dialect.calculates)
        if constants and all(type(one) is Spelled for one in constants):
            return self._dialect.spelled
        raise Unsafe

    _KINDS: ClassVar[Mapping[type[exp.Expression], Callable[["Choices", Any], Value]]] = {
        exp.Case: _case,
        exp.Coalesce: _coalesce,
        exp.Nullif: _nullif,
    }


def _common(types: Sequence[Type], constants: Sequence[Any]) -> Type:
    """Find the type of columns, and of constants that take theirs; no more is known of it than of each of them."""
    first = types[0]
    for of in types:
        # A value that is NULL only when it is loaded would be taken for one.
        if not of.nulls or not (of.sums or of.equal is Trust.EXACT):
            raise Unsafe
        same_meaning(first, of)
    if any(type(one) not in _CONSTANTS.get(first.kind, ()) for one in constants):
        raise Unsafe
    if all(of == first for of in types) and (not constants or first.kind not in {Kind.INTEGER, Kind.DECIMAL}):
        return first
    if first.kind not in {Kind.INTEGER, Kind.DECIMAL}:
        raise Unsafe
    # What is unsigned and what is not are brought together otherwise by each.
    if any((of.engine or "").startswith("U") for of in types):
        raise Unsafe
    wide = _widest(types, constants) if first.kind is Kind.DECIMAL else dataclasses.replace(first, precision=_DIGITS)
    return dataclasses.replace(
        wide,
        engine=None,
        equal=min(of.equal for of in types),
        order=min(of.order for of in types),
        groups=all(of.groups for of in types),
        sums=all(of.sums for of in types),
    )


def _widest(types: Sequence[Type], constants: Sequence[Any]) -> Type:
    """Give the decimals that hold all of these."""
    sizes = [(of.precision - of.scale, of.scale) for of in types]
    for one in constants:
        exact = numbers.Decimal(one)
        if not exact.is_finite():
            raise Unsafe
        sizes.append((max(exact.adjusted() + 1, 1), max(-int(exact.as_tuple().exponent), 0)))
    before, scale = (max(size[at] for size in sizes) for at in (0, 1))
    of = decimal(before + scale, scale)
    if of.kind is Kind.OTHER:
        raise Unsafe
    return of
