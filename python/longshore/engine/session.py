"""One query's connection to DuckDB, and the tables that it sees."""

import contextlib
import os
import re
import threading
from collections.abc import Callable, Collection
from functools import partial
from typing import TYPE_CHECKING, Any

from longshore.engine.duckdb import Instance, abandon, duckdb, shared
from longshore.engine.failures import is_ruined, missing_table, translated
from longshore.engine.waiting import awaited, begun, interruptible, undisturbed
from longshore.errors import ProgrammingError
from longshore.frames.use import Span
from longshore.options import Options

if TYPE_CHECKING:
    from concurrent.futures import Future

__all__ = ["Session"]

#: What changes nothing that outlives its connection. An EXPLAIN may: with ANALYZE, it runs what it explains.
_HARMLESS = {"SELECT", "COPY"}

#: A text that may name files, by themselves or as what a function reads: those are opened to bind it.
_FILES = re.compile(r"""['"][^'"]*[./*\\][^'"]*['"]|(?:read|scan|glob|sniff)\w*\s*\(""", re.IGNORECASE)


class Session:
    """A connection for the statements of one text, until ``close``."""

    def __init__(self, text: str, options: Options, *, stays_as_written: bool) -> None:
        """Parse the text, and find an instance that may run it; raises ``ProgrammingError`` where it is no SQL.

        What ``stays_as_written`` has nothing left out, so that plans and errors show it as it was given.
        """
        self._own: Instance | None = None
        self._process = os.getpid()
        self._is_closed = False
        self._tables: dict[str, object] = {}
        self._binding: Future[Any] | None = None
        self.stays_as_written = stays_as_written
        #: Whether the statements are those that were given.
        self.is_as_written = True
        with translated(), undisturbed():
            if options.threads is not None or options.memory_limit is not None:
                self._alone(options)
            else:
                self._connection = shared.connection()
        try:
            self.statements = self._parsed(text, options)
        except BaseException:
            self.close()
            raise

    def _parsed(self, text: str, options: Options) -> list[Any]:
        """Parse; what may change something gets an instance of its own."""
        with translated(), undisturbed():
            statements: list[Any] = self._connection.extract_statements(text)
            if self._own is None and not all(each.type.name in _HARMLESS for each in statements):
                before = self._connection
                self._alone(options)
                shared.release(before)
        if not statements:
            message = "query holds no statement"
            raise ProgrammingError(message)
        return statements

    def _alone(self, options: Options) -> None:
        self._own = Instance(options)
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
        with translated(), undisturbed():
            self._connection.register(name, data)
        self._tables[name] = data

    def leave_out(self, spans: Collection[Span]) -> None:
        """Have the one statement without these predicates, whose place keeps its length."""
        text = self.statements[0].query.encode()
        for start, end in spans:
            text = text[:start] + b"TRUE".ljust(end - start) + text[end:]
        if spans:
            self.is_as_written = False
            with translated(), undisturbed():
                self.statements = self._connection.extract_statements(text.decode())

    def serialized(self) -> str:
        """Give the syntax of the one statement as JSON, or JSON that says why there is none."""
        with translated(), undisturbed():
            found = self._connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [self.statements[0].query])
            ((text,),) = found.fetchall()
        return str(text)

    def execute(self, at: int, params: Any, table: Callable[[str], None], *, explain: bool = False) -> Any:
        """Bind one of the statements and give its relation, or its plan's, which runs when its rows are asked for.

        ``table`` is called with each unqualified name that DuckDB has no table for; it registers one, or raises.
        None is what comes of a statement without rows.
        """
        asked: set[str] = set()
        while True:
            with translated():
                try:
                    # A table that is registered may leave less to be asked.
                    statement = self.statements[at]
                    return self._bound(f"EXPLAIN {statement.query}" if explain else statement, params)
                except duckdb.Error as error:
                    if self._own is None and is_ruined(error):
                        self._renew()
                        continue
                    name = missing_table(error)
                    # One that is registered and still missing was qualified: it is no variable.
                    if name is None or name in asked:
                        raise
            asked.add(name)
            table(name)

    def _bound(self, statement: Any, params: Any) -> Any:
        bind = partial(self._connection.sql, statement, params=params)
        if getattr(statement, "type", None) == duckdb.StatementType.SELECT:
            return self._opened(bind) if _FILES.search(statement.query) else _now(bind)
        # Every other one runs at once, and DuckDB hears no Ctrl-C meanwhile.
        relation = interruptible(bind, self.cancel)
        has_rows = getattr(statement, "expected_result_type", None) != [duckdb.ExpectedResultType.NOTHING]
        return relation if has_rows else None

    def _opened(self, bind: Callable[[], Any]) -> Any:
        """Bind what opens files, which DuckDB cannot be made to stop; Ctrl-C leaves it to itself."""
        if threading.current_thread() is not threading.main_thread():
            return _now(bind)
        self._binding = begun(bind)
        try:
            return awaited(self._binding)
        finally:
            if self._binding.done():
                self._binding = None

    def _renew(self) -> None:
        """Go on in a new instance: an internal error of another query has ended the one that all share."""
        with undisturbed():
            shared.release(self._connection)
            shared.examine()
            self._connection = shared.connection()
            for name, data in self._tables.items():
                self._connection.register(name, data)

    def widen_texts(self) -> None:
        """Have texts exported with offsets of 64 bits, as pandas keeps them."""
        # An older engine has this setting for all its sessions at once: there, the offsets are widened on the way out.
        with contextlib.suppress(duckdb.Error), undisturbed():
            self._connection.execute("SET SESSION arrow_large_buffer_size = true")

    def cancel(self) -> None:
        """Stop what runs, from any thread."""
        self._connection.interrupt()

    def examine(self) -> None:
        """See to it that an error which ends an engine for good does not end the queries after this one."""
        if self._own is None:
            with undisturbed():
                shared.examine()

    def close(self) -> None:
        """End the connection, and the instance where it served this query alone. Closing twice is no error."""
        if self._binding is None:
            self._end()
            return
        # It would wait for what was left to itself, which ends it instead.
        self._binding.add_done_callback(lambda _: self._end())

    def _end(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        with undisturbed():
            self._tables.clear()
            if self._process != os.getpid():
                self._abandon()
            elif self._own is None:
                shared.release(self._connection)
            else:
                self._connection.close()
                self._own.close()

    def _abandon(self) -> None:
        abandon(self._connection)
        if self._own is not None:
            self._own.abandon()


def _now(bind: Callable[[], Any]) -> Any:
    with undisturbed():
        return bind()
