"""Connections that a query names as databases: ``FROM conn.ships``, where ``conn`` is a variable."""

import re
from collections.abc import Mapping
from typing import Any

from longshore.connection import is_connection
from longshore.engine.scope import Scope

__all__ = ["TAKEN", "with_connections"]

#: The engine's own databases and schemas.
TAKEN = frozenset({"memory", "temp", "system", "main", "information_schema", "pg_catalog"})

_BEFORE_A_DOT = re.compile(r"""(?<![\w."'])(?:([^\W\d]\w*)|"((?:[^"]|"")+)")\s*\.""")


def with_connections(text: str, scope: Scope, attach: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Give ``attach`` with the variables and keywords that are connections, where the text has their names."""
    found: dict[str, Any] = {}
    for plain, quoted in _BEFORE_A_DOT.findall(text):
        name = plain or quoted.replace('""', '"')
        is_there, value = scope.find(name)
        if is_there and is_connection(value) and name.lower() not in TAKEN:
            found[name] = value
    if not found or not (attach is None or isinstance(attach, Mapping)):
        return attach
    given = {str(name).lower() for name in attach or {}}
    return {**{name: value for name, value in found.items() if name.lower() not in given}, **(attach or {})}
