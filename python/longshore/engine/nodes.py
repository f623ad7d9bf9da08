"""The syntax of a statement, as ``json_serialize_sql`` gives it."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

__all__ = ["BY_TEXT", "is_plain_star", "nodes", "only_table"]

#: Functions that take a query, or a table's name, as text.
BY_TEXT = {"query", "query_table"}


def nodes(tree: object, without: Collection[int] = ()) -> Iterator[Mapping[str, Any]]:
    """Give every object of the tree, without recursion: a query may be deep.

    Those whose identities are in ``without`` are left out, and so is what is in them.
    """
    pending = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, dict) and id(node) not in without:
            yield node
            pending.extend(node.values())
        elif isinstance(node, list):
            pending.extend(node)


def only_table(node: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Give the table of a SELECT that reads no other, and all of its rows; None for all else."""
    table: Mapping[str, Any] | None = node.get("from_table")
    if node.get("type") != "SELECT_NODE" or not table or node.get("sample"):
        return None
    is_plain = table.get("type") == "BASE_TABLE" and len(table["qualified_name"]["path"]) == 1
    is_whole = not table.get("sample") and not table.get("at_clause") and not table.get("column_name_alias")
    return table if is_plain and is_whole else None


def is_plain_star(node: Mapping[str, Any]) -> bool:
    """Whether it stands for columns as they are."""
    extras = ("exclude_list", "qualified_exclude_list", "replace_list", "rename_list", "columns", "expr")
    return node["type"] == "STAR" and not any(node[extra] for extra in extras)
