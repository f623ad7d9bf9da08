"""ClickHouse, over its HTTP interface: ``clickhouse://user:password@host:port/database``."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import pyarrow as pa

from longshore import _core, errors
from longshore.sources.arrow import ingest, stream
from longshore.sources.clickhouse_http import Address, Answer, Connection, ServerError
from longshore.sources.clickhouse_loading import UPSERT, ClickHouseLoader
from longshore.sources.clickhouse_values import bind, column_type, declaration, readable, stage, typed_schema
from longshore.sources.dialects import BACKTICK, CLICKHOUSE, escape
from longshore.sources.loading import TableLoader
from longshore.sources.session import DriverSession, Result, hide_secrets
from longshore.texts import first_word

_QUERIES = frozenset({"SELECT", "WITH", "FROM"})
_READING = _QUERIES | {"SHOW", "DESCRIBE", "DESC", "EXPLAIN", "EXISTS", "SET", "USE", "KILL"}
_SYNTAX = 62
_TRANSACTIONS = "longshore.connect(..., autocommit=True), and write_sql for many rows: executemany is a transaction"
#: The server's numbers of errors, by the exception that they are.
_CODES: dict[type[errors.Error], set[int]] = {
    errors.ProgrammingError: {
        *(10, 15, 16, 20, 35, 36, 42, 43, 44, 46, 47, 53, 57, 60, 62, 80, 81, 82, 107, 115, 122, 164, 179, 184, 207),
        *(215, 352, 386, 403, 452, 456, 457, 497, 702),
    },
    errors.DataError: {6, 26, 27, 32, 33, 38, 41, 69, 70, 72, 117, 130, 131, 153, 321, 349, 395, 407, 441, 691, 692},
    errors.IntegrityError: {469},
    errors.NotSupportedError: {1, 48, 344},
}
_CLASSES = {code: kind for kind, codes in _CODES.items() for code in codes}
_HINTS = {
    164: "a user with readonly=1 may change no setting: give it readonly=2",
    372: "the server ends a session after an hour in which it does nothing: connect again",
}


def connect(rest: str, keywords: Mapping[str, str], **_: bool) -> "Session":
    """Connect to the server after ``clickhouse://``."""
    return Session(Address.of(rest, keywords))


class Session(DriverSession):
    """One session of the server's."""

    not_split = "ClickHouse reads a query in parallel inside, and has no snapshot that sessions share"
    not_prepared = "ClickHouse does not tell their types"
    failure = ServerError
    dialect = CLICKHOUSE
    loader = ClickHouseLoader
    places = None
    #: Whether a write is under way, whose statements are undone by its loader.
    is_loading = False

    def __init__(self, address: Address) -> None:
        """Connect."""
        self.settings = {"password": address.password, **address.settings}
        with self.translating():
            super().__init__(Connection.open(address))

    def translate(self, error: Any) -> errors.Error:
        """Give Longshore's exception for the server's number."""
        kind, hint = _CLASSES.get(error.code, errors.OperationalError), _HINTS.get(error.code)
        text = hide_secrets(str(error), self.settings)
        return kind(text, hint=hint)

    def _prepare(self, query: str, params: Any) -> tuple[Any, Any]:
        if not (word := first_word(query)):
            raise errors.ProgrammingError("the query holds no statement")
        if not self.is_loading and word not in _READING:
            self._check_transaction()
        return bind(query, params)

    def _statements(self, script: str) -> list[str]:
        return _core.sql_statements(script, "clickhouse")

    def _run(self, statement: str, params: Any) -> Answer:
        answer: Answer = self.connection.run(statement, params, streams=first_word(statement) in _QUERIES)
        if first_word(statement) != "INSERT":
            answer.rowcount = -1
        self.cursor = answer
        return answer

    def _result(self, statement: str, params: Any, _rows: int) -> Result | None:
        native, unknown = [], None
        if first_word(statement) in _QUERIES:
            try:
                native = self._native(statement, params)
            except ServerError as error:
                if error.code != _SYNTAX:
                    raise
                unknown = error
        # The server tells of the query's own text what is wrong with it.
        cursor = self._run(statement, params)
        if unknown is not None:
            raise unknown
        return None if cursor.rows is None else self._result_of(cursor.rows, native)

    def _native(self, statement: str, params: Any) -> list[str]:
        """Give the types of a query's columns."""
        text = f"DESCRIBE (\n{statement.rstrip().rstrip(';')}\n)"
        return [readable(name, kind) for name, kind, *_ in self.connection.run(text, params).fetchall()]

    def _result_of(self, rows: pa.RecordBatchReader, native: Sequence[str]) -> Result:
        schema, labels = typed_schema(rows.schema, native)
        batches = (pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in rows)
        return stream(self, schema, batches), [], labels

    def _schema(self, statement: str, params: Any) -> Result | None:
        if first_word(statement) not in _QUERIES:
            return None
        native = self._native(statement, params)
        answer = self.connection.run(f"SELECT * FROM (\n{statement.rstrip().rstrip(';')}\n) LIMIT 0", params)
        return None if answer.rows is None else self._result_of(answer.rows, native)

    def _count(self, cursor: Answer) -> int:
        return sum(batch.num_rows for batch in cursor.rows or ())

    def _begin(self) -> None:
        """Begin nothing: statements that only read need no transaction, and others are refused in one."""

    def _end(self, how: Literal["commit", "rollback"]) -> None:
        del how
        self.is_loading = False

    def _is_usable(self) -> bool:
        return True

    def _close_cursor(self) -> None:
        self.cursor = None
        self.connection.close_answer()

    def _stage(self, name: str, frame: object) -> None:
        rows = stage(ingest(frame, CLICKHOUSE)).combine_chunks()
        lines = ", ".join(f"{escape(field.name, BACKTICK)} {declaration(column_type(field))}" for field in rows.schema)
        self.connection.run(f"CREATE OR REPLACE TEMPORARY TABLE {name} ({lines}) ENGINE = Memory")
        if rows.num_rows:
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, rows.schema) as writer:
                writer.write_table(rows)
            self.connection.run(f"INSERT INTO {name} FORMAT ArrowStream", data=sink.getvalue().to_pybytes())

    def _another(self) -> Any:
        return self.connection.another()

    def _check_transaction(self) -> None:
        if self.transaction != "none":
            message = "ClickHouse has no transactions: what is written cannot be rolled back"
            raise errors.NotSupportedError(message, hint=_TRANSACTIONS)

    def load(self, **load: Any) -> TableLoader:
        """Begin to write."""
        self._check_transaction()
        if not self.connection.address.has_session:
            message = "rows are written by temporary tables, which need the server's session: leave out session=false"
            raise errors.NotSupportedError(message)
        if load["if_exists"] == "upsert":
            raise errors.NotSupportedError("ClickHouse has no statement for an upsert", hint=UPSERT)
        self.is_loading = True
        return super().load(**load)
