"""The columns that a query can read: a superset, from its syntax alone.

Types of Python objects are found by looking at every row, before the query is bound. A column that the text does not
mention need not be looked at.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from longshore.frames.selected import folded

__all__ = ["mentions"]

#: Nodes that read columns which they do not name.
_OPEN = {"STAR", "POSITIONAL_REFERENCE", "SHOW_REF", "PIVOT", "NATURAL"}

#: Functions that take a query, or a table's name, as text.
_BY_TEXT = {"query", "query_table"}


def mentions(serialized: str) -> frozenset[str] | None:
    """Give the folded names in a statement of ``json_serialize_sql``; None where it may read every column.

    >>> mentions('{"error": true}') is None
    True
    """
    tree = json.loads(serialized)
    if tree["error"]:
        return None
    names: set[str] = set()
    rows: set[str] = set()
    tables: set[str] = set()
    for node in _nodes(tree):
        if _is_open(node):
            return None
        parts = [folded(part) for part in node.get("column_names", ())]
        names.update(parts)
        names.update(map(folded, node.get("using_columns", ())))
        if len(parts) == 1:
            rows.update(parts)
        if "class" not in node:
            # An expression has a class, and an alias that is no table's.
            tables.update(folded(node[key]) for key in ("alias", "table_name") if isinstance(node.get(key), str))
    # A table's name by itself is its whole row.
    return None if rows & tables else frozenset(names)


def _is_open(node: Mapping[str, Any]) -> bool:
    # The type of a sample's size is an object.
    kinds = (node.get("class"), node.get("type"), node.get("ref_type"))
    if any(isinstance(kind, str) and kind in _OPEN for kind in kinds):
        return True
    # Names of a table's columns from the first on.
    return node.get("function_name") in _BY_TEXT or bool(node.get("column_name_alias"))


def _nodes(tree: object) -> Iterator[Mapping[str, Any]]:
    """Give every object of the tree, without recursion: a query may be deep."""
    pending = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            yield node
            pending.extend(node.values())
        elif isinstance(node, list):
            pending.extend(node)
