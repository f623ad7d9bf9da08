"""A store of tables in a directory, whose SQL is DuckDB's."""

import contextlib
import datetime as dt
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Literal

from longshore import _core
from longshore.duckdb.changes import Answer, change, insert_many
from longshore.duckdb.instance import Instance, abandon, spare
from longshore.duckdb.mirror import Mirror
from longshore.duckdb.parameters import engine_params
from longshore.duckdb.statements import (
    Change,
    WholeTable,
    called_names,
    change_of,
    number_places,
    statements_of,
    tokens,
)
from longshore.errors import Error, InterfaceError, NotSupportedError, OperationalError, ProgrammingError
from longshore.frames.inputs import engine_table
from longshore.frames.pushdown import fold_name
from longshore.frames.stored import StoredRows, engine_field, schema_of
from longshore.options import Options
from longshore.sources import duckdb
from longshore.sources.dialects import DUCKDB, literal
from longshore.sources.files import IN_MEMORY, DatabaseFile, note_end
from longshore.sources.session import Result
from longshore.sources.store_loading import StoreLoader

_Work = Callable[["_core.StoreTransaction"], Any]

#: How often a statement is run whose table another writer changes meanwhile.
_TRIES = 100
_CONFLICT = "40001"
_FAILED = "25P02"

_SAVEPOINT = re.compile(
    r"\s*(?:(?P<set>SAVEPOINT)|(?P<release>RELEASE(?:\s+SAVEPOINT)?)|(?P<undo>ROLLBACK(?:\s+\w+)?\s+TO(?:\s+SAVEPOINT)?))"
    r"\s+(?P<name>\w+|\"(?:[^\"]|\"\")+\")\s*;?\s*",
    re.IGNORECASE,
)
#: The engine's types of statements that change no table.
_READING = {"SELECT", "EXPLAIN", "PRAGMA", "CALL", "SET", "VARIABLE_SET", "COPY", "LOAD"}
#: The settings that would have names mean other tables, or texts be compared otherwise than the store does.
_SETTINGS = {"use", "schema", "search_path", "default_collation"}
#: The engine's types of statements after which it may give other types.
_CONFIGURING = {"CALL", "LOAD", "PRAGMA", "SET", "VARIABLE_SET"}
#: The statements that EXPLAIN ANALYZE would run, without the store's knowledge.
CHANGING = {"insert", "update", "delete", "merge", "truncate", "create", "alter", "drop", "copy", "import"}
#: The words by which a query begins that the engine runs as several statements, as it does one with a PIVOT.
_QUERYING = {"pivot", "pivot_wider", "select", "from", "with"}
#: The engine's names of statements that a user would not know.
_KINDS = {"MULTI": "a change of rows with a PIVOT whose columns are not named"}
_VALUES = "name them: PIVOT ... ON column IN ('a', 'b')"
_VERSION = re.compile(r"\d{1,18}", re.ASCII)
_STATEMENTS = "SELECT, INSERT, UPDATE, DELETE, CREATE TABLE, ALTER TABLE, DROP TABLE and TRUNCATE do"
_BLOCK = "with store.transaction(): makes several calls one change"
_WITHOUT = "leave the schema out"
_FORM = "store:///path?read_only=true&timeout=10, or store:///path?version=3"
_NEWEST = "write to the newest: leave version and at out"
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)

STORE = replace(DUCKDB, name="store", error=lambda _text: None, has_savepoints=True, within=None)


def connect(rest: str, keywords: Mapping[str, str], *, creates: bool) -> "Session":
    """Open the directory after ``store://``.

    Its settings are ``read_only``, ``timeout``, seconds to wait for other writers, and ``version`` or ``at``, a time.
    """
    file = DatabaseFile.of(rest, keywords, creates=creates)
    settings = dict(file.settings)
    timeout, past = _seconds(settings.pop("timeout", None)), _past(settings)
    if settings or file.path == IN_MEMORY:
        raise InterfaceError("a store has a path, and the settings read_only, timeout, version and at", hint=_FORM)
    if past and creates:
        raise NotSupportedError("an older version is only read", hint=_NEWEST, sqlstate="25006")
    is_read = file.is_read_only or bool(past)
    store = _core.Store.open(file.path, read_only=is_read, makes=creates, timeout=timeout)
    return file.open(lambda: Session(store, past=past), ending="\0", other="\0")


def _seconds(text: str | None) -> float | None:
    try:
        number = None if text is None else float(text)
    except ValueError:
        number = -1
    if number is not None and not 0 <= number < math.inf:
        raise InterfaceError("timeout is a number of seconds", hint=_FORM)
    return number


def _past(settings: dict[str, str]) -> Mapping[str, int]:
    """Take the version, or the time at which it was the newest, out of the settings."""
    version, at = settings.pop("version", None), settings.pop("at", None)
    if version is not None and at is not None:
        raise InterfaceError("a version has a number or a time, not both", hint="leave one out")
    if version is not None:
        if not _VERSION.fullmatch(version):
            raise InterfaceError("version is a number from 0", hint=_FORM)
        return {"version": int(version)}
    return {} if at is None else {"at": _microseconds(at)}


def _microseconds(text: str) -> int:
    # In a URL, + is a blank.
    for written in (text, re.sub(r" (?=[\d:]+$)", "+", text)):
        with contextlib.suppress(ValueError, OverflowError):
            time = dt.datetime.fromisoformat(written)
            if time.tzinfo is not None:
                return (time - _EPOCH) // dt.timedelta(microseconds=1)
    raise InterfaceError("at is a time with a time zone", hint="store:///path?at=2026-01-31T12:00:00Z")


def adopt(store: Any, _owner: object = None) -> "Session":
    """Give a session over a ``longshore.Store``, in its open transaction."""
    session: Session = store.session()
    return session


class Session(duckdb.Session):
    """One connection to a store."""

    dialect = STORE
    loader = StoreLoader
    not_split = "the engine reads a query in parallel inside"

    #: The engine, which starts with the first statement: rows come and go without it.
    _instance: Instance | None = None
    _engine: Any = None
    #: Whether the engine has settings of the user's.
    _is_set = False
    #: Whether a statement may have left in the engine what another session would see.
    _is_changed = False
    #: The transaction of a statement that runs.
    _working: "_core.StoreTransaction | None" = None

    def __init__(
        self,
        store: "_core.Store",
        *,
        is_shared: bool = False,
        joined: "_core.StoreTransaction | None" = None,
        past: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        """Keep a store, which is closed with the session unless others share it, and a transaction of theirs.

        ``past`` is the version that all of its own transactions see.
        """
        self.store, self._is_shared, self._past, self._process = store, is_shared, past, os.getpid()
        self.mirror = Mirror(lambda: self.connection)
        self._registered: list[str] = []
        self._open: _core.StoreTransaction | None = None
        self._marks: list[tuple[str, int]] = []
        self.join(joined)

    def join(self, transaction: "_core.StoreTransaction | None") -> None:
        """Go on in another's transaction, or outside of one."""
        self.mirror.is_stale |= transaction is not self._open
        self._open, self._marks, self._is_joined = transaction, [], transaction is not None
        self.transaction = "none" if transaction is None else "open"

    @property
    def connection(self) -> Any:
        """The engine's connection."""
        if self._engine is None:
            self._instance = self._start()
            super().__init__(self._instance.connection())
        return self._engine

    @connection.setter
    def connection(self, connection: Any) -> None:
        self._engine = connection

    def _start(self) -> Instance:
        """Start the engine."""
        return spare.take()

    def _leave(self, instance: Instance) -> None:
        """Leave the engine to the next session, or end it where it is not as it was."""
        if self._is_changed:
            instance.close()
        else:
            spare.give(instance)

    # Statements.

    def choose(self, options: Mapping[str, str]) -> None:
        """Take the choices of a read that are the store's own."""
        self.mirror.verifies = options.get("verify") == "true"

    def _prepare(self, query: str, params: Any) -> tuple[Any, Any]:
        if savepoint := _SAVEPOINT.fullmatch(query):
            return savepoint, None
        return super()._prepare(query, params)

    def _statements(self, script: str) -> list[str]:
        return statements_of(script)

    def _answer(self, statement: Any, params: Any) -> Answer:
        if isinstance(statement, re.Match):
            self._savepoint(statement)
            return Answer()
        self._refuse_failed()
        text, kind = number_places(statement.query), statement.type.name
        self._note_changes(text, kind)
        changed = change_of(text, kind)
        if changed is not None and not self._is_own(changed):
            _refuse_schema(changed.names)
            self.mirror.check(statement, params)
            return self._with_tables(lambda transaction: change(self.mirror, transaction, changed, params))
        is_pivot = kind == "MULTI" and _is_query(text)
        if changed is None and kind not in _READING and not is_pivot:
            hint = _VALUES if kind == "MULTI" else _STATEMENTS
            raise NotSupportedError(f"a store does not run {_KINDS.get(kind, kind.replace('_', ' '))}", hint=hint)
        _refuse_unseen(text, kind)
        self._is_set |= kind in _CONFIGURING
        # The engine makes a type of the values that become columns.
        self._is_changed |= is_pivot
        # A table of the session's own may have the name of one of the store's.
        reads = changed.tail if changed is not None and changed.verb == "create" else statement.query
        keeps = kind == "SELECT"
        return self._with_tables(
            lambda transaction: self._by_engine(transaction, statement, params, reads), keeps=keeps
        )

    def _note_changes(self, text: str, kind: str) -> None:
        """Note whether a statement may change more of the engine than the session's tables."""
        is_secret = kind == "CREATE" and "secret" in text.lower()
        calls = self._instance is not None and not called_names(text).isdisjoint(self._instance.changing_functions)
        self._is_changed |= kind in _CONFIGURING or is_secret or calls

    def execute_many(self, query: str, sets: Sequence[Any]) -> int | None:
        """Run one statement with each set of parameters; the rows of an INSERT go to the store together."""
        statement, _ = self._check(query, sets[0] if sets else None)
        changed = (
            None if isinstance(statement, re.Match) else change_of(number_places(statement.query), statement.type.name)
        )
        is_plain = changed is not None and changed.verb == "insert" and not changed.replaces and not changed.returning
        if changed is None or not is_plain or not sets or self._is_own(changed):
            return super().execute_many(query, sets)
        _refuse_schema(changed.names)
        self._refuse_failed()
        self._note_changes(query, "INSERT")
        with self.running():
            values = [engine_params(params) for params in sets]
            for each in values:
                self.mirror.check(statement, each)
            return self._with_tables(lambda transaction: insert_many(self.mirror, transaction, changed, values)).changed

    def _is_own(self, changed: Change) -> bool:
        """Whether it changes a table of the session's own, which is the engine's alone."""
        if not changed.names:
            return False
        is_named = len(changed.names) > 1 and fold_name(changed.names[0]) == "temp"
        return changed.is_temporary or is_named or (len(changed.names) == 1 and self.mirror.is_own(changed.name))

    def _by_engine(self, transaction: "_core.StoreTransaction", statement: Any, params: Any, reads: str) -> Answer:
        """Have the engine run it over views of the rows that the transaction sees, of tables named in what it reads."""
        self.mirror.show(transaction, reads, params)
        relation = self.connection.sql(statement, params=params)
        if statement.type.name in {"CREATE", "DROP", "ALTER"}:
            self.mirror.note_temporary()
            self.mirror.note_functions()
        if statement.type.name == "SELECT" or (relation is not None and super()._has_rows(relation)):
            return Answer(relation=relation)
        counts = [] if relation is None or statement.type.name == "CREATE" else relation.fetchall()
        return Answer(next((count for (count,) in counts), None))

    def _query(self, query: str, params: Any, rows: int) -> Result | None:
        whole = self._whole_table(query, params)
        return super()._query(query, params, rows) if whole is None else (whole, whole.native, [])

    def describe(self, query: str, params: Any) -> Result:
        """Describe a query."""
        whole = self._whole_table(query, params)
        return super().describe(query, params) if whole is None else (whole.schema.empty_table(), whole.native, [])

    def _whole_table(self, query: str, params: Any) -> StoredRows | None:
        """Give the rows of a query of a whole table as they are mapped; None where the engine has to make them."""
        whole = None if params or self._is_set else WholeTable.of(query)
        if whole is None or self.mirror.is_own(whole.table):
            return None
        self._refuse_failed()
        with self.running():
            rows: StoredRows | None = self.within(
                lambda transaction: _stored_rows(transaction, whole, self.mirror.verifies)
            )
        return rows

    def _has_rows(self, cursor: Any) -> bool:
        return cursor.description is not None

    def _count(self, cursor: Any) -> int:
        return sum(map(len, cursor.relation.to_arrow_reader()))

    def _run(self, statement: Any, params: Any) -> "_Cursor":
        return _Cursor(self._answer(statement, params))

    def _result(self, statement: Any, params: Any, rows: int) -> Result | None:
        answer = self._answer(statement, params)
        self.count = answer.changed
        return None if answer.relation is None else duckdb.result_of(answer.relation, rows)

    def answer(self, query: str, params: Any, tables: Mapping[str, Any]) -> Answer:
        """Run a statement over the store and these frames; one that fails leaves a joined transaction as it was."""
        if _SAVEPOINT.fullmatch(query):
            raise NotSupportedError("a savepoint is set over a connection", hint=_BLOCK)
        mark = None if self._open is None else self._open.mark()
        try:
            self._register_frames(tables)
            if (whole := self._whole_table(query, params)) is not None:
                return Answer(relation=whole)
            prepared = self._check(query, params)
            with self.running():
                return self._answer(*prepared)
        except BaseException:
            # One that was stopped can only be rolled back.
            with contextlib.suppress(Error):
                if self._open is not None and mark is not None:
                    self._open.undo_to(mark)
            raise

    def _register_frames(self, tables: Mapping[str, Any]) -> None:
        self.mirror.hide(tables)
        for name, frame in tables.items():
            self.stage(name, engine_table(frame, name, lambda: None, Options(), lambda _error: None))
            self._registered.append(name)
        if tables:
            self.mirror.note_temporary()

    def leave(self) -> None:
        """Forget another's transaction, and the frames."""
        registered, self._registered = self._registered, []
        for name in registered:
            self.unstage(name)
        if registered:
            self.mirror.note_temporary()
        self.join(None)

    def _schema(self, statement: Any, params: Any) -> Result | None:
        # The empty tables have the columns.
        self.within(self.mirror.follow)
        return super()._schema(statement, params)

    # Transactions.

    def _with_tables(self, work: Callable[["_core.StoreTransaction"], Answer], *, keeps: bool = False) -> Answer:
        """Do work for which the engine has the tables."""

        def follow(transaction: "_core.StoreTransaction") -> Answer:
            self.mirror.follow(transaction, keeps=keeps)
            return work(transaction)

        answer: Answer = self.within(follow)
        return answer

    def within(self, work: _Work) -> Any:
        """Do work in the open transaction, or in one of its own, which a conflict begins again."""
        if self._open is not None:
            return self._stoppable(work, self._open)
        for left in reversed(range(_TRIES)):
            transaction = self.store.begin(**self._past)
            try:
                answer = self._stoppable(work, transaction)
                transaction.commit()
            except BaseException as error:
                self.mirror.is_stale = True
                with contextlib.suppress(Error):
                    transaction.rollback()
                if not left or getattr(error, "sqlstate", None) != _CONFLICT:
                    raise
            else:
                return answer
        return None

    def _stoppable(self, work: _Work, transaction: "_core.StoreTransaction") -> Any:
        self._working = transaction
        try:
            return work(transaction)
        finally:
            self._working = None

    def _begin(self) -> None:
        self._open, self._marks = self.store.begin(**self._past), []

    def snapshot(self) -> "_core.StoreTransaction":
        """Give the transaction that is open, or begin one."""
        if self._open is None:
            self.begin()
        assert self._open is not None  # noqa: S101  it has begun
        return self._open

    def _end(self, how: Literal["commit", "rollback"]) -> None:
        transaction, is_joined = self._open, self._is_joined
        self._open, self._is_joined, self.mirror.is_stale = None, False, True
        if transaction is not None and not is_joined:
            getattr(transaction, how)()

    def _is_usable(self) -> bool:
        return True

    def _refuse_failed(self) -> None:
        if self.transaction == "failed":
            message = "a statement of the transaction has failed: it can only be rolled back"
            raise OperationalError(message, sqlstate=_FAILED)

    def _savepoint(self, statement: re.Match[str]) -> None:
        if self._open is None:
            raise ProgrammingError("a savepoint is within a transaction, and none is open", hint="BEGIN first")
        name = fold_name(statement["name"])
        if statement["set"]:
            self._refuse_failed()
            self._marks.append((name, self._open.mark()))
            return
        at = next((at for at in reversed(range(len(self._marks))) if self._marks[at][0] == name), None)
        if at is None:
            raise ProgrammingError(f"there is no savepoint {statement['name']}")
        if statement["undo"]:
            self._open.undo_to(self._marks[at][1])
            self.transaction, self.mirror.is_stale = "open", True
        del self._marks[at + bool(statement["undo"]) :]

    # What the core calls, and a loader.

    @property
    def catalogue(self) -> Mapping[str, str]:
        """The queries of the catalogue; the engine's tables are empty, and the store counts the rows."""
        transaction = self._open or self.store.begin(**self._past)
        tables = [table for name in transaction.tables() if (table := transaction.table(name)) is not None]
        if self._open is None:
            transaction.rollback()
        rows = ", ".join(f"({literal(each.name)}, '{each.rows}')" for each in tables) or "(NULL, NULL)"
        counts = (
            "SELECT current_database() AS catalog_name, 'main' AS db_schema_name, t AS table_name, NULL::VARCHAR AS "
            f"column_name, '6' AS statistic_key, n AS statistic_value FROM (VALUES {rows}) AS x (t, n) WHERE n <> ''"
        )
        return {**self.dialect.catalogue, "statistics": counts, "table_types": "table"}

    def _another(self) -> Any:
        return self._instance and self._instance.connection()

    def cancel(self) -> None:
        """Stop what runs, or waits for another writer."""
        if (working := self._working) is not None:
            working.cancel()
        if self._engine is not None:
            super().cancel()

    def reset(self) -> None:
        """Make it like new for another read."""
        self._end("rollback")
        self.transaction = "none"
        if self._engine is not None:
            super().reset()
            self.mirror.renew()

    def close(self) -> None:
        """End it, and what it has not committed."""
        with contextlib.suppress(Error):
            self._end("rollback")
        if self._instance is not None and self._process != os.getpid():
            abandon(self._engine)
            self._instance.abandon()
        elif self._instance is not None:
            super().close()
            self._leave(self._instance)
        note_end(self)
        if not self._is_shared:
            self.store.close()

    def unstage(self, name: str) -> None:
        """Drop what was staged; nothing was where the engine has not started."""
        if self._engine is not None:
            super().unstage(name)


class _Cursor:
    """A statement's answer as PEP 249 has it."""

    def __init__(self, answer: Answer) -> None:
        self.rowcount = -1 if answer.changed is None else answer.changed
        self.relation = answer.relation
        self.description = None if answer.relation is None else answer.relation.description

    def fetchall(self) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = [] if self.relation is None else self.relation.fetchall()
        return rows


def _stored_rows(transaction: "_core.StoreTransaction", whole: WholeTable, verifies: bool) -> StoredRows | None:  # noqa: FBT001
    table = transaction.table(whole.table)
    if table is None or "GENERATED ALWAYS" in (table.definition or "").upper():
        return None
    stored = schema_of(table.schema)
    own = {fold_name(field.name): field for field in stored}
    names = [*own] if whole.columns is None else [*map(fold_name, whole.columns)]
    if len(own) < len(stored) or len({*names}) < len(names) or not own.keys() >= {*names}:
        return None
    given = [found for name in names if (found := engine_field(own[name])) is not None]
    if len(given) < len(names):
        return None
    # A frame may be assigned into.
    columns = None if whole.columns is None else [own[name].name for name in names]
    scan = transaction.scan(table.name, columns, form="writable", verified=verifies)
    return StoredRows(scan, [field for field, _ in given], [native for _, native in given])


def _is_query(text: str) -> bool:
    words = [each.word for each in tokens(text) if each.depth == 0]
    return {*words[:1]} <= _QUERYING and CHANGING.isdisjoint(words)


def _refuse_unseen(text: str, kind: str) -> None:
    """Refuse what would change the engine's own tables behind the store."""
    words = [each.word for each in tokens(text) if each.depth == 0]
    if kind == "SET" and not _SETTINGS.isdisjoint(words[:3]):
        raise NotSupportedError("a store has one schema, and no collations", hint=_WITHOUT)
    is_run = kind in {"PRAGMA", "CALL"} or (kind == "EXPLAIN" and "analyze" in words[:4])
    if (is_run and not CHANGING.isdisjoint(words)) or words[:2] == ["copy", "from"]:
        raise NotSupportedError("a store does not run this statement", hint=_STATEMENTS)


def _refuse_schema(names: tuple[str, ...]) -> None:
    if any(fold_name(name) not in {"main", "memory"} for name in names[:-1]):
        raise ProgrammingError(f"a store has one schema, and {'.'.join(names)} names another", hint=_WITHOUT)
