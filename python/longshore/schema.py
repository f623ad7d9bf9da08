"""``schema``: what a query would return, without running it."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from longshore import _core
from longshore.arguments import Query, core_params, schema_types, seconds, statements, without_clauses
from longshore.connectable import ConnectionLike, source
from longshore.connection import arrow_schema
from longshore.foreign import READ, refusing
from longshore.options import Options
from longshore.read import in_order, policy

if TYPE_CHECKING:
    import pyarrow as pa


@refusing(READ)
def schema(
    query: Query,
    conn: ConnectionLike,
    *,
    params: Sequence[Any] | Mapping[str, Any] | None = None,
    schema: Mapping[str, Any] | None = None,
    timeout: float | None = None,
    options: Mapping[str, Any] | Options | None = None,
) -> "pa.Schema":
    """Give the Arrow schema that a query's result would have; the query is not run, whatever it is.

    >>> import longshore
    >>> longshore.schema("SELECT 1 AS berth, now() AS since", url).names
    ['berth', 'since']

    ``query``, ``conn``, ``params``, ``schema``, ``options``
        As in ``read_sql``. A list of queries has one schema, or is an error as there.
    ``timeout``
        Seconds for the whole call.

    It is the schema of ``return_type="arrow_stream"``. A whole table differs where only its values tell a type:
    PostgreSQL's unconstrained numeric, and SQLite's columns that take any value; an expression of SQLite is told as
    text. Without pyarrow, it is an object with ``__arrow_c_schema__``.

    Raises the exceptions of ``longshore.errors``.
    """
    chosen = Options.of(options)
    query, conn = in_order(query, conn)
    query, params = without_clauses(query, params)
    described = _core.describe(
        source=source(conn),
        queries=statements(query, "query"),
        params=core_params(params),
        types=schema_types(schema),
        policy=policy("arrow_stream", None, chosen),
        timeout=seconds(timeout),
    )
    return arrow_schema(described)
