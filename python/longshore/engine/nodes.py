"""The syntax of a statement, as ``json_serialize_sql`` gives it."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

__all__ = ["BY_TEXT", "nodes"]

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
