"""The base of the sessions of drivers; a source says what is its driver's own."""

import contextlib
import re
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal

from longshore import _core, errors
from longshore.sources import files
from longshore.sources.dialects import Dialect
from longshore.sources.loading import Load, TableLoader
from longshore.sources.many import FEW, Insert, Kinds, Row, plain_insert, runs
from longshore.texts import first_word, quoted_name

#: The rows of a result as an object that hands an Arrow stream over; the native type of each column, where the driver
#: tells more than the stream's own metadata; and the labels of each ENUM, which an Arrow schema does not hold.
Result = tuple[object, list[str], list[list[str]]]

#: The words that begin and end a transaction, and the method that does.
_CONTROLS = {
    **dict.fromkeys(("BEGIN", "START TRANSACTION"), "begin"),
    **dict.fromkeys(("COMMIT", "END"), "commit"),
    **dict.fromkeys(("ABORT", "ROLLBACK"), "rollback"),
}
#: So many tokens are more than one of these statements has.
_TOKENS = 6
_CHANGES = frozenset({"INSERT", "UPDATE", "DELETE", "MERGE"})
_RETURNING = re.compile(r"\bRETURNING\b", re.IGNORECASE)
_ROWS = "read_sql takes statements with a result: SELECT, VALUES, or INSERT ... RETURNING"
_ONE = "several statements are Connection.execute_script's; before a query they go into pre_execution_query"
_PLACES = "give params as a list, for the driver's own placeholders"
_PLAIN = "run BEGIN, COMMIT or ROLLBACK alone"


_SETTING = re.compile(r"([\w.]+)=(?:\{([^}]*)\}|([^;]*))(?:;|$)")
_SECRET = re.compile("pass|pwd|secret|token|key|uri", re.IGNORECASE)
_USER = re.compile(r"://[^:/@]*:(.*)@", re.DOTALL)
_IN_URI = re.compile(r"://[^/]*?:([^/]*)@|password=([^&;\s]*)", re.IGNORECASE)


def hide_secrets(text: str, settings: Mapping[str, str]) -> str:
    """Give a driver's text without the secrets among its settings."""
    uri = settings.get("uri", "")
    secrets = {value for name, value in settings.items() if _SECRET.search(name)}
    secrets |= {*uri.split()} | {part for found in _IN_URI.findall(uri) for part in found}
    # Of what is not encoded, the driver may quote a piece.
    secrets |= {part for found in _USER.findall(uri) for part in re.split("[/:@]", found)}
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        text = text.replace(secret, "***")
    return text


def settings(rest: str, *, form: str) -> dict[str, str]:
    """Give key=value with semicolons between, as ADBC and ODBC have it; a value with a semicolon stands in braces."""
    if _SETTING.sub("", rest):
        raise errors.InterfaceError("the settings are not key=value with semicolons between", hint=form)
    return {name: braces or plain for name, braces, plain in _SETTING.findall(rest)}


class Interruption:
    """A cancel, which may come from any thread, kept from statements that must come to their end.

    A server may do what one asks for even after it is told to end it: a table is then there that no one drops.
    """

    def __init__(self) -> None:
        """Let all be cancelled."""
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def suspend(self) -> Iterator[None]:
        """Let the block's statements come to their end."""
        with self._lock:
            yield

    @contextlib.contextmanager
    def permit(self, seconds: float) -> Iterator[None]:
        """Cancel in the block, after statements that come to their end, but no later than in so many seconds."""
        is_alone = self._lock.acquire(timeout=seconds)
        try:
            yield
        finally:
            if is_alone:
                self._lock.release()


def changes(statement: str) -> bool:
    """Whether a statement changes rows and returns none."""
    return first_word(statement) in _CHANGES and not _RETURNING.search(statement)


def _control_of(statement: str) -> tuple[str, bool] | None:
    """Give the method that begins or ends a transaction as a statement says, and whether it says more, or None.

    >>> _control_of("/* all */ COMMIT WORK;;;;;;"), _control_of("BEGIN IMMEDIATE"), _control_of("ROLLBACK TO s")
    (('commit', False), ('begin', True), None)
    >>> _control_of("COMMIT;;;;;; DROP TABLE boats")
    ('commit', True)
    """
    words = _core.sql_words(statement, _TOKENS)
    size = 2 if words[:1] == ["START"] else 1
    method, rest = _CONTROLS.get(" ".join(words[:size])), words[size:]
    if rest[:1] in (["TRANSACTION"], ["WORK"]):
        rest = rest[1:]
    if method is None or rest[:1] == ["TO"]:
        return None
    return method, any(word != ";" for word in rest)


def only(statements: Sequence[Any]) -> Any:
    """Give the one statement of a query."""
    if len(statements) != 1:
        message = "the query holds no statement" if not statements else "more than one statement"
        raise errors.ProgrammingError(message, hint=_ONE if statements else None)
    return statements[0]


def _sum(counts: Iterable[int | None]) -> int | None:
    """Add what statements have changed; None where one does not tell."""
    known = [*counts]
    return None if None in known else sum(filter(None, known))


class DriverSession:
    """One connection of a driver. The core makes each call on a thread of its own, one at a time, but for ``cancel``.

    A source defines the methods that raise ``NotImplementedError`` here, and others where its driver differs.
    """

    #: The error that has ended a result.
    error: errors.Error | None = None
    #: PEP 249's cursor of the last statement, where the driver has them.
    cursor: Any = None
    #: Whether the connection ends with the session, or is the caller's.
    is_own = True
    #: The owner that has lent a connection that is not the session's own, and takes it back.
    owner: Any = None
    #: Whether a statement that is stopped undoes its transaction. Rows of it that are given up end it without that.
    undoes_what_is_stopped = False
    #: Whether a statement that fails is undone alone, and its transaction goes on.
    undoes_what_fails = False
    #: Whether a new table ends a transaction, so that none is begun for it.
    new_table_commits = False
    #: Why a read is not split.
    not_split = "the driver reads a query whole"
    #: Why there are no types of parameters, where the driver tells none.
    not_prepared = "the driver does not tell their types"
    #: "$1" or "?" where the driver binds by place alone: the core makes such places of names.
    places: str | None = None
    #: Whether a transaction is open, and whether a statement has failed in it.
    transaction: Literal["none", "open", "failed"] = "none"
    #: How tables are written; where there is none, they are not, for this reason.
    dialect: Dialect | None = None
    loader: type[TableLoader] = TableLoader
    not_written = "the driver's database is only read"
    #: The base of the driver's exceptions, whose classes have PEP 249's names.
    failure: ClassVar[type[Exception] | tuple[type[Exception], ...]]
    #: The settings that the driver was given to connect with: its errors may quote them.
    settings: Mapping[str, str] = {}

    def __init__(self, connection: Any) -> None:
        """Keep the driver's connection."""
        self.connection = connection

    # A source's own.

    def _result(self, statement: Any, params: Any, rows: int) -> Result | None:
        """Run a query, which gives at most so many ``rows`` in a batch; None for a statement without a result."""
        raise NotImplementedError

    # What a source may do otherwise.

    def cancel(self) -> None:
        """Stop what runs, from any thread."""
        if (connection := self.connection) is not None:
            connection.cancel()

    def _begin(self) -> None:
        """Begin a transaction."""
        self.connection.begin()

    def _prepare(self, query: str, params: Any) -> tuple[Any, Any]:
        """Give a statement and its parameters as the driver takes them; what fails here has not run."""
        if isinstance(params, dict):
            raise errors.NotSupportedError("the driver binds parameters by place alone", hint=_PLACES)
        return only([query] if first_word(query) else []), params

    def _run(self, statement: Any, params: Any) -> Any:
        """Run one statement, and give PEP 249's cursor with its result."""
        cursor = self.open_cursor()
        cursor.execute(statement) if params is None else cursor.execute(statement, params)
        return cursor

    def _inserts_many(self) -> bool:
        """Whether one INSERT of many rows does what one of each would do."""
        return False

    def _insert_many(self, insert: Insert, rows: Sequence[Row], kinds: Kinds | None) -> int | None:
        """Insert rows whose places have these kinds, or any, and tell how many."""
        raise NotImplementedError

    def _schema(self, statement: Any, params: Any) -> Result | None:  # noqa: ARG002
        """Give the columns of a query without running it: a result without rows; None where they are not known."""
        return None

    def _parameters(self, statement: str) -> Any:  # noqa: ARG002
        """Give the schema of a statement's parameters; None where it is not known."""
        return None

    def _statements(self, script: str) -> list[str]:
        """Give the statements of a script."""
        del script
        raise errors.NotSupportedError("this source runs one statement at a time")

    def _end(self, how: Literal["commit", "rollback"]) -> None:
        getattr(self.connection, how)()

    def _has_rows(self, cursor: Any) -> bool:
        return bool(cursor.description)

    def _is_undone(self, error: errors.Error | None) -> bool:  # noqa: ARG002
        """Whether the statement that has failed so is undone alone, and its transaction goes on."""
        return self.undoes_what_fails

    def clean_up(self) -> None:
        """End what the driver leaves open of a statement that has failed, or whose rows have."""

    def _stage(self, name: str, frame: object) -> None:
        """Make an object that hands an Arrow stream over a table of this name, which only the session sees."""
        raise NotImplementedError

    def _unstage(self, name: str) -> None:
        """Drop it again."""
        self.execute(f"DROP TABLE {name}")

    def _another(self) -> Any:
        """Give another connection to the same database, which is like new; without one a pool connects."""
        raise errors.NotSupportedError("the driver's connection cannot be made like new")

    def _give_back(self) -> None:
        """Leave a connection of the caller's as it was."""

    def translate(self, error: Exception) -> errors.Error:
        """Give Longshore's exception for the driver's."""
        names = (kind.__name__ for kind in type(error).__mro__)
        kind = next((getattr(errors, name) for name in names if hasattr(errors, name)), errors.DatabaseError)
        return kind(hide_secrets(str(error), self.settings), sqlstate=getattr(error, "sqlstate", None))

    @contextlib.contextmanager
    def translating(self) -> Iterator[None]:
        """Raise Longshore's exceptions for the driver's."""
        try:
            yield
        except self.failure as error:
            raise self.translate(error) from None

    # What the core calls, and a loader.

    @property
    def catalogue(self) -> Mapping[str, str] | None:
        """The queries of the catalogue; None where nothing is listed."""
        return self.dialect.catalogue if self.dialect else None

    def quoted_name(self, *names: str) -> str:
        """Give the name of a table, which may have a schema before it, for a statement."""
        if self.dialect is None:
            return ".".join(map(quoted_name, names))
        return self.dialect.quoted_name(*names)

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Call the driver."""
        try:
            with self.translating():
                yield
        except errors.Error as error:
            self.error = error
            self.fail()
            self.clean_up()
            raise

    def run(self, query: str, params: Any, rows: int) -> Result | int | None:
        """Run any statement: give its result, or how many rows it changed, or None where that is not known."""
        if control := _control_of(query):
            self._control(*control)
            return None
        result = self._query(query, params, rows)
        return self._changed_rows() if result is None else result

    def _query(self, query: str, params: Any, rows: int) -> Result | None:
        prepared, self.error = self._check(query, params), None
        with self.running():
            return self._result(*prepared, rows)

    def _changed_rows(self) -> int | None:
        """Tell how many rows the last statement changed."""
        return None if self.cursor is None or self.cursor.rowcount < 0 else self.cursor.rowcount

    def read(self, query: str, params: Any, rows: int) -> Result:
        """Run a query."""
        result = self._query(query, params, rows)
        if result is None:
            raise errors.ProgrammingError("the statement returns no rows, and was run", hint=_ROWS)
        return result

    def describe(self, query: str, params: Any) -> Result:
        """Describe a query."""
        prepared = self._check(query, params)
        with self.running():
            result = self._schema(*prepared)
        if result is None:
            raise errors.NotSupportedError("the statement's columns are known only once it has run")
        return result

    def parameters(self, statement: str, params: Any) -> Result:
        """Describe the parameters of a statement."""
        del params
        with self.running():
            schema = self._parameters(statement)
        if schema is None:
            raise errors.NotSupportedError(f"parameters cannot be described: {self.not_prepared}")
        return schema.empty_table(), [], []

    def execute(self, query: str, params: Any = None) -> int | None:
        """Run one statement, and tell how many rows it changed or gave."""
        if control := _control_of(query):
            self._control(*control)
            return None
        prepared = self._check(query, params)
        with self.running():
            cursor = self._run(*prepared)
            count = cursor.rowcount
            if count < 0 and self._has_rows(cursor):
                count = self._count(cursor)
        return None if count < 0 else count

    def execute_many(self, query: str, sets: Sequence[Any]) -> int | None:
        """Run one statement with each set of parameters, and tell how many rows all of them changed."""
        with self.translating():
            insert = plain_insert(query) if len(sets) >= FEW and self._inserts_many() else None
        rows = None if insert is None else insert.rows(sets)
        if insert is None or rows is None:
            return _sum(self.execute(query, params) for params in sets)
        self._check(query, sets[0])
        with self.running():
            return _sum(self._insert_many(insert, run, kinds) for run, kinds in runs(rows))

    def _count(self, cursor: Any) -> int:
        """Count the rows of a result, to its end."""
        return sum(map(len, iter(lambda: cursor.fetchmany(10_000), [])))

    def _control(self, method: str, has_options: bool) -> None:  # noqa: FBT001  of the statement
        """Begin or end the transaction by the driver's own way, which knows of it then."""
        if has_options:
            message = "a transaction with options cannot be begun or ended by this driver"
            raise errors.NotSupportedError(message, hint=_PLAIN)
        getattr(self, method)()

    def _check(self, query: str, params: Any) -> tuple[Any, Any]:
        with self.translating():
            return self._prepare(query, params)

    def execute_script(self, script: str) -> None:
        """Run several statements."""
        with self.translating():
            statements = self._statements(script)
        for at, statement in enumerate(statements, 1):
            try:
                self.execute(statement)
            except errors.Error as error:
                error.args = (f"statement {at} of the script: {error}",)
                raise

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Give the rows of a query as objects."""
        prepared = self._check(query, None)
        with self.running():
            rows: list[tuple[Any, ...]] = self._run(*prepared).fetchall()
        return rows

    def fail(self) -> errors.Error | None:
        """Note that a statement has failed: most transactions can only be undone then. Gives the error kept."""
        error, self.error = self.error, None
        if self.transaction == "open" and not self._is_undone(error):
            self.transaction = "failed"
        return error

    def begin(self) -> None:
        """Begin a transaction."""
        with self.running():
            self._begin()
        self.transaction = "open"

    def begin_snapshot(self) -> None:
        """Begin a transaction whose statements see one snapshot."""
        self.begin()
        if self.dialect and self.dialect.snapshot:
            self.execute(self.dialect.snapshot)

    def commit(self) -> None:
        """End it; one in which a statement has failed is undone."""
        failed = self.transaction == "failed" or not self._is_usable()
        with self.running():
            self._end("rollback" if failed else "commit")
        self.transaction = "none"
        if failed:
            raise errors.OperationalError("a statement of the transaction has failed: it was rolled back")

    def _is_usable(self) -> bool:
        """Whether the transaction can be committed: DuckDB undoes one that was interrupted without a word."""
        try:
            self.rows("SELECT 1")
        except errors.Error:
            return False
        return True

    def rollback(self) -> None:
        """Undo it."""
        with self.running():
            self._end("rollback")
        self.transaction = "none"

    def open_cursor(self) -> Any:
        """Open a cursor of PEP 249, which ends the one before."""
        self._close_cursor()
        self.cursor = self.connection.cursor()
        return self.cursor

    def _close_cursor(self) -> None:
        before, self.cursor = self.cursor, None
        if before is not None:
            before.close()

    def reset(self) -> None:
        """Make it like new for another read."""
        with self.translating():
            self._close_cursor()
            before, self.connection = self.connection, self._another()
            if before is not self.connection:
                before.close()
        self.transaction = "none"

    def close(self) -> None:
        """End it; a connection of the caller's stays open."""
        with self.translating():
            self._close_cursor()
            try:
                self.connection.close() if self.is_own else self._give_back()
            finally:
                if self.owner is not None:
                    self.owner.close()
        files.note_end(self)
        if self.is_own:
            # What a driver does when its connection goes: on the main thread, a Ctrl-C would be lost in it.
            self.connection = None

    def stage(self, name: str, frame: object) -> None:
        """Make a frame a table that only the session sees."""
        with self.running():
            self._stage(name, frame)

    def unstage(self, name: str) -> None:
        """Drop it again."""
        with self.running():
            self._unstage(name)

    def load(self, **load: Any) -> TableLoader:
        """Begin to write."""
        if self.dialect is None:
            raise errors.NotSupportedError(self.not_written)
        return self.loader(self, self.dialect, Load(**load))
