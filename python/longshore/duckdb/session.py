"""One query's connection to DuckDB, and the tables that it sees."""

import contextlib
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from longshore.duckdb.failures import circular_table, is_fatal, missing_table, translate_errors
from longshore.duckdb.instance import Instance, abandon, engine, shared
from longshore.duckdb.pushdown import serialize
from longshore.duckdb.result import ClosedByResult
from longshore.duckdb.waiting import Task, run_on_thread
from longshore.errors import OperationalError, ProgrammingError
from longshore.frames.pushdown import Span
from longshore.options import Options

T = TypeVar("T")

#: Statements that do not change what outlives the connection. EXPLAIN ANALYZE may: it runs what it explains.
_READ_ONLY = {"SELECT", "COPY"}


@dataclass(frozen=True)
class View:
    """Rows, the expressions of the columns that a table of them shows, and a WHERE."""

    rows: Any
    columns: Sequence[str]
    condition: str = ""


class Session(ClosedByResult):
    """A connection for the statements of one text, until ``close``."""

    def __init__(self, text: str, options: Options, *, keeps_text: bool) -> None:
        """Take the text, for ``open``; with ``keeps_text``, predicates stay in it, for plans and errors to show."""
        self._text = text
        self._options = options
        self._instance: Instance | None = None
        self._connection: Any = None
        self._process = os.getpid()
        self._task: Task[Any] | None = None
        self._is_stopped = False
        self._tables: dict[str, object] = {}
        #: The statements, once the text is parsed.
        self.statements: list[Any] = []
        self.keeps_text = keeps_text
        #: Whether the statements are the caller's.
        self.is_original = True

    def run(self, work: Callable[[], T], cancel: Callable[[], object]) -> T:
        """Do work on a thread; ``cancel`` stops it together with the engine."""

        def stop() -> None:
            self.cancel()
            cancel()

        task: Task[T] = Task(work, stop)
        self._task = task
        return task.run()

    def open(self) -> None:
        """Parse the text and open an instance for it; raises ``ProgrammingError`` where it is not SQL."""
        with self._engine():
            if self._options.threads is not None or self._options.memory_limit_bytes is not None:
                self._use_private_instance()
            else:
                self._connection = shared.connection(self._options)
            self.statements = self._connection.extract_statements(self._text)
            # Statements that may change something get a private instance.
            if self._instance is None and not all(each.type.name in _READ_ONLY for each in self.statements):
                before = self._connection
                self._use_private_instance()
                shared.release(before)
        if not self.statements:
            raise ProgrammingError("query holds no statement")

    @contextlib.contextmanager
    def _engine(self) -> Iterator[None]:
        """Call into the engine, unless the query is cancelled; raises Longshore's exceptions."""
        if self._is_stopped:
            raise OperationalError("the query was cancelled")
        with translate_errors():
            yield

    def _use_private_instance(self) -> None:
        self._instance = Instance(self._options)
        self._connection = self._instance.connection()

    @property
    def has_only_selects(self) -> bool:
        """Whether running it twice does what running it once does."""
        return all(each.type.name == "SELECT" for each in self.statements)

    @property
    def is_repeatable(self) -> bool:
        """Whether all tables can be read again."""
        return not any(hasattr(data, "read_next_batch") for data in self._tables.values())

    def register(self, name: str, data: object) -> None:
        """Make a pyarrow Table, Dataset or reader a table of this session, or a ``View``."""
        with self._engine():
            self._show(name, data)
        self._tables[name] = data

    def _show(self, name: str, data: object) -> None:
        if not isinstance(data, View):
            self._connection.register(name, data)
            return
        self._connection.register(f"{name}_rows", data.rows)
        columns = ", ".join(data.columns)
        self._connection.execute(f"CREATE TEMP VIEW {name} AS SELECT {columns} FROM {name}_rows{data.condition}")  # noqa: S608  our names

    def drop_predicates(self, spans: Collection[Span]) -> None:
        """Replace predicates of the one statement by TRUE and blanks of their length."""
        text = self.statements[0].query.encode()
        for start, end in spans:
            text = text[:start] + b"TRUE".ljust(end - start) + text[end:]
        if spans:
            self.is_original = False
            with self._engine():
                self.statements = self._connection.extract_statements(text.decode())

    def serialize(self) -> str:
        """Give the syntax of the one statement as JSON, or an error as JSON."""
        with self._engine():
            return serialize(self._connection, self.statements[0].query)

    def execute(
        self,
        at: int,
        params: Any,
        table: Callable[[str], None],
        is_table: Callable[[str], bool],
        *,
        explain: bool = False,
    ) -> Any:
        """Bind a statement and give its relation, or its plan's, which runs when its rows are read; None without rows.

        ``table`` is called with each unqualified name that DuckDB does not know; it registers a table, or raises. A
        common table expression may read a table of its own name: ``is_table`` tells whether there is one to register.
        """
        registered: set[str] = set()
        while True:
            with self._engine():
                try:
                    # Registering a table may have dropped predicates.
                    statement = self.statements[at]
                    return self._bind(f"EXPLAIN {statement.query}" if explain else statement, params)
                except engine().Error as error:
                    if self._instance is None and is_fatal(error):
                        self._switch_instance()
                        continue
                    name, circular = missing_table(error), circular_table(error)
                    if circular is not None and is_table(circular):
                        name = circular
                    # A registered name that is still missing was qualified: it is not a variable.
                    if name is None or name in registered:
                        raise
            registered.add(name)
            table(name)

    def _bind(self, statement: Any, params: Any) -> Any:
        relation = self._connection.sql(statement, params=params)
        has_rows = getattr(statement, "expected_result_type", None) != [engine().ExpectedResultType.NOTHING]
        return relation if has_rows else None

    def _switch_instance(self) -> None:
        """Go on in a new instance: an internal error of another query has ended the shared one."""
        shared.release(self._connection)
        shared.restart_if_broken()
        self._connection = shared.connection()
        for name, data in self._tables.items():
            self._show(name, data)

    def use_large_strings(self) -> None:
        """Have texts exported with offsets of 64 bits, as pandas has them."""
        # An older engine has this setting for all sessions at once; there, the export widens the offsets.
        with contextlib.suppress(engine().Error):
            self._connection.execute("SET SESSION arrow_large_buffer_size = true")

    def cancel(self) -> None:
        """Stop the query, from any thread."""
        self._is_stopped = True
        if (connection := self._connection) is not None:
            connection.interrupt()

    def restart_if_broken(self) -> None:
        """End a shared instance that an error has broken, so that later queries get another."""
        if self._instance is None:
            run_on_thread(shared.restart_if_broken)

    def close_after_task(self) -> None:
        """Close after a failure, once the task has ended; a result closes its session itself."""
        if self._task is not None and not self.is_closed_by_result:
            self._task.after(self.close)

    def close(self) -> None:
        """End the connection, and a private instance. Closing twice is allowed."""
        if self._connection is not None:
            # Signals arrive on this thread, and freeing the tables may run Python code.
            run_on_thread(self._end)

    def _end(self) -> None:
        connection, self._connection = self._connection, None
        self._tables.clear()
        if connection is None:
            return
        if self._process != os.getpid():
            abandon(connection)
            if self._instance is not None:
                self._instance.abandon()
        elif self._instance is None:
            shared.release(connection)
        else:
            connection.close()
            self._instance.close()
