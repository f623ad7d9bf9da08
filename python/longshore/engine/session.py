"""One query's connection to DuckDB, and the tables that it sees."""

from collections.abc import Callable
from typing import Any

from longshore.engine.duckdb import Instance, duckdb, shared
from longshore.engine.failures import missing_table, translated
from longshore.options import Options

__all__ = ["Session"]

#: What changes nothing that outlives its connection.
_HARMLESS = {"SELECT", "EXPLAIN", "COPY"}


class Session:
    """A connection for the statements of one text; whoever holds one of its results holds it."""

    def __init__(self, query: str, options: Options) -> None:
        """Parse the text, and find an instance that may run it; raises ``ProgrammingError`` where it is no SQL."""
        self._own: Instance | None = None
        instance = shared() if options.threads is None and options.memory_limit is None else None
        with translated():
            self._connection = (instance or self._alone(options)).connection()
            self.statements: list[Any] = self._connection.extract_statements(query)
            if instance is not None and not all(each.type.name in _HARMLESS for each in self.statements):
                self._connection.close()
                self._connection = self._alone(options).connection()

    def _alone(self, options: Options) -> Instance:
        self._own = Instance(options)
        return self._own

    def register(self, name: str, data: object) -> None:
        """Make Arrow data a table of this session: a pyarrow Table, Dataset or reader, or a relation of DuckDB's."""
        with translated():
            self._connection.register(name, data)

    def execute(self, statement: Any, params: Any, table: Callable[[str], None]) -> Any:
        """Bind a statement and give its relation, which runs when its rows are asked for.

        ``table`` is called with each unqualified name that DuckDB has no table for; it registers one, or raises.
        None is what comes of a statement without rows.
        """
        asked: set[str] = set()
        while True:
            with translated():
                try:
                    return self._connection.sql(statement, params=params)
                except duckdb.CatalogException as error:
                    name = missing_table(error)
                    # One that is registered and still missing was qualified: it is no variable.
                    if name is None or name in asked:
                        raise
            asked.add(name)
            table(name)

    def cancel(self) -> None:
        """Stop what runs, from any thread."""
        self._connection.interrupt()

    def close(self) -> None:
        """End the connection, and the instance where it served this query alone. Closing twice is no error."""
        self._connection.close()
        if self._own is not None:
            self._own.close()
