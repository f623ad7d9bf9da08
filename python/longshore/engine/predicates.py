"""The predicates of a query, from its syntax alone: columns of one table that its WHERE compares with constants."""

import datetime as dt
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Literal, cast

from longshore.engine.nodes import BY_TEXT, nodes, only_table
from longshore.frames.selected import folded
from longshore.frames.use import Constant, Predicate, Span

__all__ = ["Found", "found", "keys"]

Node = Mapping[str, Any]

_COMPARISONS = {
    "COMPARE_EQUAL": "=",
    "COMPARE_LESSTHAN": "<",
    "COMPARE_LESSTHANOREQUALTO": "<=",
    "COMPARE_GREATERTHAN": ">",
    "COMPARE_GREATERTHANOREQUALTO": ">=",
}
_TURNED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

_MOMENTS = {"DATE", "TIMESTAMP", "DATETIME"}

#: Functions in a FROM that read files, or nothing. Others may read tables, or the catalogue.
_PLAIN_FUNCTIONS = {"range", "generate_series", "unnest", "read_parquet", "parquet_scan", "read_csv", "read_csv_auto"}
_PLAIN_FUNCTIONS |= {"read_json", "read_json_auto", "read_ndjson", "read_text", "read_blob", "glob"}

#: What the names of the catalogue's own tables begin with.
_CATALOGUES = ("duckdb_", "pragma_", "sqlite_", "pg_")

_MOMENT = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d:\d\d(\.\d{1,6})?)?")

#: A pattern of LIKE that is a text with nothing special in it, and perhaps any characters before and behind.
_PATTERN = re.compile(r"(%?)([^%_\\]+)(%?)", re.DOTALL)

_PLACES: Mapping[tuple[bool, bool], Literal["=", "start", "end", "anywhere"]] = {
    (False, False): "=",
    (False, True): "start",
    (True, False): "end",
    (True, True): "anywhere",
}


_BEFORE = {b" ", b"\n", b"\t", b"("}
_BEHIND = {b" ", b"\n", b"\t", b")", b";", b""}


@dataclass(frozen=True)
class Parameter:
    """A value that comes with the query."""

    name: str


@dataclass(frozen=True)
class Found:
    """A column beside a constant or a parameter, as the text has it."""

    column: str
    operator: str
    operand: Constant | Parameter
    node: Node
    #: Where it stands, if it can be left out without changing anything around it.
    span: Span | None

    def predicate(self, params: Mapping[str, object]) -> Predicate | None:
        """Give what it says; None where that is not known."""
        is_given = isinstance(self.operand, Parameter)
        constant = _given(params.get(self.operand.name)) if isinstance(self.operand, Parameter) else self.operand
        if self.operator == "LIKE":
            return self._like(constant)
        if isinstance(constant, str) and self.operator != "=":
            # A parameter's text is compared as a text.
            constant = None if is_given else _moment(constant)
        return None if constant is None else Predicate(self.column, cast("Any", self.operator), constant)

    def _like(self, pattern: Constant | None) -> Predicate | None:
        if not isinstance(pattern, str) or not (found := _PATTERN.fullmatch(pattern)):
            return None
        return Predicate(self.column, _PLACES[bool(found[1]), bool(found[3])], found[2])


def found(tree: object, text: bytes) -> dict[str, list[Found]]:
    """Give what the WHERE of a SELECT says of its one table, for each that a statement reads once, by its folded name.

    ``tree`` is what ``json_serialize_sql`` says of ``text``.
    """
    every = list(nodes(tree))
    if any(map(_may_read_by_text, every)):
        return {}
    times = Counter(folded(node["table_name"]) for node in every if isinstance(node.get("table_name"), str))
    # A common table expression's name may be a table's, too.
    times.update({folded(node["key"]): 2 for node in every if isinstance(node.get("key"), str)})
    outer = set(map(id, _outer(tree)))
    tables: dict[str, list[Found]] = {}
    for node in every:
        table = only_table(node) if node.get("where_clause") else None
        if table is not None and times[name := folded(table["table_name"])] == 1:
            reader = _Reader(folded(table.get("alias") or name), text if id(node) in outer else b"")
            tables[name] = [each for part in _conjuncts(node["where_clause"]) for each in reader.read(part)]
    return tables


def _may_read_by_text(node: Node) -> bool:
    """Whether it may read a table that the statement does not name as one, or tell of one."""
    if node.get("type") == "TABLE_FUNCTION":
        return node["function"].get("function_name") not in _PLAIN_FUNCTIONS
    is_table = node.get("type") == "BASE_TABLE"
    if is_table and (len(node["qualified_name"]["path"]) > 1 or folded(node["table_name"]).startswith(_CATALOGUES)):
        return True
    return node.get("function_name") in BY_TEXT


def _outer(tree: object) -> Iterator[Node]:
    """Give the SELECTs whose text names no column: the statement's own, its derived tables, its table expressions."""
    pending = [statement["node"] for node in nodes(tree) for statement in node.get("statements") or ()]
    while pending:
        node = pending.pop()
        if node.get("type") != "SELECT_NODE":
            continue
        yield node
        pending += [each["value"]["query_node"] for each in (node.get("cte_map") or {}).get("map") or ()]
        if (node.get("from_table") or {}).get("type") == "SUBQUERY":
            pending.append(node["from_table"]["subquery"]["node"])


def keys(tree: object) -> frozenset[str]:
    """Give the folded names of columns by whose values rows are grouped or told apart."""
    columns: list[Node] = []
    for node in nodes(tree):
        columns += node.get("group_expressions") or ()
        if any(each.get("type") == "DISTINCT_MODIFIER" for each in node.get("modifiers") or ()):
            columns += node.get("select_list") or ()
        if node.get("distinct") is True:
            columns += [each["expression"] for each in node.get("arguments") or ()]
    return frozenset(folded(each["column_names"][-1]) for each in columns if each.get("type") == "COLUMN_REF")


def _conjuncts(node: Node) -> Iterator[Node]:
    pending = [node]
    while pending:
        part = pending.pop()
        if part["type"] == "CONJUNCTION_AND":
            pending.extend(part["children"])
        else:
            yield part


class _Reader:
    """Reads the conjuncts of one WHERE."""

    def __init__(self, table: str, text: bytes) -> None:
        self._table = table
        self._text = text

    def read(self, node: Node) -> Iterator[Found]:
        if operator := _COMPARISONS.get(node["type"]):
            yield from self._pair(node, node["left"], operator, node["right"])
            yield from self._pair(node, node["right"], _TURNED[operator], node["left"])
        elif node["type"] == "COMPARE_BETWEEN":
            yield from self._pair(node, node["input"], ">=", node["lower"])
            yield from self._pair(node, node["input"], "<=", node["upper"])
        elif node.get("function_name") == "~~" and len(node.get("arguments") or ()) == _PAIR:
            left, right = (each["expression"] for each in node["arguments"])
            yield from self._pair(node, left, "LIKE", right)

    def _pair(self, node: Node, left: Node, operator: str, right: Node) -> Iterator[Found]:
        column, operand = self._column(left), _operand(right)
        if column is not None and operand is not None:
            yield Found(column, operator, operand, node, self._span(left, operator, right, operand))

    def _column(self, node: Node) -> str | None:
        if node["type"] != "COLUMN_REF":
            return None
        *table, column = map(folded, node["column_names"])
        return column if table in ([], [self._table]) else None

    def _span(self, left: Node, operator: str, right: Node, operand: object) -> Span | None:
        """Tell where a predicate of texts stands that is written plainly: a column, the operator, and a literal."""
        if right["type"] != "VALUE_CONSTANT" or not isinstance(operand, str) or operator not in {"=", "LIKE"}:
            return None
        (start, middle), (other, end) = _place(left), _place(right)
        text = self._text
        literal = "'" + operand.replace("'", "''") + "'"
        is_plain = 0 < start < middle <= other < end and text[other:end] == literal.encode()
        # What takes its place must not grow together with what is beside it.
        is_apart = text[start - 1 : start] in _BEFORE and text[end : end + 1] in _BEHIND
        is_alone = text[middle:other].strip().upper() == operator.encode()
        return (start, end) if is_plain and is_apart and is_alone else None


#: What an operator has on its sides.
_PAIR = 2


def _place(node: Node) -> Span:
    start = node["query_location"]
    return start, start + node["query_location_length"]


def _operand(node: Node) -> Constant | Parameter | None:
    if node["type"] == "VALUE_PARAMETER":
        return Parameter(node["identifier"])
    if node["type"] == "VALUE_CONSTANT":
        return _literal(node)
    is_moment = node["type"] == "OPERATOR_CAST" and node["type_expr"].get("type_name") in _MOMENTS
    if is_moment and node["child"]["type"] == "VALUE_CONSTANT" and not node.get("try_cast"):
        text = _literal(node["child"])
        moment = _moment(text) if isinstance(text, str) else None
        # A date has no time of day, whatever its text has.
        is_day = moment is not None and node["type_expr"]["type_name"] == "DATE"
        return moment.replace(hour=0, minute=0, second=0, microsecond=0) if moment and is_day else moment
    return None


def _literal(node: Node) -> Constant | None:
    literal = node.get("literal") or {}
    match literal.get("kind"):
        case "INTEGER" | "NUMERIC" as kind:
            return _number(literal["text"], int if kind == "INTEGER" else Decimal)
        case "STRING":
            return str(literal["text"])
        case _:
            return None


def _number(text: str, kind: type[int | Decimal]) -> int | Decimal | None:
    try:
        return kind(text)
    except (ValueError, InvalidOperation):
        return None


def _given(value: object) -> Constant | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, float):
        return Decimal(value) if value - value == 0 else None
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return None
    return value if isinstance(value, int | str | dt.datetime) else None


def _moment(text: str) -> dt.datetime | None:
    """Read a moment as the engine does; None for one that it may read otherwise."""
    try:
        return dt.datetime.fromisoformat(text) if _MOMENT.fullmatch(text) else None
    except ValueError:
        return None
