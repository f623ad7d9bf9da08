"""DuckDB: a file, a database in memory, or a ``DuckDBPyConnection``."""

from collections.abc import Mapping, Sequence
from typing import Any

from longshore.duckdb.failures import translate_errors
from longshore.duckdb.instance import engine
from longshore.duckdb.many import insert_rows, takes_rows_at_once
from longshore.duckdb.parameters import engine_params, with_dollars
from longshore.duckdb.result import Rebatched, bounded_rows, labels
from longshore.sources.dialects import DUCKDB
from longshore.sources.files import DatabaseFile
from longshore.sources.many import Insert, Kinds, Row
from longshore.sources.session import DriverSession, Result, only

_LOSSLESS = "SET SESSION arrow_lossless_conversion = {}"
#: It would print on the standard output of whoever runs Python interactively.
_QUIET = "SET SESSION enable_progress_bar = false"
#: Statements whose one row is how many they have changed.
_COUNTED = {"INSERT", "UPDATE", "DELETE", "MERGE_INTO", "COPY"}
#: Types whose text has names of the user's.
_NESTED = {"enum", "list", "array", "struct", "map", "union"}


def connect(rest: str, keywords: Mapping[str, str], *, creates: bool) -> "Session":
    """Open the file after ``duckdb://``; settings are DuckDB's own, such as ``read_only`` and ``threads``."""
    file = DatabaseFile.of(rest, keywords, creates=creates)
    with translate_errors():
        return file.open(
            lambda: Session(
                engine().connect(file.path, read_only=file.is_read_only, config=dict(file.settings)).execute(_QUIET)
            ),
            ending="Unique file handle conflict",
            other="different configuration",
        )


def adopt(connection: Any, _owner: object = None) -> "Session":
    """Give a session over a connection of the caller's, which stays open and gets its setting back."""
    query = "SELECT txid_current(), current_setting('arrow_lossless_conversion')"
    with translate_errors():
        one, other = (connection.execute(query).fetchone() for _ in range(2))
        session = Session(connection)
    session.transaction = "open" if one == other else "none"
    session.is_own, session.is_lossless = False, one[1]
    return session


class Session(DriverSession):
    """One connection."""

    not_split = "DuckDB reads a query in parallel inside"
    not_prepared = "DuckDB's Python package does not tell their types"
    undoes_what_is_stopped = True
    dialect = DUCKDB
    translating = staticmethod(translate_errors)
    #: Without the setting, integers of 128 bits wrap, times lose their offset, and bits cannot be told from bytes.
    is_lossless = True
    #: How many rows the last statement without a result has changed.
    count: int | None = None

    def __init__(self, connection: Any) -> None:
        """Keep the connection."""
        super().__init__(self._lossless(connection))

    def _lossless(self, connection: Any) -> Any:
        """Have the connection export what Arrow has, as it is."""
        return connection.execute(_LOSSLESS.format("true"))

    def _prepare(self, query: str, params: Any) -> tuple[Any, Any]:
        values = engine_params(params)
        return only(self.connection.extract_statements(with_dollars(query, values))), values

    def _statements(self, script: str) -> list[str]:
        return [each.query for each in self.connection.extract_statements(script)]

    def _run(self, statement: Any, params: Any) -> Any:
        return self.connection.execute(statement, params)

    def _has_rows(self, cursor: Any) -> bool:
        return [name for name, *_ in cursor.description] not in (["Count"], ["Success"])

    def _result(self, statement: Any, params: Any, rows: int) -> Result | None:
        relation = self.connection.sql(statement, params=params)
        if statement.type.name == "SELECT" or (relation is not None and self._has_rows(relation)):
            return result_of(relation, rows)
        counts = statement.type.name in _COUNTED and relation is not None
        self.count = relation.fetchall()[0][0] if counts else None
        return None

    def _changed_rows(self) -> int | None:
        return self.count

    def _inserts_many(self) -> bool:
        return takes_rows_at_once(self.connection)

    def _insert_many(self, insert: Insert, rows: Sequence[Row], kinds: Kinds | None) -> int | None:
        values: Any = [engine_params(row) for row in rows]
        return insert_rows(self.connection, insert, values, kinds)

    def _schema(self, statement: Any, params: Any) -> Result | None:
        is_query = statement.type.name == "SELECT"
        return result_of(self.connection.sql(statement, params=params).limit(0), 1) if is_query else None

    def _stage(self, name: str, frame: object) -> None:
        self.connection.register(name, frame)

    def _unstage(self, name: str) -> None:
        self.connection.unregister(name)

    def cancel(self) -> None:
        """Stop what runs."""
        self.connection.interrupt()

    def _give_back(self) -> None:
        self.connection.execute(_LOSSLESS.format(self.is_lossless))


def result_of(relation: Any, rows: int) -> Result:
    """Give a relation's rows, at most so many in a batch, and the types of its columns."""
    native = [str(kind) if kind.id in _NESTED else str(kind).lower() for kind in relation.types]
    names = [each for kind in relation.types for each in labels(kind)]
    return Rebatched(relation, min(rows, bounded_rows(relation.types) or rows)), native, names
