"""A connection of mysqlclient's (``MySQLdb``)."""

import os
import socket
from collections.abc import Callable, Sequence
from typing import Any

import MySQLdb
from MySQLdb.constants import CLIENT, FIELD_TYPE, FLAG

from longshore.sources.mysql_texts import BINARY, UTF8MB4, Column, Done

#: Cells as they are. What a column would be converted by tells whether it is of bytes, also where there are no rows.
_RAW = {code: [(FLAG.BINARY, bytes)] for code in vars(FIELD_TYPE).values() if isinstance(code, int)}
#: Options of mysql_set_server_option().
_ON, _OFF = 0, 1
#: The methods that its own statements go through.
_METHODS = ("query", "next_result", "commit", "rollback", "autocommit", "select_db", "change_user")


class Driver:
    """The interface of its connection, whose errors are ``failure``."""

    failure = MySQLdb.Error

    def __init__(self, connection: Any) -> None:
        """Keep the connection."""
        self._connection: Any = connection
        self._result: Any = None
        #: Whether another answer follows, once that has been asked.
        self._follows: bool | None = None
        self._converter = connection.converter

    def query(self, statement: bytes) -> None:
        """Run a statement, up to its first answer."""
        type(self._connection).query(self._connection, statement)
        self.advance()

    def advance(self) -> None:
        """Go to the next answer, which there is."""
        connection, self._follows = self._connection, None
        connection.converter = _RAW
        try:
            self._result = connection.use_result()
        finally:
            connection.converter = self._converter

    def columns(self) -> list[Column] | None:
        """Give the columns of the answer; None where it has no rows."""
        result = self._result
        if result is None:
            return None
        told = zip(result.describe(), result.field_flags(), result.converter, strict=True)
        return [
            Column(name, BINARY if converter is bytes else UTF8MB4, length, code, flags, decimals)
            for (name, code, _, length, _, decimals, _), flags, converter in told
        ]

    def fetch(self, rows: int) -> Sequence[Sequence[bytes | None]]:
        """Give the next rows, as the server has sent them; none is the end."""
        fetched: Sequence[Sequence[bytes | None]] = self._result.fetch_row(rows)
        return fetched

    def take_done(self) -> Done:
        """Tell of an answer without rows."""
        connection = self._connection
        info = connection.info() or ""
        text = info.decode() if isinstance(info, bytes) else info
        return Done(connection.affected_rows(), connection.insert_id(), text)

    def warnings(self) -> int:
        """Count the last statement's warnings."""
        count: int = self._connection.warning_count()
        return count

    def has_more(self) -> bool:
        """Whether another answer follows one that has come whole; it goes there."""
        if self._follows is None:
            self._follows = type(self._connection).next_result(self._connection) != -1
        return self._follows

    def explain(self, error: Any) -> tuple[int, str, str]:
        """Give an error's number, SQLSTATE and text."""
        number, text = (*error.args, "", "")[:2]
        state = self._connection.sqlstate() if self._connection.open else "08S01"
        return (number if isinstance(number, int) else 2000), state, str(text or error)

    def take_several(self, several: bool) -> None:  # noqa: FBT001  as there
        """Have the server take several statements in one text, or one."""
        self._connection.set_server_option(_ON if several else _OFF)

    def counts_found_rows(self) -> bool:
        """Whether rows count that an UPDATE has left as they were."""
        return bool(self._connection.client_flag & CLIENT.FOUND_ROWS)

    def is_leased(self) -> bool:
        """Whether its own statements are refused."""
        return "query" in vars(self._connection)

    def refuse(self, refusal: Callable[..., object]) -> None:
        """Have its own statements call this."""
        # While a thread waits, it tells of nothing.
        self._file = self._connection.fileno()
        vars(self._connection).update(dict.fromkeys(_METHODS, refusal))

    def allow(self) -> None:
        """Have them run again."""
        for method in _METHODS:
            vars(self._connection).pop(method, None)

    def sever(self) -> None:
        """Shut the socket, on which a thread may wait."""
        with socket.socket(fileno=os.dup(self._file)) as shut:
            shut.shutdown(socket.SHUT_RDWR)
