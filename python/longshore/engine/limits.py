"""The rows of a table that a LIMIT lets a query reach, from its syntax alone."""

from collections.abc import Mapping
from typing import Any

from longshore.engine.nodes import is_plain_star, nodes, only_table
from longshore.frames.selected import folded

__all__ = ["reached"]

Node = Mapping[str, Any]

#: What a SELECT may not have beside its LIMIT: with it, the first rows of the result are not those of the table.
_MORE = ("where_clause", "group_expressions", "group_sets", "having", "qualify")


def reached(tree: object) -> dict[str, int]:
    """Give how many of its first rows a statement reads of its one table, by the table's folded name.

    ``tree`` is what ``json_serialize_sql`` says of a statement that gives rows of a table as they are, and no more than
    a LIMIT allows; nothing is said of any other.
    """
    statements = next((node["statements"] for node in nodes(tree) if node.get("statements")), ())
    found = {}
    for node in (statement["node"] for statement in statements):
        table, rows = only_table(node), _rows(node)
        if table is not None and rows is not None and _gives_rows_as_they_are(node):
            found[folded(table["table_name"])] = rows
    return found


def _gives_rows_as_they_are(node: Node) -> bool:
    is_alone = not any(node[part] for part in _MORE) and node["aggregate_handling"] == "STANDARD_HANDLING"
    has_tables = bool((node.get("cte_map") or {}).get("map"))
    return is_alone and not has_tables and all(map(_is_plain, node["select_list"]))


def _is_plain(node: Node) -> bool:
    # A function may give more rows, fewer or one.
    return node["type"] in {"COLUMN_REF", "VALUE_CONSTANT"} or is_plain_star(node)


def _rows(node: Node) -> int | None:
    """Give the sum of LIMIT and OFFSET; None where there is anything else, or it is not known."""
    match node.get("modifiers"):
        case [{"type": "LIMIT_MODIFIER", "limit_type": "ROW_COUNT", "limit": limit, "offset": offset}]:
            parts = [_number(part) for part in (limit, offset) if part is not None]
            return None if limit is None or None in parts else sum(part for part in parts if part is not None)
        case _:
            return None


def _number(node: Node) -> int | None:
    literal = node.get("literal") or {}
    return int(literal["text"]) if node["type"] == "VALUE_CONSTANT" and literal.get("kind") == "INTEGER" else None
