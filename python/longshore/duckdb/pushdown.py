"""The columns and predicates that a query's text has for the tables that it reads.

Types of Python objects are inferred by looking at every row, before the query is bound. A column that the text does not
name need not be looked at.
"""

import datetime as dt
import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Literal, cast

from longshore.frames.pushdown import Constant, Predicate, Pushdown, Remainder, Span, fold_name

#: Functions that take a query, or a table's name, as text.
_TEXT_FUNCTIONS = {"query", "query_table"}


def _nodes(tree: object, without: Collection[int] = ()) -> Iterator[Mapping[str, Any]]:
    """Give a tree's objects but for those with an identity in ``without``; not recursive, as a query may be deep."""
    pending = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, dict) and id(node) not in without:
            yield node
            pending.extend(node.values())
        elif isinstance(node, list):
            pending.extend(node)


def _only_table(node: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Give the table of a SELECT that reads it alone and whole; None for any other."""
    table: Mapping[str, Any] | None = node.get("from_table")
    if node.get("type") != "SELECT_NODE" or not table or node.get("sample"):
        return None
    is_plain = table.get("type") == "BASE_TABLE" and len(table["qualified_name"]["path"]) == 1
    is_whole = not table.get("sample") and not table.get("at_clause") and not table.get("column_name_alias")
    return table if is_plain and is_whole else None


def _is_bare_star(node: Mapping[str, Any]) -> bool:
    """Whether it is a star without EXCLUDE, REPLACE and the like."""
    extras = ("exclude_list", "qualified_exclude_list", "replace_list", "rename_list", "columns", "expr")
    return node["type"] == "STAR" and not any(node[extra] for extra in extras)


#: Nodes that read columns without naming them.
_ALL_COLUMNS = {"STAR", "POSITIONAL_REFERENCE", "SHOW_REF", "PIVOT", "NATURAL"}


_NUMBERED = re.compile(r"[_:]\d+$")


def referenced_columns(tree: Mapping[str, Any], without: Collection[int] = ()) -> frozenset[str] | None:
    """Give the folded names of columns in a statement of ``json_serialize_sql``; None where it may read all.

    ``without`` are the identities of nodes to skip.

    >>> referenced_columns({"error": True}) is None
    True
    """
    if tree["error"]:
        return None
    stars = _pruned_stars(tree)
    names: set[str] = set()
    rows: set[str] = set()
    qualifiers = {fold_name(star["relation_name"]) for star in stars.values()} - {""}
    tables: set[str] = set()
    for node in _nodes(tree, without):
        if id(node) in stars:
            continue
        if _reads_all_columns(node):
            return None
        parts = [fold_name(part) for part in _parts(node)]
        names.update(parts)
        names.update(map(fold_name, node.get("using_columns", ())))
        if len(parts) == 1:
            rows.update(parts)
        if "class" not in node:
            # An expression has a class; its alias is not a table's.
            tables.update(fold_name(node[key]) for key in ("alias", "table_name") if isinstance(node.get(key), str))
    # A table's name by itself is its whole row, and the star of another name is a struct's.
    if rows & tables or not qualifiers <= tables:
        return None
    # Where several tables have a column of one name, the engine numbers it.
    if stars and any(_NUMBERED.search(name) for name in names):
        return None
    return frozenset(names | qualifiers)


def _parts(node: Mapping[str, Any]) -> Sequence[str]:
    """Give the parts of a column's name, or of that before a function's, as in ``name.upper()``."""
    if node.get("class") == "FUNCTION":
        path: list[str] = node["qualified_name"]["path"]
        return path[:-1]
    names: list[str] = node.get("column_names", [])
    return names


def _pruned_stars(tree: object) -> dict[int, Mapping[str, Any]]:
    """Give the stars of queries within others, which name the columns that they read of them."""
    stars = {}
    for node in _nodes(tree):
        inner = _inner_query(node)
        # DISTINCT is a modifier, and so is ORDER BY ALL.
        if inner is None or inner.get("type") != "SELECT_NODE" or any(map(_reads_every_column, inner["modifiers"])):
            continue
        if inner["aggregate_handling"] == "STANDARD_HANDLING":
            stars.update({id(item): item for item in inner["select_list"] if _is_bare_star(item)})
    return stars


def _inner_query(node: Mapping[str, Any]) -> Any:
    """Give the query of a derived table, of a common table expression, or of an EXISTS."""
    if node.get("type") == "SUBQUERY" and node.get("subquery_type", "EXISTS") == "EXISTS":
        return node["subquery"]["node"]
    is_named = bool(node.get("aliases")) or bool(node.get("key_targets"))
    return None if is_named else node.get("query_node")


def _reads_every_column(modifier: Mapping[str, Any]) -> bool:
    # A number is a column's position.
    if any(order["expression"]["type"] == "VALUE_CONSTANT" for order in modifier.get("orders") or ()):
        return True
    return modifier["type"] not in {"ORDER_MODIFIER", "LIMIT_MODIFIER", "LIMIT_PERCENT_MODIFIER"}


def _reads_all_columns(node: Mapping[str, Any]) -> bool:
    # The type of a sample's size is an object, hence the test for str.
    kinds = (node.get("class"), node.get("type"), node.get("ref_type"))
    if any(isinstance(kind, str) and kind in _ALL_COLUMNS for kind in kinds):
        return True
    # New names for a table's columns, by position.
    return node.get("function_name") in _TEXT_FUNCTIONS or bool(node.get("column_name_alias"))


Node = Mapping[str, Any]

_COMPARISONS = {
    "COMPARE_EQUAL": "=",
    "COMPARE_LESSTHAN": "<",
    "COMPARE_LESSTHANOREQUALTO": "<=",
    "COMPARE_GREATERTHAN": ">",
    "COMPARE_GREATERTHANOREQUALTO": ">=",
}
_MIRRORED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

_TIMESTAMP_TYPES = {"DATE", "TIMESTAMP", "DATETIME"}

#: Functions in a FROM that do not read tables or the catalogue.
_TABLE_FUNCTIONS = {"range", "generate_series", "unnest", "read_parquet", "parquet_scan", "read_csv", "read_csv_auto"}
_TABLE_FUNCTIONS |= {"read_json", "read_json_auto", "read_ndjson", "read_text", "read_blob", "glob"}

#: How the names of the catalogue's tables begin.
_CATALOGUES = ("duckdb_", "pragma_", "sqlite_", "pg_")

_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d:\d\d(\.\d{1,6})?)?")

#: A pattern of LIKE without special characters but for a % at its ends.
_PATTERN = re.compile(r"(%?)([^%_\\]+)(%?)", re.DOTALL)

_LIKE_OPERATORS: Mapping[tuple[bool, bool], Literal["=", "start", "end", "anywhere"]] = {
    (False, False): "=",
    (False, True): "start",
    (True, False): "end",
    (True, True): "anywhere",
}


#: The bytes next to a predicate that can be replaced.
_BEFORE = {b" ", b"\n", b"\t", b"("}
_AFTER = {b" ", b"\n", b"\t", b")", b";", b""}


@dataclass(frozen=True)
class Parameter:
    """A value that comes with the query."""

    name: str


@dataclass(frozen=True)
class Comparison:
    """A column compared with a constant or a parameter, as the text has it."""

    column: str
    operator: str
    operand: Constant | Parameter
    node: Node
    #: Its bytes in the text, if these can be replaced without changing anything around them.
    span: Span | None

    def predicate(self, params: Mapping[str, object]) -> Predicate | None:
        """Give the predicate; None where the constant's meaning is not known."""
        is_parameter = isinstance(self.operand, Parameter)
        constant = _constant(params.get(self.operand.name)) if isinstance(self.operand, Parameter) else self.operand
        if self.operator == "LIKE":
            return self._like(constant)
        if isinstance(constant, str) and self.operator != "=":
            # A parameter's text is compared as a text.
            constant = None if is_parameter else _timestamp(constant)
        return None if constant is None else Predicate(self.column, cast("Any", self.operator), constant)

    def _like(self, pattern: Constant | None) -> Predicate | None:
        if not isinstance(pattern, str) or not (match := _PATTERN.fullmatch(pattern)):
            return None
        return Predicate(self.column, _LIKE_OPERATORS[bool(match[1]), bool(match[3])], match[2])


def comparisons(tree: object, text: bytes) -> dict[str, list[Comparison]]:
    """Give the comparisons in the WHERE of a SELECT over one table, for each that is read once, by its folded name.

    ``tree`` is what ``json_serialize_sql`` says of ``text``.
    """
    nodes = list(_nodes(tree))
    if any(map(_may_read_by_text, nodes)):
        return {}
    times = Counter(fold_name(node["table_name"]) for node in nodes if isinstance(node.get("table_name"), str))
    # A common table expression's name may be a table's, too.
    times.update({fold_name(node["key"]): 2 for node in nodes if isinstance(node.get("key"), str)})
    outer = set(map(id, _outer(tree)))
    tables: dict[str, list[Comparison]] = {}
    for node in nodes:
        table = _only_table(node) if node.get("where_clause") else None
        if table is not None and times[name := fold_name(table["table_name"])] == 1:
            reader = _ConjunctReader(fold_name(table.get("alias") or name), text if id(node) in outer else b"")
            tables[name] = [each for part in _conjuncts(node["where_clause"]) for each in reader.read(part)]
    return tables


def _may_read_by_text(node: Node) -> bool:
    """Whether it may read or describe a table that the statement does not name as one."""
    if node.get("type") == "TABLE_FUNCTION":
        return node["function"].get("function_name") not in _TABLE_FUNCTIONS
    is_table = node.get("type") == "BASE_TABLE"
    if is_table and (len(node["qualified_name"]["path"]) > 1 or fold_name(node["table_name"]).startswith(_CATALOGUES)):
        return True
    return node.get("function_name") in _TEXT_FUNCTIONS


def _outer(tree: object) -> Iterator[Node]:
    """Give the SELECTs whose text does not name a result's column: the outermost, derived tables, CTEs."""
    pending = [statement["node"] for node in _nodes(tree) for statement in node.get("statements") or ()]
    while pending:
        node = pending.pop()
        if node.get("type") != "SELECT_NODE":
            continue
        yield node
        pending += [each["value"]["query_node"] for each in (node.get("cte_map") or {}).get("map") or ()]
        if (node.get("from_table") or {}).get("type") == "SUBQUERY":
            pending.append(node["from_table"]["subquery"]["node"])


def group_keys(tree: object) -> frozenset[str]:
    """Give the folded names of columns in GROUP BY and DISTINCT."""
    columns: list[Node] = []
    for node in _nodes(tree):
        columns += node.get("group_expressions") or ()
        is_distinct = any(each.get("type") == "DISTINCT_MODIFIER" for each in node.get("modifiers") or ())
        # GROUP BY ALL.
        if is_distinct or node.get("aggregate_handling") == "FORCE_AGGREGATES":
            columns += node.get("select_list") or ()
        if node.get("distinct") is True:
            columns += [each["expression"] for each in node.get("arguments") or ()]
    return frozenset(fold_name(each["column_names"][-1]) for each in columns if each.get("type") == "COLUMN_REF")


def averaged_columns(tree: object) -> frozenset[str]:
    """Give the folded names of columns whose means are asked for."""
    means = [node for node in _nodes(tree) if node.get("function_name") in {"avg", "mean"}]
    columns = [each["expression"] for node in means for each in node.get("arguments") or ()]
    return frozenset(fold_name(each["column_names"][-1]) for each in columns if each.get("type") == "COLUMN_REF")


def _conjuncts(node: Node) -> Iterator[Node]:
    pending = [node]
    while pending:
        part = pending.pop()
        if part["type"] == "CONJUNCTION_AND":
            pending.extend(part["children"])
        else:
            yield part


class _ConjunctReader:
    """The reader of one WHERE's conjuncts."""

    def __init__(self, table: str, text: bytes) -> None:
        self._table = table
        self._text = text

    def read(self, node: Node) -> Iterator[Comparison]:
        if operator := _COMPARISONS.get(node["type"]):
            yield from self._pair(node, node["left"], operator, node["right"])
            yield from self._pair(node, node["right"], _MIRRORED[operator], node["left"])
        elif node["type"] == "COMPARE_BETWEEN":
            yield from self._pair(node, node["input"], ">=", node["lower"])
            yield from self._pair(node, node["input"], "<=", node["upper"])
        elif node.get("function_name") == "~~" and len(node.get("arguments") or ()) == _PAIR:
            left, right = (each["expression"] for each in node["arguments"])
            yield from self._pair(node, left, "LIKE", right)

    def _pair(self, node: Node, left: Node, operator: str, right: Node) -> Iterator[Comparison]:
        column, operand = self._column(left), _operand(right)
        if column is not None and operand is not None:
            yield Comparison(column, operator, operand, node, self._span(left, operator, right, operand))

    def _column(self, node: Node) -> str | None:
        if node["type"] != "COLUMN_REF":
            return None
        *table, column = map(fold_name, node["column_names"])
        return column if table in ([], [self._table]) else None

    def _span(self, left: Node, operator: str, right: Node, operand: object) -> Span | None:
        """Give the bytes of a predicate of texts that is written as a column, the operator and a literal alone."""
        if right["type"] != "VALUE_CONSTANT" or not isinstance(operand, str) or operator not in {"=", "LIKE"}:
            return None
        (start, middle), (other, end) = _bytes(left), _bytes(right)
        text = self._text
        literal = "'" + operand.replace("'", "''") + "'"
        is_plain = 0 < start < middle <= other < end and text[other:end] == literal.encode()
        # Its replacement must not grow together with its neighbours.
        is_apart = text[start - 1 : start] in _BEFORE and text[end : end + 1] in _AFTER
        is_alone = text[middle:other].strip().upper() == operator.encode()
        return (start, end) if is_plain and is_apart and is_alone else None


#: The arguments of a binary operator.
_PAIR = 2


def _bytes(node: Node) -> Span:
    start = node["query_location"]
    return start, start + node["query_location_length"]


def _operand(node: Node) -> Constant | Parameter | None:
    if node["type"] == "VALUE_PARAMETER":
        return Parameter(node["identifier"])
    if node["type"] == "VALUE_CONSTANT":
        return _literal(node)
    is_timestamp = node["type"] == "OPERATOR_CAST" and node["type_expr"].get("type_name") in _TIMESTAMP_TYPES
    if is_timestamp and node["child"]["type"] == "VALUE_CONSTANT" and not node.get("try_cast"):
        text = _literal(node["child"])
        value = _timestamp(text) if isinstance(text, str) else None
        # A date is without a time of day, whatever its text has.
        is_date = value is not None and node["type_expr"]["type_name"] == "DATE"
        return value.replace(hour=0, minute=0, second=0, microsecond=0) if value and is_date else value
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


def _constant(value: object) -> Constant | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, float):
        return Decimal(value) if value - value == 0 else None
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return None
    return value if isinstance(value, int | str | dt.datetime) else None


def _timestamp(text: str) -> dt.datetime | None:
    """Read a timestamp as the engine does; None for one that it may read otherwise."""
    try:
        return dt.datetime.fromisoformat(text) if _TIMESTAMP.fullmatch(text) else None
    except ValueError:
        return None


#: The texts in the cache, and the length of the longest.
_CACHE_SIZE = 64
_LONGEST_TEXT = 4096


class Syntax:
    """A statement's columns and predicates."""

    def __init__(self, tree: Mapping[str, Any], text: str) -> None:
        """Take what ``json_serialize_sql`` says of ``text``."""
        #: The folded names of the columns that it may read; None for all.
        self.columns = referenced_columns(tree)
        self._group_keys, self._means = group_keys(tree), averaged_columns(tree)
        self._comparisons = comparisons(tree, text.encode())
        tables = (node["table_name"] for node in _nodes(tree) if node.get("type") == "BASE_TABLE")
        #: How often it reads each table, by its folded name; None where that is not known.
        self._reads = None if tree["error"] else Counter(fold_name(table) for table in tables)
        self._remainders = {table: _remainder(tree, each) for table, each in self._comparisons.items()}

    def reads(self, table: str, text: str) -> int:
        """Give how often the statement reads a table; where that is not known, how often the text has its name."""
        if self._reads is not None:
            return self._reads[fold_name(table)]
        return len(re.findall(rf"(?<!\w){re.escape(table)}(?!\w)", text, re.IGNORECASE))

    def pushdown(self, table: str, params: Mapping[str, object]) -> Pushdown:
        """Give what the statement does with a table, for these values of its parameters."""
        name = fold_name(table)
        predicates = [each.predicate(params) for each in self._comparisons.get(name, ())]
        known = tuple(each for each in predicates if each is not None)
        return Pushdown(self.columns, known, self._group_keys, self._means, self._remainders.get(name))


_syntaxes: dict[str, Syntax] = {}


def serialize(connection: Any, query: str) -> str:
    """Give the syntax of a statement as JSON, or an error as JSON."""
    ((text,),) = connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [query]).fetchall()
    return str(text)


def syntax_of(text: str, serialized: Callable[[], str]) -> Syntax:
    """Give the syntax of a statement, or of the last ones as it was: parsing one costs most of a millisecond."""
    if (known := _syntaxes.get(text)) is not None:
        return known
    syntax = Syntax(json.loads(serialized()), text)
    if len(text) <= _LONGEST_TEXT:
        if len(_syntaxes) >= _CACHE_SIZE:
            oldest, *_ = _syntaxes
            _syntaxes.pop(oldest, None)
        _syntaxes[text] = syntax
    return syntax


def _remainder(tree: Mapping[str, Any], comparisons: Sequence[Comparison]) -> Remainder | None:
    known = [(each, each.span) for each in comparisons if each.span is not None and each.predicate({}) is not None]
    if not known:
        return None
    without = {id(each.node) for each, _ in known}
    return Remainder(tuple(span for _, span in known), referenced_columns(tree, without))
