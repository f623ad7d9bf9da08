"""One query of ``sql`` over attached databases: planned, its reads registered with the engine."""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from longshore.engine.duckdb import duckdb, shared
from longshore.engine.failures import Failure
from longshore.engine.remote.literals import Params
from longshore.engine.remote.loading import Loads, Settled
from longshore.engine.remote.plan import Plan, plan
from longshore.engine.remote.source import Source, attached
from longshore.engine.remote.types import Unsafe
from longshore.engine.waiting import apart
from longshore.errors import DataWarning
from longshore.options import Options
from longshore.warning import warn

__all__ = ["Attached", "attaching", "explained"]


def explained(plan: Plan) -> str:
    """Write a plan as SQL, with a comment before each piece."""
    lines = []
    for read in plan.reads:
        lines += [f"-- {read.source}: {read.name}", read.sql, ""]
    if plan.whole is None:
        lines += ["-- engine", plan.sql.strip()]
    else:
        lines += [f"-- engine: nothing to do, {plan.reads[0].source} answers the whole query"]
    return "\n".join(lines)


class Attached:
    """A query's plan, and the way to its rows."""

    def __init__(self, query: str, params: Params, sources: Mapping[str, Source], options: Options) -> None:
        """Plan; the sources are asked for what their tables hold."""
        self._query = query
        self._params = params
        self._sources = sources
        self._loads = Loads(options)
        self._plan: Plan = plan(query, sources, params, _described)

    @property
    def sql(self) -> str:
        """What the engine runs."""
        return self._plan.sql

    @property
    def params(self) -> Params:
        """The parameters of what the engine runs."""
        return self._plan.params

    def __str__(self) -> str:
        """Show the SQL of each source, and the engine's."""
        return explained(self._plan)

    def warn(self) -> None:
        """Tell of the columns that their databases would compare otherwise."""
        columns = self._plan.bytewise
        if columns:
            named = ", ".join(f"{name} ({collation})" for name, collation in columns.items())
            first = next(iter(columns)).rpartition(".")[2]
            message = (
                f"compared byte by byte, and not by its collation as in its database, where texts that differ in case, "
                f"accents or spaces at the end may be equal: {named}. CAST({first} AS VARCHAR) says that bytes are "
                "meant; lower() of both sides passes over case; read_sql has the database compare"
            )
            warn(message, DataWarning)

    def tables(self) -> Iterator[tuple[str, Any]]:
        """Send the reads, and give each one's name and rows for the engine."""
        self._hold()
        return self._loads.load(self._plan.reads, self._sources)

    def whole(self) -> pa.RecordBatchReader | None:
        """Send the one read that is the whole result, as the engine would hand it over; None where there is more."""
        if self._plan.whole is None:
            return None
        self._hold()
        (one,) = self._plan.reads
        rows = self._loads.whole(one, self._sources[one.source], self._plan.whole)
        if rows is None:
            self._plan = plan(self._query, self._sources, self._params, _described, whole=False)
        return rows

    def settle(self) -> None:
        """Raise ``Changed`` where a table was altered while it was read; for after the engine's last row."""
        self._loads.settle()

    def end(self) -> None:
        """End what the engine has left early, after its own end."""
        self._loads.end()

    def settled(self, rows: Any) -> Any:
        """Give the engine's rows; the last ones when it is known that no table was altered."""
        return Settled(rows, self.settle, self.failure) if self._loads.streams else rows

    def _hold(self) -> None:
        for source in self._sources.values():
            source.hold()

    @property
    def failure(self) -> Failure:
        """A source's own error, where the engine only passes its text on."""
        return self._loads.failure

    def cancel(self) -> None:
        """Stop what the sources still run, from any thread."""
        self._loads.cancel()

    def close(self) -> None:
        """End what the sources still run."""
        self._loads.close()


@contextlib.contextmanager
def attaching(query: str, params: Params, attach: Mapping[str, Any], options: Options) -> Iterator[Attached]:
    """Plan a query; after a failure, nothing of it goes on in a source."""
    with attached(attach, options) as sources:
        one = Attached(query, params, sources, options)
        try:
            yield one
        except BaseException:
            one.close()
            raise


def _described(query: str, params: Params) -> list[tuple[str, str]]:
    """Have the engine bind a query."""

    def bind() -> list[tuple[str, str]]:
        connection = shared.connection()
        try:
            rows = connection.execute(f"DESCRIBE {query}", params).fetchall()
        except duckdb.Error as error:
            raise Unsafe from error
        finally:
            shared.release(connection)
        return [(row[0], row[1]) for row in rows]

    return apart(bind)
