"""The columns that a query can read: a superset, from its syntax alone.

Types of Python objects are found by looking at every row, before the query is bound. A column that the text does not
mention need not be looked at.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from longshore.engine.nodes import BY_TEXT, is_plain_star, nodes
from longshore.frames.selected import folded

__all__ = ["mentions"]

#: Nodes that read columns which they do not name.
_OPEN = {"STAR", "POSITIONAL_REFERENCE", "SHOW_REF", "PIVOT", "NATURAL"}


_NUMBERED = re.compile(r"[_:]\d+$")


def mentions(tree: Mapping[str, Any], without: Collection[int] = ()) -> frozenset[str] | None:
    """Give the folded names in a statement of ``json_serialize_sql``; None where it may read every column.

    ``without`` are the identities of nodes that are not looked at.

    >>> mentions({"error": True}) is None
    True
    """
    if tree["error"]:
        return None
    stars = _inner_stars(tree)
    names: set[str] = set()
    rows: set[str] = set()
    qualifiers = {folded(star["relation_name"]) for star in stars.values()} - {""}
    tables: set[str] = set()
    for node in nodes(tree, without):
        if id(node) in stars:
            continue
        if _is_open(node):
            return None
        parts = [folded(part) for part in _parts(node)]
        names.update(parts)
        names.update(map(folded, node.get("using_columns", ())))
        if len(parts) == 1:
            rows.update(parts)
        if "class" not in node:
            # An expression has a class, and an alias that is no table's.
            tables.update(folded(node[key]) for key in ("alias", "table_name") if isinstance(node.get(key), str))
    # A table's name by itself is its whole row, and a star of what is no table a struct's.
    if rows & tables or not qualifiers <= tables:
        return None
    # Where several tables have a column of one name, the engine numbers it.
    if stars and any(_NUMBERED.search(name) for name in names):
        return None
    return frozenset(names | qualifiers)


def _parts(node: Mapping[str, Any]) -> Sequence[str]:
    """Give the parts of a column's name, or what stands before a function's: a column, in ``name.upper()``."""
    if node.get("class") == "FUNCTION":
        path: list[str] = node["qualified_name"]["path"]
        return path[:-1]
    names: list[str] = node.get("column_names", [])
    return names


def _inner_stars(tree: object) -> dict[int, Mapping[str, Any]]:
    """Give the stars of queries whose columns others ask for by name: what nobody asks for need not be there."""
    found = {}
    for node in nodes(tree):
        inner = _inner_query(node)
        # DISTINCT is a modifier, and so is ORDER BY ALL.
        if inner is None or inner.get("type") != "SELECT_NODE" or any(map(_looks_at_all, inner["modifiers"])):
            continue
        if inner["aggregate_handling"] == "STANDARD_HANDLING":
            found.update({id(item): item for item in inner["select_list"] if is_plain_star(item)})
    return found


def _inner_query(node: Mapping[str, Any]) -> Any:
    """Give the query of a derived table, of a common table expression, or of an EXISTS."""
    if node.get("type") == "SUBQUERY" and node.get("subquery_type", "EXISTS") == "EXISTS":
        return node["subquery"]["node"]
    is_named = bool(node.get("aliases")) or bool(node.get("key_targets"))
    return None if is_named else node.get("query_node")


def _looks_at_all(modifier: Mapping[str, Any]) -> bool:
    # A number is a column's place.
    if any(order["expression"]["type"] == "VALUE_CONSTANT" for order in modifier.get("orders") or ()):
        return True
    return modifier["type"] not in {"ORDER_MODIFIER", "LIMIT_MODIFIER", "LIMIT_PERCENT_MODIFIER"}


def _is_open(node: Mapping[str, Any]) -> bool:
    # The type of a sample's size is an object.
    kinds = (node.get("class"), node.get("type"), node.get("ref_type"))
    if any(isinstance(kind, str) and kind in _OPEN for kind in kinds):
        return True
    # Names of a table's columns from the first on.
    return node.get("function_name") in BY_TEXT or bool(node.get("column_name_alias"))
