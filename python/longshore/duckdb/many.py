"""Many rows of parameters into a table by one statement."""

from collections.abc import Sequence
from typing import Any

from longshore.sources.many import Insert, Kinds, Row

#: Whether a row may refer to one that is inserted before it, or the table be another database's.
_APART = (
    "SELECT EXISTS (FROM duckdb_constraints() WHERE constraint_type = 'FOREIGN KEY' AND referenced_table = table_name) "
    "OR EXISTS (FROM duckdb_databases() WHERE type <> 'duckdb')"
)


def takes_rows_at_once(connection: Any) -> bool:
    """Whether one INSERT of many rows does what one of each would do."""
    (is_apart,) = connection.execute(_APART).fetchone()
    return not is_apart


def insert_rows(connection: Any, insert: Insert, rows: Sequence[Row], kinds: Kinds | None) -> int:
    """Insert rows out of a list for each place, whose values get one type; where that may change one, row by row."""
    if kinds is None or not any(kinds):
        connection.executemany(insert.by_place, rows)
    else:
        values = ", ".join("unnest(?)" if kind else "NULL" for kind in kinds)
        lists = [list(column) for column, kind in zip(zip(*rows, strict=True), kinds, strict=True) if kind]
        connection.execute(f"{insert.head} SELECT {values}", lists)
    return len(rows)
