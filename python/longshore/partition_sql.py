"""``partition_sql``: a query's parts, as queries."""

from typing import Any

from longshore import _core
from longshore.arguments import Number, partition, seconds, statements, without_clauses
from longshore.connectable import ConnectionLike, source
from longshore.errors import InterfaceError
from longshore.foreign import READ, refusing
from longshore.read import in_order
from longshore.target import SQLAlchemyText


@refusing(READ)
def partition_sql(
    query: str | SQLAlchemyText,
    conn: ConnectionLike,
    partition_on: str,
    partition_num: Number,
    partition_range: tuple[Any, Any] | None = None,
    *,
    timeout: float | None = None,
) -> list[str]:
    """Give queries that together return the rows that ``query`` returns, each row in one of them, NULL keys included.

    >>> import longshore
    >>> query = "SELECT n AS berth FROM generate_series(1, 100) AS n"
    >>> parts = longshore.partition_sql(query, url, "berth", 4)
    >>> len(parts), len(longshore.read_sql(parts, url))
    (4, 100)

    ``query``
        One statement without parameters, of any shape that ``read_sql(partition_on=...)`` splits.
    ``conn``
        As in ``read_sql``, whose order of the two ConnectorX has the other way round: that is recognised too.
    ``partition_on``, ``partition_num``, ``partition_range``
        As in ``read_sql``. There may be fewer parts: one where the column has one value only, or no rows.
    ``timeout``
        Seconds for the whole call.

    The list is one snapshot of the database only when one ``read_sql`` gets it whole. Queries that are run by
    themselves, on other machines or later, each see the database as it is then: a row that moves from one part's range
    into another's meanwhile is in both, or in none.

    Raises ``NotSupportedError`` with the reason for a query that cannot be split, and else as ``read_sql`` does.
    """
    query, conn = in_order(query, conn)
    text, params = without_clauses(query, None)
    if params is not None or not isinstance(text, str):
        raise InterfaceError("partition_sql takes one query, a text without parameters")
    split = partition(text, partition_on, partition_num, partition_range)
    if split is None or split["on"] is None:
        raise InterfaceError("partition_sql needs partition_on: the column of the result to split by")
    (text,) = statements(text, "query")
    return _core.partition(source=source(conn), query=text, partition=split, timeout=seconds(timeout))
