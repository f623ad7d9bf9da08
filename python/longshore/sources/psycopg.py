"""A psycopg connection of the caller's."""

from collections.abc import Sequence
from typing import Any, Literal

import psycopg
from psycopg import pq
from psycopg.rows import tuple_row

from longshore import errors
from longshore.sources import LIBPQ
from longshore.sources.postgresql import ClientSession, Column

_BUSY = "let its statement end, or leave the pipeline first"
_URL = "end its transaction first, or give a URL"
_STATUS: dict[int, Literal["none", "open", "failed", "lost"]] = {
    pq.TransactionStatus.IDLE: "none",
    pq.TransactionStatus.INTRANS: "open",
    pq.TransactionStatus.INERROR: "failed",
}


def address(connection: Any) -> tuple[dict[str, str] | None, str]:
    """Give what opens such a connection, password included, or None and why a new one would not be the same."""
    info, reason = connection.info, ""
    if info.transaction_status == pq.TransactionStatus.UNKNOWN:
        raise errors.InterfaceError("the psycopg connection is closed", hint="connect again")
    if info.transaction_status == pq.TransactionStatus.ACTIVE or info.pipeline_status != pq.PipelineStatus.OFF:
        raise errors.InterfaceError("the psycopg connection is busy, or in pipeline mode", hint=_BUSY)
    # What is a default of libpq's is told apart, and has not to be one of ours.
    settings = {"host": info.host, "port": str(info.port), "user": info.user, "dbname": info.dbname}
    settings |= {**info.get_parameters(), **({"password": info.password} if info.password else {})}
    if info.transaction_status != pq.TransactionStatus.IDLE:
        reason = "a transaction is open on it"
    elif (connection.isolation_level, connection.read_only, connection.deferrable) != (None, None, None):
        reason = "its transactions have an isolation level, or are read-only or deferrable"
    elif not settings.keys() <= LIBPQ:
        reason = "it was opened with settings that Longshore does not have"
    if not reason:
        return {"scheme": "postgresql", **settings}, ""
    if isinstance(connection, psycopg.AsyncConnection):
        message = f"a connection for asyncio cannot be read through, and has to be, since {reason}"
        raise errors.InterfaceError(message, hint=_URL)
    return None, reason


class Session(ClientSession):
    """One connection, whose statements go by libpq's own functions."""

    failure = psycopg.Error

    def _setting(self, name: str) -> str | None:
        value = self.connection.pgconn.parameter_status(name.encode())
        return None if value is None else value.decode()

    def _status(self) -> Literal["none", "open", "failed", "lost"]:
        return _STATUS.get(self.connection.info.transaction_status, "lost")

    def _send(self, command: str, values: Sequence[bytes | None] = (), *, is_binary: bool = False) -> Any:
        # libpq's wrappers in C take lists alone.
        bound, oids = (list(values), self._oids) if values else (None, None)
        with self.connection.lock:
            pgconn = self.connection.pgconn
            return _check(pgconn.exec_params(command.encode(), bound, oids, result_format=int(is_binary)))

    def _describe(self, query: str) -> tuple[list[Column], list[int]]:
        with self.connection.lock:
            _check(self.connection.pgconn.prepare(b"", query.encode()))
            told = _check(self.connection.pgconn.describe_prepared(b""))
        self._oids = [told.param_type(at) for at in range(told.nparams)]
        columns = [
            (told.fname(at) or b"", told.ftable(at), told.ftablecol(at), told.ftype(at), told.fsize(at), told.fmod(at))
            for at in range(told.nfields)
        ]
        return columns, self._oids

    def open_cursor(self) -> Any:
        """Open a cursor that makes tuples, whatever the connection makes."""
        self._close_cursor()
        self.cursor = psycopg.Cursor(self.connection, row_factory=tuple_row)
        return self.cursor

    def _run(self, statement: Any, params: Any) -> Any:
        return self.open_cursor().execute(statement, params, prepare=False)

    def _copy(self, statement: str, rows: bytes) -> None:
        with self.open_cursor().copy(statement) as copy:
            copy.write(rows)

    def cancel(self) -> None:
        """Stop what runs."""
        self.connection.cancel_safe()


#: Gives a session over a connection of the caller's, which stays open.
adopt = Session


def _check(result: Any) -> Any:
    if result.status == pq.ExecStatus.FATAL_ERROR:
        raise psycopg.errors.error_from_result(result)
    return result
