"""Connections: one session each, which outlives a read."""

import contextlib
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NoReturn
from weakref import ref

from longshore import _core, errors
from longshore.arguments import core_params, exact_name, is_list_of_texts, seconds, table_name, without_clauses
from longshore.catalogue import current_place, separate_cursor
from longshore.errors import InterfaceError, NotSupportedError
from longshore.foreign import CONNECT, refusing
from longshore.frames import pyarrow_if_installed
from longshore.target import SQLAlchemyText, TargetLike, target
from longshore.texts import display, statement_text
from longshore.threads import async_method, do_on_thread, own_cancel_handle

if TYPE_CHECKING:
    import pyarrow as pa

    from longshore.dbapi import Cursor
    from longshore.options import Options

_BEYOND = (
    "fetch them, close that cursor, use another connection, connection.adbc_clone(), or set cursor.read_ahead = None"
)
#: How far down objects are listed.
_DEPTHS = ("all", "catalogs", "schemas", "tables", "columns")


class Session:
    """The state that one session has, whichever way its caller waits."""

    #: The rows that a cursor fetches, which may still have the session, and the cursor.
    _rows: "ref[_core.Result] | None" = None
    _cursor: "ref[Cursor]"
    #: The same rows, where to stop them would fail the transaction.
    _pinned_rows: _core.Result | None = None

    def __init__(self, core: _core.Connection, scheme: str) -> None:
        """Keep the session."""
        self._core = core
        self._scheme = scheme

    def _free(self) -> _core.Connection:
        """Give the session for another statement: the rows that a cursor has not fetched are read ahead."""
        if self._rows is not None and (rows := self._rows()) is not None:
            cursor = self._cursor()
            if cursor is None:
                rows.close()
            elif not rows.read_ahead(sys.maxsize if cursor.read_ahead is None else cursor.read_ahead):
                raise InterfaceError("a cursor has more rows to fetch than the connection reads ahead", hint=_BEYOND)
        self._rows = self._pinned_rows = None
        return self._core

    def __repr__(self) -> str:
        """Show no more than the scheme and the state."""
        name = type(self).__name__
        if "_core" not in vars(self):
            return f"<{name} not open>"
        return f"<{name} {self._scheme}://*** {'closed' if self.closed else 'open'}>"

    def __reduce__(self) -> NoReturn:
        """Refuse: the session belongs to its process, and what opens it may hold a password."""
        raise unpicklable(self)

    def cancel(self) -> None:
        """Stop what the session is doing, from any thread: it raises ``OperationalError``, and the session goes on.

        A stream between two batches has stopped when this returns, and raises at its next one. Nothing where the
        session does nothing. A transaction in which a statement was stopped has to be rolled back.
        """
        self._core.cancel()

    @property
    def closed(self) -> bool:
        """Whether the session has ended, by ``close`` or because the connection was lost."""
        return self._core.closed

    @property
    def in_transaction(self) -> bool | None:
        """Whether a transaction is open; None while a stream has the session."""
        with contextlib.suppress(InterfaceError):
            self._free()
        return self._core.in_transaction


class Connection(Session, contextlib.AbstractContextManager["Connection"]):
    """One session of a database, for one statement at a time.

    Made by ``longshore.connect``, and given to ``read_sql`` instead of a URL, which then sees the session's
    transaction, settings and temporary tables. Leaving a ``with`` block commits, or rolls back after an exception,
    and closes.

    While a stream or another thread has the session, every other use is an ``InterfaceError``. It is free again after
    the stream's end, failure or ``close``. ``cursor`` and the exceptions are PEP 249's, ``adbc_...`` is ADBC's.
    """

    Warning = errors.Warning
    Error = errors.Error
    InterfaceError = errors.InterfaceError
    DatabaseError = errors.DatabaseError
    OperationalError = errors.OperationalError
    DataError = errors.DataError
    IntegrityError = errors.IntegrityError
    InternalError = errors.InternalError
    ProgrammingError = errors.ProgrammingError
    NotSupportedError = errors.NotSupportedError

    def cursor(self, *, options: "Mapping[str, Any] | Options | None" = None) -> "Cursor":
        """Make a cursor of PEP 249, with ADBC's methods for Arrow; ``options`` are those of ``read_sql``."""
        from longshore.dbapi import Cursor

        if self.closed:
            raise InterfaceError("the connection is closed", hint="connect again")
        return Cursor(self, options)

    @property
    def autocommit(self) -> bool:
        """Whether each statement is a transaction of its own; it can be set where none is open."""
        return self._core.autocommit

    @autocommit.setter
    def autocommit(self, autocommit: bool) -> None:
        if not isinstance(autocommit, bool):
            raise InterfaceError(f"autocommit is True or False, not {display(autocommit)}")
        self._free().set_autocommit(autocommit)

    @property
    def adbc_current_catalog(self) -> str | None:
        """The database that the session is in; MySQL's is ``"def"``, and SQLite has none."""
        return current_place(self)[0]

    @property
    def adbc_current_db_schema(self) -> str | None:
        """The schema in which the session makes tables: in MySQL the database, in SQLite ``"main"``."""
        return current_place(self)[1]

    @adbc_current_db_schema.setter
    def adbc_current_db_schema(self, schema: str) -> None:
        self.use_schema(schema)

    def adbc_get_objects(
        self,
        *,
        depth: Literal["all", "catalogs", "db_schemas", "tables", "columns"] = "all",
        catalog_filter: str | None = None,
        db_schema_filter: str | None = None,
        table_name_filter: str | None = None,
        table_types_filter: Sequence[str] | None = None,
        column_name_filter: str | None = None,
    ) -> "pa.RecordBatchReader":
        """List what ``objects`` lists; no transaction is open afterwards where none was."""
        with separate_cursor(self):
            listed = self.objects(
                depth="schemas" if depth == "db_schemas" else depth,
                catalog=catalog_filter,
                schema=db_schema_filter,
                table=table_name_filter,
                table_types=table_types_filter,
                column=column_name_filter,
            )
        return listed.to_reader()

    def adbc_get_statistics(
        self,
        *,
        catalog_filter: str | None = None,
        db_schema_filter: str | None = None,
        table_name_filter: str | None = None,
        approximate: bool = True,
    ) -> "pa.RecordBatchReader":
        """Tell what ``statistics`` tells, likewise."""
        with separate_cursor(self):
            told = self.statistics(
                catalog=catalog_filter, schema=db_schema_filter, table=table_name_filter, approximate=approximate
            )
        return told.to_reader()

    def adbc_get_table_types(self) -> list[str]:
        """Give the words of ``table_types``, likewise."""
        with separate_cursor(self):
            return self.table_types()

    def adbc_get_info(self) -> dict[str | int, Any]:
        """Tell the names and versions of the database and of Longshore."""
        with separate_cursor(self):
            info = self.info()
        vendor: dict[str | int, Any] = {key: info[key] for key in ("vendor_name", "vendor_version")}
        return {**vendor, "driver_name": "Longshore", "driver_version": _core.__version__}

    def adbc_get_table_schema(
        self, table_name: str, *, catalog_filter: str | None = None, db_schema_filter: str | None = None
    ) -> "pa.Schema":
        """Give the Arrow schema of a table or view, as ``table_schema`` does; the name is taken as it is."""
        if catalog_filter is not None and catalog_filter != self.adbc_current_catalog:
            raise NotSupportedError("a table of another catalog cannot be described", hint="connect to that database")
        return self.table_schema(exact_name(table_name, db_schema_filter))

    def adbc_clone(self) -> "Connection":
        """Open another connection to the same place, with the same ``autocommit``."""
        return Connection(self._core.another(cancel_handle=own_cancel_handle()), self._scheme)

    def adbc_cancel(self) -> None:
        """Stop what the session is doing, as ``cancel`` does."""
        self.cancel()

    def _stream(self, rows: _core.Result, cursor: "Cursor") -> None:
        """Keep in mind that a cursor's rows have the session; where stopping them costs the transaction, keep them."""
        self._rows, self._cursor = ref(rows), ref(cursor)
        self._pinned_rows = rows if rows.fails_transaction else None

    def execute(
        self,
        sql: str | SQLAlchemyText,
        params: Sequence[Any] | Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
    ) -> int | None:
        """Run one statement, and return how many rows it changed, or None where the server does not tell.

        ``params`` are bound as in ``read_sql``. Rows that the statement returns are counted and thrown away:
        ``read_sql`` keeps them. ``timeout`` is in seconds. Raises the exceptions of ``longshore.errors``; a failed
        statement leaves the connection usable, but its transaction has to be rolled back.
        """
        sql, params = without_clauses(sql, params)
        return self._free().execute(statement(sql), core_params(params), **_wait(timeout))

    def execute_script(self, script: str, *, timeout: float | None = None) -> None:
        """Run the statements of a text in their order, as the database itself tells them apart.

        Their rows are thrown away, and they take no parameters. The transaction is that of ``execute``. An error says
        which statement has failed; those after it have not run. ``timeout`` is in seconds, for the whole script.
        """
        if not isinstance(script, str):
            raise InterfaceError(f"a script is a text, not {type(script).__name__}")
        self._free().execute_script(statement_text(script, "the script"), **_wait(timeout))

    def parameters(self, sql: str, *, timeout: float | None = None) -> "pa.Schema":
        """Give the Arrow types of a statement's parameters, which PostgreSQL and most ADBC drivers tell; it is not run.

        Each has the name or the number that it has in the statement: ``$1`` in PostgreSQL. Raises ``NotSupportedError``
        where the source tells none. Without pyarrow, it is an object with ``__arrow_c_schema__``.
        """
        return arrow_schema(_core.parameters(source=self._free(), statement=statement(sql), **_wait(timeout)))

    def tables(self, *, timeout: float | None = None) -> "pa.Table":
        """List the tables and views of the database that are not the system's own, in the order of their names.

        The columns are texts: ``catalog_name``, ``db_schema_name``, ``table_name`` and ``table_type``, which is
        "table", "view" or the database's own word. Needs pyarrow. As other reads do, it begins a transaction.
        """
        return _table(_core.tables(source=self._free(), **_wait(timeout)).table(for_polars=False))

    def objects(
        self,
        *,
        depth: Literal["all", "catalogs", "schemas", "tables", "columns"] = "all",
        catalog: str | None = None,
        schema: str | None = None,
        table: str | None = None,
        table_types: Sequence[str] | None = None,
        column: str | None = None,
        timeout: float | None = None,
    ) -> "pa.Table":
        """List catalogs, their schemas, tables, columns and constraints, nested as ADBC's ``GetObjects`` has them.

        Names are patterns of ``LIKE``: ``%`` is any text, ``_`` one character, and an empty one what has no name.
        ``depth`` is the last level that is listed; "all" is as far as "columns". Needs pyarrow. As other reads do, it
        begins a transaction.
        """
        if depth not in _DEPTHS:
            raise InterfaceError(f"depth is one of {', '.join(_DEPTHS)}, not {display(depth)}")
        if isinstance(table_types, str) or (table_types is not None and not is_list_of_texts(table_types)):
            raise InterfaceError(f"table_types is a list of texts, not {display(table_types)}")
        names = {"catalog": catalog, "schema": schema, "table": table, "column": column}
        types = None if table_types is None else list(table_types)
        level = "columns" if depth == "all" else depth
        return _table(_core.objects(self._free(), _wait(timeout), depth=level, table_types=types, **_patterns(names)))

    def statistics(
        self,
        *,
        catalog: str | None = None,
        schema: str | None = None,
        table: str | None = None,
        approximate: bool = True,
        timeout: float | None = None,
    ) -> "pa.Table":
        """Tell how many rows tables have and what is known of their values, nested as in ADBC's ``GetStatistics``.

        They are the server's estimates. Where it keeps none, and with ``approximate=False``, the rows of each table are
        counted. Names are patterns as in ``objects``. Needs pyarrow.
        """
        if not isinstance(approximate, bool):
            raise InterfaceError(f"approximate is True or False, not {display(approximate)}")
        names = _patterns({"catalog": catalog, "schema": schema, "table": table})
        return _table(_core.statistics(self._free(), _wait(timeout), approximate=approximate, **names))

    def table_types(self, *, timeout: float | None = None) -> list[str]:
        """Give the words of ``table_type``: "table", "view" and the database's own."""
        return _core.table_types(self._free(), _wait(timeout))

    def info(self, *, timeout: float | None = None) -> dict[str, str | None]:
        """Tell the current catalog and schema, and the database's name and version.

        The keys are ``current_catalog``, ``current_schema``, ``vendor_name`` and ``vendor_version``.
        """
        keys = ("current_catalog", "current_schema", "vendor_name", "vendor_version")
        return dict(zip(keys, _core.current(self._free(), _wait(timeout)), strict=True))

    def use_schema(self, schema: str, *, timeout: float | None = None) -> None:
        """Make ``schema`` the one of names without one: MySQL's database, PostgreSQL's ``search_path``.

        Where no transaction is open it lasts; in one, PostgreSQL undoes it with that. Raises ``ProgrammingError`` for
        a schema that is not there, and ``NotSupportedError`` where there is none to choose, as in SQLite.
        """
        if not isinstance(schema, str) or not schema or "\0" in schema:
            raise InterfaceError(f"a schema is a name, not {display(schema)}")
        self._free().use_schema(schema, **_wait(timeout))

    def table_schema(self, table: str | tuple[str, str], *, timeout: float | None = None) -> "pa.Schema":
        """Give the Arrow schema of a table or view, named as in ``write_sql``; no row is read.

        It is ``longshore.schema`` of all its columns. Without pyarrow, it is an object with ``__arrow_c_schema__``.
        """
        schema, name = table_name(table)
        return arrow_schema(_core.table_schema(source=self._free(), schema=schema, table=name, **_wait(timeout)))

    def commit(self) -> None:
        """Make what the transaction did lasting; nothing where none is open.

        Raises ``OperationalError`` where a statement of the transaction has failed: it is rolled back.
        """
        self._free().commit(cancel_handle=own_cancel_handle())

    def rollback(self) -> None:
        """Undo what the transaction did; nothing where none is open. What a cursor has not fetched is thrown away."""
        rows, self._rows, self._pinned_rows = None if self._rows is None else self._rows(), None, None
        if rows is not None and not rows.ended:
            rows.close(undone=True)
        self._core.rollback(cancel_handle=own_cancel_handle())

    def close(self) -> None:
        """End the session, and roll an open transaction back first. Closing twice is not an error.

        Raises ``NotSupportedError`` where the source has kept what was changed, as BigQuery does.
        A stream that has the session goes on to its end, which then ends the session; a cursor's rows are thrown away.
        """
        if self._rows is not None and (rows := self._rows()) is not None:
            rows.close(undone=True)
        self._rows = self._pinned_rows = None
        self._core.close()

    def __exit__(self, kind: type[BaseException] | None, *_error: object) -> None:
        """Commit, or roll back after an exception, and close."""
        try:
            if kind is None:
                self.commit()
        finally:
            self.close()


class AsyncConnection(Session, contextlib.AbstractAsyncContextManager["AsyncConnection"]):
    """A ``Connection`` for asyncio: made by ``longshore.connect_async``, and given to the verbs that are awaited.

    Cancelling a task that waits cancels the statement on the server; the connection can be used on, after a
    ``rollback``. Leaving an ``async with`` block commits, or rolls back after an exception, and closes.
    """

    execute = async_method(Connection.execute)
    execute_script = async_method(Connection.execute_script)
    parameters = async_method(Connection.parameters)
    tables = async_method(Connection.tables)
    objects = async_method(Connection.objects)
    statistics = async_method(Connection.statistics)
    table_types = async_method(Connection.table_types)
    info = async_method(Connection.info)
    use_schema = async_method(Connection.use_schema)
    table_schema = async_method(Connection.table_schema)
    commit = async_method(Connection.commit)
    rollback = async_method(Connection.rollback)
    close = async_method(Connection.close)

    async def __aexit__(self, kind: type[BaseException] | None, *_error: object) -> None:
        """Commit, or roll back after an exception, and close."""
        try:
            if kind is None:
                await self.commit()
        finally:
            await self.close()


@refusing(CONNECT)
def connect(conn: TargetLike, *, autocommit: bool = False, timeout: float | None = None) -> Connection:
    """Open one session that outlives a read.

    >>> import longshore
    >>> with longshore.connect(url) as connection:
    ...     connection.execute("CREATE TEMPORARY TABLE harbour (berth int)")
    ...     connection.execute("INSERT INTO harbour VALUES ($1), ($2)", [7, 8])
    ...     longshore.read_sql("SELECT sum(berth) AS total FROM harbour", connection, return_type="numpy")["total"].data
    2
    array([15])

    ``conn``
        A URL, the path of a SQLite file, ``env:NAME``, or a dict of the source's keywords, in which ``password`` may be
        a callable; or an engine of SQLAlchemy or a connection of psycopg 3, whose settings the session is opened with.
    ``autocommit``
        Without it, the first statement, a read's as well, begins a transaction that ``commit`` or ``rollback`` ends
        (PEP 249). With it, each statement is a transaction of its own. A list of queries and a read in parts are a
        transaction of their own in either case.
    ``timeout``
        Seconds for the whole attempt to connect.

    Raises the exceptions of ``longshore.errors``.
    """
    return Connection(*_open(conn, autocommit, timeout))


@refusing(CONNECT, like=connect)
async def connect_async(
    conn: TargetLike,
    *,
    autocommit: bool = False,
    timeout: float | None = None,  # noqa: ASYNC109  the server is told, which asyncio.timeout does by a cancellation
) -> AsyncConnection:
    """Open one session as ``connect`` does, with the same arguments, while the event loop goes on.

    >>> import asyncio, longshore
    >>> async def berths():
    ...     async with await longshore.connect_async(url) as connection:
    ...         await connection.execute("CREATE TEMPORARY TABLE piers (berth int)")
    ...         await connection.execute("INSERT INTO piers VALUES ($1), ($2)", [7, 8])
    ...         return await longshore.read_sql_async("SELECT sum(berth) AS total FROM piers", connection)
    >>> int(asyncio.run(berths())["total"][0])
    15
    """
    return AsyncConnection(*await do_on_thread(lambda: _open(conn, autocommit, timeout)))


def _open(conn: TargetLike, autocommit: object, timeout: object) -> tuple[_core.Connection, str]:
    if not isinstance(autocommit, bool):
        raise InterfaceError(f"autocommit is True or False, not {display(autocommit)}")
    parts = target(conn)
    core = _core.Target(**parts._asdict())
    return _core.Connection(core, autocommit=autocommit, **_wait(timeout)), parts.scheme


def statement(sql: object) -> str:
    """Give a statement back; raises ``InterfaceError`` for what is not one."""
    if not isinstance(sql, str):
        raise InterfaceError(f"a statement is a text, not {type(sql).__name__}")
    return statement_text(sql, "the statement")


def _wait(timeout: object) -> dict[str, Any]:
    return {"timeout": seconds(timeout), "cancel_handle": own_cancel_handle()}


def _patterns(names: Mapping[str, object]) -> dict[str, Any]:
    for key, name in names.items():
        if not isinstance(name, str | None):
            raise InterfaceError(f"{key} is a name or a pattern of LIKE, not {display(name)}")
    return dict(names)


def _table(listed: _core.Table) -> "pa.Table":
    from longshore.frames.arrow import ArrowTarget

    return ArrowTarget().build(listed)


def arrow_schema(described: _core.Schema) -> "pa.Schema":
    """Give pyarrow's schema, where pyarrow is installed."""
    arrow = pyarrow_if_installed()
    return described if arrow is None else arrow.schema(described)


def unpicklable(value: object) -> TypeError:
    """Give the error of pickling what belongs to its process."""
    name = type(value).__name__
    return TypeError(f"a {name} belongs to its process and cannot be pickled: make one in each process")
