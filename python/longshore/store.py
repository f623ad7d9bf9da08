"""``open``: an embedded store, whose tables lie in files that are mapped into memory."""

import contextlib
import datetime as dt
import os
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, TypedDict, Unpack, final, overload

from longshore import _core
from longshore.arguments import Backend, IfExists, is_list_of_texts, seconds
from longshore.errors import InterfaceError, OperationalError
from longshore.foreign import refusing
from longshore.options import Options
from longshore.read import frame_for, policy, whole
from longshore.stream import Stream
from longshore.texts import display, name_text, path_text, quoted_name, statement_text
from longshore.write import write_sql

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from longshore.frames.exports import Rows
    from longshore.sources.store import Session

_Params = Sequence[Any] | Mapping[str, Any] | None

_UNITS = {"s": 1, "min": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_AGE = re.compile(r"(\d{1,18})\s*(s|min|h|d|w)")
#: The largest number that the catalogue has.
_MOST = 2**63 - 1
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)


#: The names that others have for the directory.
_FOREIGN = dict.fromkeys(("database", "conn", "url", "uri", "directory", "root"), "it is called path here")


class Version(NamedTuple):
    """The change that one commit has made of a table."""

    version: int
    time: dt.datetime
    table: str
    operation: str
    #: How many rows it has changed.
    rows: int


class Removed(NamedTuple):
    """The counts of what ``vacuum`` has removed."""

    files: int
    bytes: int


class _Selection(TypedDict, total=False):
    """Which rows of a table are read."""

    columns: Sequence[str] | None
    where: str | None
    params: _Params
    version: int | None
    at: dt.datetime | None
    options: Mapping[str, Any] | Options | None


@refusing(_FOREIGN)
def open(path: str | os.PathLike[str], *, read_only: bool = False, timeout: float | None = None) -> "Store":  # noqa: A001  as a file is opened
    """Open the store in a directory, which is made where there is none.

    >>> import longshore, tempfile
    >>> with tempfile.TemporaryDirectory() as directory, longshore.open(f"{directory}/lake") as store:
    ...     store["boats"] = {"berth": [1, 2], "tons": [10.5, 4.0]}
    ...     store.sql("SELECT sum(tons) AS tons FROM boats")
       tons
    0  14.5

    ``path``
        The directory. ``store:///path`` is its URL, which the other verbs take.
    ``read_only``
        Whether nothing is written; the store has to be there.
    ``timeout``
        Seconds to wait for another writer of a table; without it, as long as it takes.

    Raises the exceptions of ``longshore.errors``.
    """
    if not isinstance(read_only, bool):
        raise InterfaceError(f"read_only is True or False, not {display(read_only)}")
    directory = path_text(os.fsdecode(path), "path")
    return Store(_core.Store.open(directory, read_only=read_only, timeout=seconds(timeout)))


@final
class Store(contextlib.AbstractContextManager["Store"]):
    """Tables in a directory; made by ``longshore.open``.

    Each call is a transaction, unless one is open: ``with store.transaction()``. A read sees the newest commit, and
    never waits. ``read_sql``, ``write_sql`` and ``copy`` take a store in place of a URL.
    """

    def __init__(self, core: _core.Store) -> None:
        """Keep the store."""
        self._core = core
        self._transaction: _core.StoreTransaction | None = None
        #: The thread that has begun it: others do not see its changes.
        self._owner: int | None = None
        self._engine: Session | None = None
        self._lock = threading.RLock()

    def __repr__(self) -> str:
        """Show the directory."""
        return f"<Store {str(self._core.path)!r}>"

    @property
    def path(self) -> Path:
        """The directory."""
        return self._core.path

    # Writing.

    def write(
        self,
        name: str,
        data: Any,
        *,
        if_exists: IfExists = "fail",
        key: str | Sequence[str] | None = None,
        types: Mapping[str, str] | None = None,
        index: bool = False,
        options: Mapping[str, Any] | Options | None = None,
    ) -> int:
        """Write a dataframe into a table, all of it or nothing, and return the number of rows.

        The arguments are those of ``write_sql``. A new table has the data's own Arrow types.

        >>> import longshore, tempfile
        >>> with tempfile.TemporaryDirectory() as directory, longshore.open(directory) as store:
        ...     store.write("boats", {"berth": [1, 2]}, key="berth")
        ...     store.write("boats", {"berth": [2, 3]}, if_exists="upsert", key="berth")
        ...     store.read("boats", return_type="numpy")["berth"].data
        2
        2
        array([1, 2, 3])
        """
        table = ("main", name_text(name, "name"))
        return write_sql(data, table, self, if_exists=if_exists, key=key, types=types, index=index, options=options)

    def __setitem__(self, name: str, data: Any) -> None:
        """Make data a table, in place of one that is there."""
        self.write(name, data, if_exists="replace")

    def __delitem__(self, name: str) -> None:
        """Drop a table; raises ``ProgrammingError`` where there is none."""
        self.drop(name)

    def drop(self, name: str) -> None:
        """Drop a table; raises ``ProgrammingError`` where there is none."""
        with self._changing() as transaction:
            transaction.drop(name_text(name, "name"))

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Self]:
        """Make all that is done in the block one change, or none after an exception.

        >>> import longshore, tempfile
        >>> with tempfile.TemporaryDirectory() as directory, longshore.open(directory) as store:
        ...     with store.transaction():
        ...         store["boats"] = {"berth": [1, 2]}
        ...         store.sql("DELETE FROM boats WHERE berth = ?", params=[2])
        ...     len(store["boats"])
        1
        1
        """
        with self._lock:
            if self._transaction is not None:
                raise InterfaceError("a transaction of the store is open already")
            self._transaction, self._owner = self._core.begin(), threading.get_ident()
            try:
                yield self
                self._transaction.commit()
            except BaseException:
                with contextlib.suppress(Exception):
                    self._transaction.rollback()
                raise
            finally:
                self._transaction = self._owner = None

    def _own_transaction(self) -> "_core.StoreTransaction | None":
        return self._transaction if self._owner == threading.get_ident() else None

    @contextlib.contextmanager
    def _changing(self) -> "Iterator[_core.StoreTransaction]":
        with self._lock, contextlib.ExitStack() as stack:
            if self._transaction is None:
                stack.enter_context(self.transaction())
            transaction = self._transaction
            assert transaction is not None  # noqa: S101  the one that has just begun
            yield transaction

    # Reading.

    @overload
    def read(
        self,
        name: str,
        *,
        return_type: Literal["pandas"] = "pandas",
        dtype_backend: Backend | None = None,
        **selection: Unpack[_Selection],
    ) -> "pd.DataFrame": ...
    @overload
    def read(self, name: str, *, return_type: Literal["arrow"], **selection: Unpack[_Selection]) -> "pa.Table": ...
    @overload
    def read(self, name: str, *, return_type: Literal["arrow_stream"], **selection: Unpack[_Selection]) -> Stream: ...
    @overload
    def read(self, name: str, *, return_type: Literal["polars"], **selection: Unpack[_Selection]) -> "pl.DataFrame": ...
    @overload
    def read(
        self, name: str, *, return_type: Literal["numpy"], **selection: Unpack[_Selection]
    ) -> "dict[str, np.ma.MaskedArray[Any, Any]]": ...
    @overload
    def read(
        self, name: str, *, return_type: str, dtype_backend: Backend | None = None, **selection: Unpack[_Selection]
    ) -> Any: ...
    def read(
        self,
        name: str,
        *,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        params: _Params = None,
        version: int | None = None,
        at: dt.datetime | None = None,
        return_type: str = "pandas",
        dtype_backend: Backend | None = None,
        options: Mapping[str, Any] | Options | None = None,
    ) -> Any:
        """Read a table as a dataframe, whose memory is the file's where its layout allows.

        ``columns``
            Their names; without them all are read.
        ``where``
            A condition in SQL, whose ``params`` are those of ``read_sql``.
        ``version``, ``at``
            The version of the store, as ``versions`` numbers them, or the time at which it was the newest.
        ``return_type``, ``dtype_backend``
            As in ``read_sql``.
        ``options``
            ``verify`` and ``uuid`` concern what comes out; see ``longshore.Options``.
        """
        chosen = Options.of(options)
        name = name_text(name, "name")
        if columns is not None and (not is_list_of_texts(columns) or not columns):
            raise InterfaceError(f"columns is a list of names, not {display(columns)}")
        if where is not None and not (isinstance(where, str) and where.strip()):
            raise InterfaceError(f"where is a condition in SQL, not {display(where)}")
        if where is None and params is not None:
            raise InterfaceError("params are those of where, which is not given")
        with self._reading(version, at) as transaction:
            table = transaction.table(name)
            is_told = chosen.uuid == "text" or (table is not None and _is_computed(table))
            if where is not None or is_told:
                listed = "*" if columns is None else ", ".join(map(quoted_name, columns))
                condition = "" if where is None else f" WHERE (\n{where}\n)"
                query = f"SELECT {listed} FROM {quoted_name(name)}{condition}"  # noqa: S608  with the caller's own condition
                return self._run(
                    query,
                    params,
                    return_type=return_type,
                    dtype_backend=dtype_backend,
                    transaction=transaction,
                    options=chosen,
                )
            frame = frame_for(return_type, dtype_backend)
            form = "writable" if return_type in {"pandas", "numpy"} else "stored"
            wanted = None if columns is None else list(columns)
            scan = transaction.scan(name, wanted, form=form, verified=chosen.verify)
            # Mapped memory is the file's: the system takes it back when it needs it.
            reading = scan.reading(
                policy=policy(return_type, dtype_backend, chosen), cancel_handle=_core.CancelHandle()
            )
        json_objects = chosen.json == "object"
        if frame is None:
            return Stream(reading.stream(), exact=(), json_objects=json_objects)
        with contextlib.closing(reading):
            return whole(reading, frame, json_objects=json_objects)

    @contextlib.contextmanager
    def _reading(self, version: int | None, at: dt.datetime | None) -> "Iterator[_core.StoreTransaction]":
        joined = self._own_transaction()
        if version is None and at is None and joined is not None:
            yield joined
            return
        transaction = self._core.begin(version=_version(version), at=_microseconds(at))
        try:
            yield transaction
        finally:
            transaction.rollback()

    def __getitem__(self, name: str) -> "pd.DataFrame":
        """Read a table as a DataFrame."""
        return self.read(name)

    def __contains__(self, name: object) -> bool:
        """Whether there is a table of this name."""
        with self._reading(None, None) as transaction:
            return isinstance(name, str) and transaction.table(name) is not None

    def __iter__(self) -> Iterator[str]:
        """Give the names of the tables."""
        return iter(self.names())

    def names(self) -> list[str]:
        """Give the names of the tables."""
        with self._reading(None, None) as transaction:
            return sorted(transaction.tables())

    # SQL.

    @overload
    def sql(
        self,
        query: str,
        *,
        params: _Params = None,
        return_type: Literal["pandas"] = "pandas",
        dtype_backend: Backend | None = None,
        options: Mapping[str, Any] | Options | None = None,
        **tables: Any,
    ) -> "pd.DataFrame | Any": ...
    @overload
    def sql(
        self,
        query: str,
        *,
        params: _Params = None,
        return_type: str,
        options: Mapping[str, Any] | Options | None = None,
        **tables: Any,
    ) -> Any: ...
    def sql(
        self,
        query: str,
        *,
        params: _Params = None,
        return_type: str = "pandas",
        dtype_backend: Backend | None = None,
        options: Mapping[str, Any] | Options | None = None,
        **tables: Any,
    ) -> Any:
        """Run one statement over the tables, in DuckDB's dialect, and return its rows, or how many it changed.

        ``tables`` are frames by the names that the statement has for them; the other arguments are those of ``sql``.
        """
        return self._run(
            statement_text(query, "query"),
            params,
            return_type=return_type,
            dtype_backend=dtype_backend,
            tables=tables,
            transaction=self._own_transaction(),
            options=Options.of(options),
        )

    def _run(
        self,
        query: str,
        params: _Params,
        *,
        return_type: str,
        dtype_backend: Backend | None = None,
        tables: Mapping[str, Any] = MappingProxyType({}),
        transaction: "_core.StoreTransaction | None",
        options: Options,
    ) -> Any:
        # DuckDB is imported with it.
        from longshore.duckdb.parameters import engine_params
        from longshore.duckdb.result import Form, deliver, with_bounded_batches
        from longshore.duckdb.waiting import Task, register_cancel

        form = Form.of(return_type, dtype_backend, options)
        with self._lock, contextlib.ExitStack() as stack:
            # A stream has its engine until its end.
            session = self.session() if form.frame is None or self._engine is None else self._engine
            if form.frame is not None:
                self._engine = session
            end = stack.callback(session.close if form.frame is None else session.leave)
            session.join(transaction)
            session.choose(options.words(["verify"]))
            register_cancel(session.cancel)
            answer = Task(lambda: session.answer(query, engine_params(params), tables), session.cancel).run()
            if answer.relation is None:
                return answer.changed
            types = answer.relation.types
            rows = with_bounded_batches(answer.relation, types) if form.frame is None else answer.relation
            stack.pop_all()
            return deliver(rows, form, types=types, cancel=session.cancel, close=end)

    def session(self) -> "Session":
        """Give a session of the SQL engine over the store, in its open transaction."""
        from longshore.sources.store import Session

        return Session(self._core, is_shared=True, joined=self._own_transaction())

    # Keeping it.

    def versions(self, name: str | None = None) -> list[Version]:
        """Give what the commits have made of a table, or of all, the oldest first."""
        found = self._core.versions(None if name is None else name_text(name, "name"))
        return [Version(each[0], _EPOCH + each[1] * _MICROSECOND, *each[2:]) for each in found]

    def compact(self, name: str | None = None) -> None:
        """Write small files together, and those from which many rows are deleted."""
        for each in self.names() if name is None else [name_text(name, "name")]:
            with self._changing() as transaction:
                transaction.compact(each)

    def vacuum(self, older_than: str | dt.timedelta = "7d") -> Removed:
        """Remove the files of versions that were replaced longer ago than this: those cannot be read any more.

        It is a ``timedelta``, or a text: ``"90s"``, ``"30min"``, ``"12h"``, ``"7d"``. What a reader has open stays.
        """
        with self._lock:
            if self._engine is not None:
                self._engine.mirror.hide()
            return Removed(*self._core.vacuum(_age(older_than)))

    def check(self) -> list[str]:
        """Read every file and tell what is damaged: nothing, where all is well."""
        return self._core.check()

    def export(
        self,
        url: str | os.PathLike[str],
        format: Literal["parquet", "delta"] = "parquet",  # noqa: A002  as pandas and polars call it
        *,
        tables: str | Sequence[str] | None = None,
        version: int | None = None,
        at: dt.datetime | None = None,
        if_exists: Literal["fail", "replace"] = "fail",
        storage_options: Mapping[str, str] | None = None,
    ) -> dict[str, int]:
        """Hand tables on as files of another format, and return the number of each one's rows.

        >>> import longshore, tempfile
        >>> with tempfile.TemporaryDirectory() as directory, longshore.open(f"{directory}/lake") as store:
        ...     store["boats"] = {"berth": [1, 2]}
        ...     store.export(f"{directory}/out")
        {'boats': 2}

        ``url``
            A directory, which is made where it is missing; of Delta, also a URL of cloud storage.
        ``format``
            ``"parquet"``: a file for each table, ``boats.parquet``. ``"delta"``: a Delta table for each, in a directory
            of its name.
        ``tables``
            The names of tables; without them, all.
        ``version``, ``at``
            As in ``read``.
        ``if_exists``
            What happens where a file or a table of the name is there: ``"fail"`` or ``"replace"``.
        ``storage_options``
            What ``deltalake`` needs to know of cloud storage.

        All values arrive exactly. What a format cannot hold is a ``NotSupportedError`` before anything is written.
        """
        from longshore.duckdb.waiting import Task, register_cancel
        from longshore.frames.exports import export, form_of

        place = name_text(os.fsdecode(url), "url")
        if format not in {"parquet", "delta"}:
            raise InterfaceError(f"format is 'parquet' or 'delta', not {display(format)}")
        if if_exists not in {"fail", "replace"}:
            raise InterfaceError(f"if_exists is 'fail' or 'replace', not {display(if_exists)}")
        if not (tables is None or isinstance(tables, str) or is_list_of_texts(tables)):
            raise InterfaceError(f"tables is a name or a list of names, not {display(tables)}")
        names = [tables] if isinstance(tables, str) else tables
        stop = threading.Event()

        def until() -> None:
            if stop.is_set():
                raise OperationalError("the export was cancelled")

        with self._reading(version, at) as transaction:
            form = form_of(format, place, storage_options)
            named = transaction.tables() if names is None else [name_text(each, "tables") for each in names]
            wanted = [self._outgoing(transaction, each) for each in dict.fromkeys(named)]
            register_cancel(stop.set)
            work = Task(lambda: export(wanted, form, replaces=if_exists == "replace", until=until), stop.set)
            return work.run()

    def _outgoing(self, transaction: "_core.StoreTransaction", name: str) -> "Rows":
        from longshore.frames.arrow import reader
        from longshore.frames.exports import Rows
        from longshore.frames.stored import schema_of

        table = transaction.table(name)
        if table is None or not _is_computed(table):
            # Rows that are written elsewhere are looked at first. Where there is no table, it says so.
            rows = lambda: reader(transaction.scan(name, verified=True))  # noqa: E731  as its twin below
            return Rows(name, schema_of((table or transaction.scan(name)).schema), rows)

        def stream(clause: str = "") -> Stream:
            query = f"SELECT * FROM {quoted_name(name)}{clause}"  # noqa: S608  the name is quoted
            verified = Options(verify=True)
            rows: Stream = self._run(query, None, return_type="arrow_stream", transaction=transaction, options=verified)
            return rows

        with stream(" LIMIT 0") as empty:
            return Rows(name, empty.schema, stream)

    def files(self, name: str) -> list[Path]:
        """Give the Arrow IPC files of a table, which pyarrow and polars read: they hold its rows and columns.

        Raises ``NotSupportedError`` where they hold deleted rows or earlier columns: ``compact`` writes them again.
        """
        with self._reading(None, None) as transaction:
            return transaction.files(name_text(name, "name"))

    def close(self) -> None:
        """Close it; frames that were read stay. Closing twice is not an error."""
        with self._lock:
            engine, self._engine = self._engine, None
            if engine is not None:
                engine.close()
            self._core.close()

    def __exit__(self, *_exception: object) -> None:
        """Close it."""
        self.close()


def _is_computed(table: "_core.StoreTable") -> bool:
    return "GENERATED ALWAYS" in (table.definition or "").upper()


def _version(version: object) -> int | None:
    if version is None or (isinstance(version, int) and not isinstance(version, bool) and 0 <= version <= _MOST):
        return version
    raise InterfaceError(f"version is a number from 0, not {display(version)}")


def _microseconds(at: object) -> int | None:
    if at is None:
        return None
    if isinstance(at, dt.datetime) and at.tzinfo is not None:
        return (at - _EPOCH) // _MICROSECOND
    hint = "datetime.datetime(2026, 1, 31, 12, tzinfo=datetime.UTC)"
    raise InterfaceError(f"at is a datetime with a time zone, not {display(at)}", hint=hint)


def _age(given: object) -> int:
    if isinstance(given, dt.timedelta) and given >= dt.timedelta(0):
        return given // _MICROSECOND
    match = _AGE.fullmatch(given.strip()) if isinstance(given, str) else None
    age = 0 if match is None else int(match[1]) * _UNITS[match[2]] * 1_000_000
    if match is None or age > _MOST:
        raise InterfaceError(f'older_than is a time such as "12h" or "7d", or a timedelta, not {display(given)}')
    return age
