"""One query's connection to DuckDB, and the tables that it sees."""

import contextlib
import os
from collections.abc import Callable, Collection, Iterator
from typing import Any, TypeVar

from longshore.engine.duckdb import Instance, abandon, duckdb, shared
from longshore.engine.failures import circular_table, is_ruined, missing_table, translated
from longshore.engine.result import Lender
from longshore.engine.waiting import Task, apart
from longshore.errors import OperationalError, ProgrammingError
from longshore.frames.pushdown import Span
from longshore.options import Options

__all__ = ["Session"]

T = TypeVar("T")

#: What changes nothing that outlives its connection. An EXPLAIN may: with ANALYZE, it runs what it explains.
_HARMLESS = {"SELECT", "COPY"}


class Session(Lender):
    """A connection for the statements of one text, until ``close``."""

    def __init__(self, text: str, options: Options, *, stays_as_written: bool) -> None:
        """Keep the text; nothing is opened before ``open``.

        What ``stays_as_written`` has nothing left out, so that plans and errors show it as it was given.
        """
        self._text = text
        self._options = options
        self._own: Instance | None = None
        self._connection: Any = None
        self._process = os.getpid()
        self._task: Task[Any] | None = None
        self._is_stopped = False
        self._tables: dict[str, object] = {}
        #: What is run, once it is parsed.
        self.statements: list[Any] = []
        self.stays_as_written = stays_as_written
        #: Whether the statements are those that were given.
        self.is_as_written = True

    def apart(self, work: Callable[[], T], cancel: Callable[[], object]) -> T:
        """Do all that the session is opened for, which ``cancel`` stops together with the engine."""

        def stop() -> None:
            self.cancel()
            cancel()

        task: Task[T] = Task(work, stop)
        self._task = task
        return task.run()

    def open(self) -> None:
        """Parse the text, and find an instance that may run it; raises ``ProgrammingError`` where it is no SQL."""
        with self._engine():
            if self._options.threads is not None or self._options.memory_limit_bytes is not None:
                self._alone()
            else:
                self._connection = shared.connection(self._options)
            self.statements = self._connection.extract_statements(self._text)
            # What may change something gets an instance of its own.
            if self._own is None and not all(each.type.name in _HARMLESS for each in self.statements):
                before = self._connection
                self._alone()
                shared.release(before)
        if not self.statements:
            message = "query holds no statement"
            raise ProgrammingError(message)

    @contextlib.contextmanager
    def _engine(self) -> Iterator[None]:
        """Call into the engine, unless it is to stop; raises Longshore's exceptions for its own."""
        if self._is_stopped:
            message = "the query was cancelled"
            raise OperationalError(message)
        with translated():
            yield

    def _alone(self) -> None:
        self._own = Instance(self._options)
        self._connection = self._own.connection()

    @property
    def only_selects(self) -> bool:
        """Whether running it twice does what running it once does."""
        return all(each.type.name == "SELECT" for each in self.statements)

    @property
    def reads_again(self) -> bool:
        """Whether its tables hold what they held, however often they are read."""
        return not any(hasattr(data, "read_next_batch") for data in self._tables.values())

    def register(self, name: str, data: object) -> None:
        """Make Arrow data a table of this session: a pyarrow Table, Dataset or reader, or a relation of DuckDB's."""
        with self._engine():
            self._connection.register(name, data)
        self._tables[name] = data

    def leave_out(self, spans: Collection[Span]) -> None:
        """Have the one statement without these predicates, whose place keeps its length."""
        text = self.statements[0].query.encode()
        for start, end in spans:
            text = text[:start] + b"TRUE".ljust(end - start) + text[end:]
        if spans:
            self.is_as_written = False
            with self._engine():
                self.statements = self._connection.extract_statements(text.decode())

    def serialized(self) -> str:
        """Give the syntax of the one statement as JSON, or JSON that says why there is none."""
        with self._engine():
            found = self._connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [self.statements[0].query])
            ((text,),) = found.fetchall()
        return str(text)

    def execute(
        self,
        at: int,
        params: Any,
        table: Callable[[str], None],
        is_table: Callable[[str], bool],
        *,
        explain: bool = False,
    ) -> Any:
        """Bind one of the statements and give its relation, or its plan's, which runs when its rows are asked for.

        ``table`` is called with each unqualified name that DuckDB has no table for; it registers one, or raises. A
        common table expression may read a table of its own name: ``is_table`` tells whether there is one to register.
        None is what comes of a statement without rows.
        """
        asked: set[str] = set()
        while True:
            with self._engine():
                try:
                    # A table that is registered may leave less to be asked.
                    statement = self.statements[at]
                    return self._bound(f"EXPLAIN {statement.query}" if explain else statement, params)
                except duckdb.Error as error:
                    if self._own is None and is_ruined(error):
                        self._renew()
                        continue
                    name, circular = missing_table(error), circular_table(error)
                    if circular is not None and is_table(circular):
                        name = circular
                    # One that is registered and still missing was qualified: it is not a variable.
                    if name is None or name in asked:
                        raise
            asked.add(name)
            table(name)

    def _bound(self, statement: Any, params: Any) -> Any:
        relation = self._connection.sql(statement, params=params)
        has_rows = getattr(statement, "expected_result_type", None) != [duckdb.ExpectedResultType.NOTHING]
        return relation if has_rows else None

    def _renew(self) -> None:
        """Go on in a new instance: an internal error of another query has ended the one that all share."""
        shared.release(self._connection)
        shared.examine()
        self._connection = shared.connection()
        for name, data in self._tables.items():
            self._connection.register(name, data)

    def widen_texts(self) -> None:
        """Have texts exported with offsets of 64 bits, as pandas keeps them."""
        # An older engine has this setting for all its sessions at once: there, the offsets are widened on the way out.
        with contextlib.suppress(duckdb.Error):
            self._connection.execute("SET SESSION arrow_large_buffer_size = true")

    def cancel(self) -> None:
        """Stop what runs, from any thread."""
        self._is_stopped = True
        if (connection := self._connection) is not None:
            connection.interrupt()

    def examine(self) -> None:
        """See to it that an error which ends an engine for good does not end the queries after this one."""
        if self._own is None:
            apart(shared.examine)

    def give_up(self) -> None:
        """Close it after a failure, once what still runs has ended; a result closes its session by itself."""
        if self._task is not None and not self.is_lent:
            self._task.after(self.close)

    def close(self) -> None:
        """End the connection, and the instance where it served this query alone. Closing twice is no error."""
        if self._connection is not None:
            # Who closes may hear signals, and the ends of the tables may be Python's.
            apart(self._end)

    def _end(self) -> None:
        connection, self._connection = self._connection, None
        self._tables.clear()
        if connection is None:
            return
        if self._process != os.getpid():
            abandon(connection)
            if self._own is not None:
                self._own.abandon()
        elif self._own is None:
            shared.release(connection)
        else:
            connection.close()
            self._own.close()
