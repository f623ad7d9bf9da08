"""Where the engine would compare a column otherwise than its database: what is done about it, or told."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from sqlglot import exp
from sqlglot.optimizer.scope import Scope

from longshore.engine.remote.lineage import Found, Lineage
from longshore.engine.remote.literals import Params, Spelled, constant
from longshore.engine.remote.references import Reference
from longshore.engine.remote.text import Edit
from longshore.engine.remote.types import Column, Table, Unsafe
from longshore.errors import NotSupportedError

__all__ = ["Semantics", "semantics"]

_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ)
#: What sees the padding of its first operand.
_PATTERNS = (exp.Like, exp.ILike, exp.RegexpLike, exp.RegexpILike, exp.RegexpFullMatch, exp.SimilarTo)
#: What sees the padding of each.
_BYTES = (exp.Concat, exp.ConcatWs, exp.Encode)
_ENDS = (exp.Max, exp.Min)
#: What gives one of its arguments, with its padding.
_CHOICES = (exp.Paren, exp.Coalesce, exp.Case, exp.If, exp.Nullif, exp.Greatest, exp.Least, *_ENDS)


class _Kind(Enum):
    """What decides whether blanks at the end count in a comparison."""

    PADDED = "char(n)"
    VARYING = "varchar"
    CONSTANT = "constant"
    OTHER = "other"


@dataclass
class Semantics:
    """What makes the engine's query mean what the databases mean."""

    edits: list[Edit] = field(default_factory=list)
    #: Values of parameters that blanks are taken from, by name, or by place from 0.
    stripped: dict[Any, str] = field(default_factory=dict)
    #: The columns that the engine compares byte by byte, and their databases do not, with their collations.
    bytewise: dict[str, str] = field(default_factory=dict)

    def params(self, params: Params) -> Params:
        """Give the parameters of the engine's query."""
        if isinstance(params, Mapping):
            return {name: self.stripped.get(name, value) for name, value in params.items()}
        return params and [self.stripped.get(at, value) for at, value in enumerate(params)]


def semantics(
    trees: Sequence[exp.Expression],
    tables: Sequence[tuple[Reference, Table]],
    gone: Sequence[exp.Expression],
    params: Params,
) -> Semantics:
    """Look at what the engine does with the columns of ``tables``; ``gone`` are the parts that a source answers."""
    found = Semantics()
    if not any(_is_own(column) for _, table in tables for column in table.columns):
        return found
    away = {id(node) for part in gone for node in part.walk()}
    look = _Look(Lineage(trees, tables), params, found)
    for node, scope in look.lineage.nodes():
        if id(node) not in away:
            look.at(node, scope)
    look.end(trees, away)
    return found


class _Look:
    """One look at a query."""

    def __init__(self, lineage: Lineage, params: Params, found: Semantics) -> None:
        self.lineage = lineage
        self._params = params
        self._found = found
        #: Placeholders that are compared with a padded column, by their names.
        self._placeholders: dict[str, list[exp.Expression]] = {}

    def at(self, node: exp.Expression, scope: Scope) -> None:
        """Look at one expression."""
        for operand in _padded(node):
            self._pad(operand, scope)
        for one, other in _compared(node):
            self._compare(one, other, scope)
        for equal in self._equals(node, scope):
            found = equal if equal is None or isinstance(equal, Found) else self.lineage.find(equal, scope)
            if found is not None and found.column.collation is not None:
                self._found.bytewise[str(found)] = found.column.collation

    def end(self, trees: Sequence[exp.Expression], away: set[int]) -> None:
        """Take the blanks from parameters, which are constants as well."""
        for name, compared in self._placeholders.items():
            everywhere = [one for tree in trees for one in tree.find_all(exp.Placeholder) if one.name == name]
            if len([one for one in everywhere if id(one) not in away]) > len(compared):
                message = (
                    f"the parameter {name} has blanks at its end, which mean nothing to a char(n) column and "
                    "something elsewhere in the query; give it twice, or without them"
                )
                raise NotSupportedError(message)
            key = int(name) - 1 if name.isdecimal() else name
            self._found.stripped[key] = constant(compared[0], self._params).rstrip(" ")

    def _pad(self, node: Any, scope: Scope) -> None:
        """Give a char(n) its padding where PostgreSQL sees it."""
        node, scope = self._inner(node, scope)
        if isinstance(node, _CHOICES):
            for one in _branches(node):
                self._pad(one, scope)
        if not isinstance(node, exp.Column):
            return
        found = self.lineage.find(node, scope)
        if found is None or found.column.padded is None:
            return
        if found.column.padded == 0:
            hint = f"CAST({found.column.name} AS VARCHAR) is the text without them, here and in PostgreSQL"
            message = (
                f"{found} is a bpchar without a length: LIKE, regular expressions and concat see the blanks at its "
                f"end, which sql does not have\nHint: {hint}"
            )
            raise NotSupportedError(message, hint=hint)
        self._wrap(node, "rpad(", f", {found.column.padded}, ' ')")

    def _compare(self, one: exp.Expression, other: exp.Expression, scope: Scope) -> None:
        """Take the blanks from what is compared with a char(n), unless that is a text."""
        kinds = {self._kind(one, scope), self._kind(other, scope)}
        if _Kind.PADDED in kinds and _Kind.OTHER not in kinds:
            self._trim(one, scope)
            self._trim(other, scope)

    def _kind(self, node: Any, scope: Scope) -> "_Kind":
        """Tell what a value is to PostgreSQL."""
        node, scope = self._inner(node, scope)
        if isinstance(node, exp.Null) or _text(node, self._params) is not None:
            return _Kind.CONSTANT
        if isinstance(node, _CHOICES):
            kinds = {self._kind(one, scope) for one in _branches(node)} - {_Kind.CONSTANT}
            # The greatest of varchar is a text.
            known = {_Kind.PADDED} if isinstance(node, _ENDS) else {_Kind.PADDED, _Kind.VARYING}
            return min(kinds, key=lambda kind: kind.value) if kinds and kinds <= known else _Kind.OTHER
        found = self.lineage.find(node, scope)
        if found is not None and found.column.padded is not None:
            return _Kind.PADDED
        return _Kind.VARYING if found is not None and found.column.type.varying else _Kind.OTHER

    def _inner(self, node: Any, scope: Scope) -> tuple[Any, Scope]:
        """Give a value without parentheses; of a subquery, its column."""
        node = node.unnest()
        inner = self.lineage.scope(node) if isinstance(node, exp.Select) else None
        return (node, scope) if inner is None else self._inner(node.expressions[0].unalias(), inner)

    def _trim(self, node: Any, scope: Scope) -> None:
        """Take the blanks from the end of a value."""
        node, scope = self._inner(node, scope)
        text = _text(node, self._params)
        if text is not None and text.endswith(" "):
            if isinstance(node, exp.Placeholder):
                self._placeholders.setdefault(node.name, []).append(node)
            else:
                stripped = text.rstrip(" ").replace("'", "''")
                self._found.edits.append(Edit(node.meta["start"], node.meta["end"], f"'{stripped}'"))
        elif isinstance(node, _CHOICES) and not isinstance(node, _ENDS):
            for one in _branches(node):
                self._trim(one, scope)
        elif isinstance(node, exp.Column) and self._kind(node, scope) is _Kind.VARYING:
            self._wrap(node, "rtrim(", ", ' ')")

    def _wrap(self, node: exp.Column, before: str, after: str) -> None:
        start, end = node.parts[0].meta["start"], node.parts[-1].meta["end"]
        self._found.edits += [Edit(start, start - 1, before), Edit(end + 1, end, after)]

    def _equals(self, node: exp.Expression, scope: Scope) -> Iterator[exp.Expression | Found | None]:
        """Give what is compared by its bytes, with another or with itself in other rows."""
        for one, other in _compared(node):
            yield from (one, other)
        if isinstance(node, exp.Like):
            yield from (node.this, node.expression)
        elif isinstance(node, exp.Join):
            names = {name.name.lower() for name in node.args.get("using") or []}
            inputs = self.lineage.inputs(scope)
            if node.method.upper() == "NATURAL":
                names = {name for name, count in Counter(name for name, _ in inputs).items() if count > 1}
            yield from (found for name, found in inputs if name in names)
        elif isinstance(node, exp.Window):
            yield from node.args.get("partition_by") or []
        elif isinstance(node, exp.Distinct) and isinstance(node.parent, exp.AggFunc):
            yield from node.expressions
        elif isinstance(node, exp.SetOperation) and not isinstance(node.parent, exp.SetOperation):
            every = isinstance(node, exp.Union) and not node.args.get("distinct")
            yield from () if every else (found for _, found in self.lineage.outputs(node))
        elif isinstance(node, exp.Select):
            yield from self._grouped(node)

    def _grouped(self, node: exp.Select) -> Iterator[exp.Expression | Found | None]:
        distinct = node.args.get("distinct")
        if distinct is not None and distinct.args.get("on") is not None:
            yield from distinct.args["on"].expressions
        elif distinct is not None:
            yield from (found for _, found in self.lineage.outputs(node))
        group = node.args.get("group")
        if group is None:
            return
        plain = [item for item in node.expressions if not item.find(exp.AggFunc)]
        yield from plain if group.args.get("all") else ()
        for key in group.expressions:
            if isinstance(key, exp.Literal) and not key.is_string and key.name.isdecimal():
                yield from node.expressions[int(key.name) - 1 : int(key.name)]
            else:
                yield key


def _text(node: Any, params: Params) -> str | None:
    """Give a constant text; None for what is none."""
    try:
        value = constant(node, params)
    except Unsafe:
        return None
    if isinstance(value, Spelled):
        return value.text if isinstance(node, exp.Literal) else None
    return value if isinstance(value, str) and isinstance(node, exp.Placeholder) else None


def _is_own(column: Column) -> bool:
    return column.padded is not None or column.collation is not None


def _padded(node: exp.Expression) -> Sequence[exp.Expression]:
    """Give the operands of which PostgreSQL sees the padding."""
    if isinstance(node, _PATTERNS):
        return [node.this]
    if isinstance(node, _BYTES):
        return [node.this] if isinstance(node, exp.Encode) else node.expressions
    if isinstance(node, exp.Cast) and node.to.is_type(exp.DataType.Type.VARBINARY, exp.DataType.Type.BINARY):
        return [node.this]
    return []


def _branches(node: exp.Expression) -> list[exp.Expression]:
    """Give the values of which an expression gives one."""
    if isinstance(node, exp.Case):
        return [*(one.args["true"] for one in node.args["ifs"]), *filter(None, [node.args.get("default")])]
    if isinstance(node, exp.If):
        return [node.args["true"], *filter(None, [node.args.get("false")])]
    if isinstance(node, exp.Nullif):
        return [node.this]
    return [node.this, *(node.args.get("expressions") or [])]


def _compared(node: exp.Expression) -> Iterator[tuple[exp.Expression, exp.Expression]]:
    """Give the pairs that are compared."""
    if isinstance(node, (*_COMPARISONS, exp.Nullif)):
        left, right = node.this.unnest(), node.expression.unnest()
        right = right.this if isinstance(right, exp.Any | exp.All) else right
        if isinstance(left, exp.Tuple) and isinstance(right, exp.Tuple):
            yield from zip(left.expressions, right.expressions, strict=False)
        else:
            yield left, right
    elif isinstance(node, exp.In):
        query = node.args.get("query")
        yield from ((node.this, one) for one in ([query] if query is not None else node.expressions))
    elif isinstance(node, exp.Between):
        yield from ((node.this, node.args[end]) for end in ("low", "high"))
    elif isinstance(node, exp.Case) and node.this is not None:
        yield from ((node.this, one.this) for one in node.args["ifs"])
