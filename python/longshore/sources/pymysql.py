"""A pymysql connection of the caller's: the core speaks on its socket, in its session."""

import contextlib
import copy
from collections.abc import Callable
from typing import Any

import pymysql
from pymysql.constants import SERVER_STATUS

from longshore.errors import InterfaceError, OperationalError
from longshore.sources.mysql_texts import ALONE, BEGUN, BUSY, ELSEWHERE, SLICE, Adopted, lost_connection


class Client(Adopted):
    """One connection. While its socket is lent, pymysql's own statements are refused."""

    def __init__(self, connection: Any, owner: Any) -> None:
        """Keep both."""
        self._connection, self._owner = connection, owner
        self._socket: Any = None

    def lease(self) -> tuple[int, int, int, bool, bool]:
        """Lend the socket: capabilities, thread, status, whether it is for us alone, and whether it has texts alone."""
        connection = self._connection
        if not connection.open:
            raise InterfaceError("the pymysql connection is closed", hint="connect again")
        result = connection._result
        is_reading = result is not None and (result.unbuffered_active or result.has_next)
        if is_reading or "_execute_command" in vars(connection):
            raise InterfaceError("the pymysql connection is busy", hint=BUSY)
        status = connection.server_status
        is_alone = status & SERVER_STATUS.SERVER_STATUS_AUTOCOMMIT and not status & SERVER_STATUS.SERVER_STATUS_IN_TRANS
        if self._owner is None and is_alone:
            raise InterfaceError(ALONE, hint=BEGUN)
        self._socket = connection._sock
        self._timeout = self._socket.gettimeout()
        self._socket.settimeout(SLICE)
        connection._execute_command = _refuse  # what all of its statements go through
        capabilities = connection.client_flag & connection.server_capabilities
        return capabilities, connection.thread_id(), status, self._owner is not None, False

    def receive(self, size: int) -> bytes | None:
        """Receive some bytes; None where nothing has come for a while."""
        received: bytes | None = _wait(self._socket.recv, size)
        return received

    def send(self, data: bytes) -> int | None:
        """Send some of the bytes; None where none could be sent for a while."""
        sent: int | None = _wait(self._socket.send, data)
        return sent

    def run_elsewhere(self, statements: list[str]) -> None:
        """Run statements over another connection, which is opened as this one was."""
        other = copy.copy(self._connection)
        del other._execute_command  # the refusal
        other._result = other._sock = other._rfile = other.init_command = None
        other.connect_timeout = other._read_timeout = other._write_timeout = ELSEWHERE
        try:
            other.connect()
        except pymysql.Error as error:
            raise OperationalError(f"another connection cannot be opened: {error}") from None
        try:
            for statement in statements:
                # One that fails had nothing to end, or to undo.
                with contextlib.suppress(pymysql.Error):
                    other.query(statement)
        finally:
            other.close()

    def release(self, status: int | None) -> None:
        """Take the socket back, with the server's status; without it, nothing can follow on it."""
        connection, self._socket = self._connection, None
        del connection._execute_command  # the refusal
        if status is None or not connection.open:
            connection._force_close()  # close() would speak to the server
            return
        connection._sock.settimeout(self._timeout)
        connection._result, connection.server_status = None, status


#: Gives what lends the socket of a connection of the caller's, which stays open.
adopt = Client


def _wait(call: Callable[[Any], Any], argument: object) -> Any:
    """Call the socket; None where it has waited for a while."""
    try:
        return call(argument)
    except TimeoutError:
        return None
    except OSError as error:
        raise lost_connection(error) from None


def _refuse(*_command: object) -> None:
    raise pymysql.ProgrammingError(f"a stream of Longshore's reads through the connection\nHint: {BUSY}")
