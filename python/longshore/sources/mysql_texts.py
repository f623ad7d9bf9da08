"""Drivers of MySQL's whose socket cannot be had: statements and rows go through them as texts, in the caller's session.

The core speaks MySQL's protocol with what is here as it does with a server. It prepares nothing, so that each of its
commands is a statement of the driver's, and each answer is made of what the driver tells.
"""

import contextlib
import queue
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from longshore import errors
from longshore.errors import InterfaceError, OperationalError

if TYPE_CHECKING:
    from longshore.sources.mysqlclient import Driver

BUSY = "let its statement end, or close the stream that reads through it"
ALONE = "the connection is in autocommit: each statement of ours would be for itself"
BEGUN = "give one that is not in autocommit, or the URL"
_QUERY, _PING, _SET_OPTION = 0x03, 0x0E, 0x1B
#: Bits of what both can do: found rows are counted, the protocol itself, several statements in a text, several results.
_FOUND_ROWS, _PROTOCOL_41, _MULTI_STATEMENTS, _MULTI_RESULTS = 1 << 1, 1 << 9, 1 << 16, 1 << 17
_IS_MYSQL = 1
#: Bits of the status.
_IN_TRANSACTION, _AUTOCOMMIT, _MORE_RESULTS, _NO_BACKSLASH_ESCAPES = 1, 2, 8, 512
_DEADLOCK, _OUT_OF_SYNC = 1213, 2014
#: The longest payload of a packet, and the bytes of rows that are fetched at once.
_FULL, _ENOUGH = (1 << 24) - 1, 1 << 20
_MOST_ROWS = 1000
#: Seconds of a wait, after which the deadline is asked; and for what another connection is for.
SLICE, ELSEWHERE = 0.05, 2
_SESSION = b"SELECT @@version, @@sql_mode, @@autocommit, connection_id()"
#: The variables that change how the next statements are read, or whether they commit.
_CHANGES = (b"sql_mode", b"autocommit")
_LENGTHS = [bytes([length]) for length in range(251)]
#: The character sets of bytes, and of texts.
BINARY, UTF8MB4 = 63, 45


class Column(NamedTuple):
    """The facts that a driver tells of a column."""

    name: str
    charset: int
    length: int
    code: int
    flags: int
    decimals: int


class Done(NamedTuple):
    """The end of a statement without rows."""

    affected: int
    inserted: int
    info: str


class Leased(NamedTuple):
    """A driver's connection, and what opens another like it."""

    driver: "Driver"
    another: Callable[[], Any]


class Adopted:
    """A connection of the caller's, who ends its transaction. One that an engine has lent goes back in the end."""

    _owner: Any = None

    def __del__(self) -> None:
        """Give a connection back to the engine that has lent it."""
        if self._owner is not None:
            with contextlib.suppress(errors.Error):
                self._owner.close()


class Client(Adopted):
    """One connection. While it is lent, the driver's own statements are refused."""

    def __init__(self, leased: Leased, owner: Any) -> None:
        """Keep all three."""
        self._driver, self._another, self._owner = leased.driver, leased.another, owner
        self._status = self._sequence = 0
        self._received = bytearray()
        # The driver is a little ahead of who reads.
        self._answers: queue.Queue[bytes | BaseException] = queue.Queue(1)
        self._ready = b""
        self._is_leased = False
        #: Whether the answer that is on its way is read by no one: it has only to end.
        self._is_stopped = False
        self._server: threading.Thread | None = None

    def lease(self) -> tuple[int, int, int, bool, bool]:
        """Tell what both can do, the thread, the status, whether it is for us alone, and that texts are all it has."""
        if self._driver.is_leased():
            raise InterfaceError("the connection is busy", hint=BUSY)
        try:
            version, _, _, thread = self._note_session()
        except self._driver.failure as error:
            code, _, text = self._driver.explain(error)
            if code == _OUT_OF_SYNC:
                raise InterfaceError("the connection is busy", hint=BUSY) from None
            raise lost_connection(text) from None
        if self._owner is None:
            if self._status & _AUTOCOMMIT:
                raise InterfaceError(ALONE, hint=BEGUN)
            self._status |= _IN_TRANSACTION
        self._driver.refuse(_refuse)
        self._is_leased = True
        capabilities = _PROTOCOL_41 | _MULTI_STATEMENTS | _MULTI_RESULTS
        capabilities |= 0 if b"MariaDB" in version else _IS_MYSQL
        capabilities |= _FOUND_ROWS if self._driver.counts_found_rows() else 0
        return capabilities, int(thread), self._status, self._owner is not None, True

    def _note_session(self) -> Sequence[bytes]:
        """Ask for what a server would tell in its status."""
        self._driver.query(_SESSION)
        self._driver.columns()
        ((version, mode, commits, thread),) = self._driver.fetch(2)
        self._driver.fetch(1)
        self._status &= _IN_TRANSACTION
        self._status |= _AUTOCOMMIT if commits == b"1" else 0
        self._status |= _NO_BACKSLASH_ESCAPES if b"NO_BACKSLASH_ESCAPES" in (mode or b"") else 0
        return version or b"", mode or b"", commits or b"", thread or b"0"

    # What the core calls.

    def send(self, data: bytes) -> int:
        """Take a part of a command, or some; the last begins."""
        self._received += data
        while (command := self._next_command()) is not None:
            if self._server is not None:
                self._server.join()
            self._is_stopped = False
            self._server = threading.Thread(target=self._serve, args=(command,), name="longshore-mysql", daemon=True)
            self._server.start()
        return len(data)

    def receive(self, size: int) -> bytes | None:
        """Give some bytes of the answer; None where nothing has come for a while."""
        if not self._ready:
            try:
                answer = self._answers.get(timeout=SLICE)
            except queue.Empty:
                return None
            if isinstance(answer, BaseException):
                raise answer
            self._ready = answer
        given, self._ready = self._ready[:size], self._ready[size:]
        return given

    def run_elsewhere(self, statements: list[str]) -> None:
        """Run statements over another connection, which is opened as this one was."""
        self._is_stopped = True
        ran: queue.SimpleQueue[str] = queue.SimpleQueue()

        def run() -> None:
            try:
                with contextlib.closing(self._another()) as other:
                    cursor = other.cursor()
                    for statement in statements:
                        # One that fails had nothing to end, or to undo.
                        with contextlib.suppress(self._driver.failure):
                            cursor.execute(statement)
                ran.put("")
            except Exception as error:  # noqa: BLE001  it is the engine's, on another thread
                ran.put(str(error) or type(error).__name__)

        threading.Thread(target=run, name="longshore-kill", daemon=True).start()
        try:
            failure = ran.get(timeout=ELSEWHERE)
        except queue.Empty:
            failure = "the server does not answer"
        if failure:
            raise OperationalError(f"another connection cannot be opened: {failure}")

    def release(self, status: int | None) -> None:
        """Let the driver's own statements run again; without a status, nothing can follow on the connection."""
        self._is_leased = False
        if status is None:
            self._driver.sever()
        if self._server is not None:
            self._server.join()
        self._driver.allow()

    # The server's side.

    def _next_command(self) -> bytes | None:
        """Take a whole command from what was received."""
        at, command = 0, bytearray()
        while len(self._received) >= at + 4:
            length = int.from_bytes(self._received[at : at + 3], "little")
            self._sequence = self._received[at + 3] + 1
            if len(self._received) < at + 4 + length:
                return None
            command += self._received[at + 4 : at + 4 + length]
            at += 4 + length
            if length < _FULL:
                del self._received[:at]
                return bytes(command)
        return None

    def _serve(self, command: bytes) -> None:
        """Answer a command. Behind the last piece the driver is free for the next one."""
        try:
            for piece in self._answer(command[0], command[1:]):
                self._put(piece)
        except BaseException as error:  # noqa: BLE001  it is the core's, on another thread
            self._put(error)

    def _put(self, piece: bytes | BaseException) -> None:
        while self._is_leased:
            with contextlib.suppress(queue.Full):
                self._answers.put(piece, timeout=SLICE)
                return

    def _answer(self, code: int, body: bytes) -> Iterator[bytes]:
        try:
            if code == _QUERY:
                yield from self._results(body)
            elif code == _SET_OPTION:
                self._driver.take_several(body[:1] == b"\0")
                yield self._end(self._status)
            elif code == _PING:
                yield self._ok(Done(0, 0, ""))
            else:
                yield self._error(1047, "08S01", "this client sends statements as texts alone")
        except self._driver.failure as error:
            number, sqlstate, text = self._driver.explain(error)
            if not 1000 <= number < 2000 and not 3000 <= number < 5000:  # noqa: PLR2004  the clients' own
                raise lost_connection(text) from None
            if number == _DEADLOCK:
                self._status &= ~_IN_TRANSACTION
            yield self._error(number, sqlstate, text)

    def _results(self, statement: bytes) -> Iterator[bytes]:
        self._driver.query(statement)
        while True:
            columns = self._driver.columns()
            if columns is None:
                done, warnings = self._driver.take_done(), self._driver.warnings()
                self._note(statement)
                end = self._ok(done, warnings)
            else:
                yield self._head(columns)
                yield from self._rows()
                warnings = self._driver.warnings()
                end = self._end(self._flags(), warnings)
            has_more = self._driver.has_more()
            yield end
            if not has_more:
                return
            self._driver.advance()

    def _note(self, statement: bytes) -> None:
        """Take note of what a statement has done to the session."""
        words = statement[:4096].lower()
        first = words.split(None, 2)
        if first[:1] in ([b"begin"], [b"start"]) or self._owner is None:
            self._status |= _IN_TRANSACTION
        elif first[:1] in ([b"commit"], [b"rollback"]) and first[1:2] != [b"to"]:
            self._status &= ~_IN_TRANSACTION
        if any(word in words for word in _CHANGES) and not self._driver.has_more():
            self._note_session()

    def _rows(self) -> Iterator[bytes]:
        count = 16
        while rows := self._driver.fetch(count):
            if self._is_stopped:
                # The sockets between here and the server hold hundreds of thousands, which is seconds of work.
                continue
            block = b"".join([self._packet(b"".join([_cell(cell) for cell in row])) for row in rows])
            count = max(1, min(_MOST_ROWS, len(rows) * _ENOUGH // len(block)))
            yield block

    def _head(self, columns: Sequence[Column]) -> bytes:
        # Catalogue, database and tables are not used, and the name that a column has in its table is not told.
        definitions = [
            b"\0\0\0\0"
            + _cell(name.encode())
            + struct.pack("<xBHIBHB2x", 12, charset, length & 0xFFFF_FFFF, code, flags & 0xFFFF, decimals & 0xFF)
            for name, charset, length, code, flags, decimals in columns
        ]
        return b"".join(map(self._packet, [_length(len(columns)), *definitions])) + self._end(self._status)

    def _ok(self, done: Done, warnings: int = 0) -> bytes:
        counts = _length(done.affected) + _length(done.inserted)
        return self._packet(b"\0" + counts + struct.pack("<HH", self._flags(), warnings) + done.info.encode())

    def _end(self, flags: int, warnings: int = 0) -> bytes:
        return self._packet(struct.pack("<BHH", 0xFE, min(warnings, 0xFFFF), flags))

    def _flags(self) -> int:
        return self._status | (_MORE_RESULTS if self._driver.has_more() else 0)

    def _error(self, number: int, sqlstate: str, text: str) -> bytes:
        return self._packet(struct.pack("<BH", 0xFF, number) + b"#" + sqlstate.encode()[:5].ljust(5) + text.encode())

    def _packet(self, payload: bytes) -> bytes:
        packets = []
        while True:
            piece, payload = payload[:_FULL], payload[_FULL:]
            packets.append(len(piece).to_bytes(3, "little") + bytes([self._sequence & 0xFF]) + piece)
            self._sequence += 1
            if len(piece) < _FULL:
                return packets[0] if len(packets) == 1 else b"".join(packets)


#: Gives what the core speaks with.
adopt = Client


def _cell(value: bytes | None) -> bytes:
    if value is None:
        return b"\xfb"
    length = len(value)
    return (_LENGTHS[length] if length < len(_LENGTHS) else _length(length)) + value


def _length(number: int) -> bytes:
    if number < len(_LENGTHS):
        return _LENGTHS[number]
    # The shortest: a row must not begin as the end of rows does.
    mark, size = (b"\xfc", 2) if number < 1 << 16 else (b"\xfd", 3) if number < 1 << 24 else (b"\xfe", 8)
    return mark + number.to_bytes(size, "little")


def _refuse(*_statement: object, **_arguments: object) -> None:
    raise InterfaceError("a stream of Longshore's reads through the connection", hint=BUSY)


def lost_connection(failure: object) -> OperationalError:
    """Make the error of a connection that has gone."""
    return OperationalError(f"the connection to the server is lost: {failure}", hint="connect again")
