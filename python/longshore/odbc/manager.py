"""The system's driver manager, called by ``ctypes``: connections, statements, and what they say of errors."""

import contextlib
import ctypes
import ctypes.util
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from ctypes import POINTER, addressof, byref, c_char, c_int, c_short, c_size_t, c_ssize_t, c_ushort, c_void_p
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from longshore import errors

if TYPE_CHECKING:
    from longshore.odbc.drivers import Driver

#: Numbers of ODBC's headers, by their names there.
ENV, DBC, STMT = 1, 2, 3
SUCCESS, SUCCESS_WITH_INFO, NEED_DATA, NO_DATA = 0, 1, 99, 100
NULL_DATA, NO_TOTAL = -1, -4
ATTR_ODBC_VERSION, ATTR_AUTOCOMMIT = 200, 102
ATTR_PARAM_STATUS, ATTR_PARAMS_PROCESSED = 20, 21
ATTR_PARAMSET_SIZE, ATTR_ROW_STATUS, ATTR_ROWS_FETCHED, ATTR_ROW_ARRAY_SIZE = 22, 25, 26, 27
DRIVER_NAME, DBMS_NAME, GETDATA_EXTENSIONS, DESCRIBE_PARAMETER = 6, 17, 81, 10002
DESC_UNSIGNED, DESC_TYPE_NAME = 8, 14
COMMIT, ROLLBACK = 0, 1
ROW_ERROR, PARAM_ERROR, PARAM_UNUSED = 5, 5, 7

GENERAL_WARNING = "01000"

_NO_MANAGER = "install the system's ODBC driver manager: apt install unixodbc, or brew install unixodbc"


class OdbcError(Exception):
    """The text that the driver or its manager says of a call that failed."""

    def __init__(self, text: str, sqlstate: str | None) -> None:
        """Keep the text and the state."""
        super().__init__(text)
        self.sqlstate = sqlstate


class Description(NamedTuple):
    """A column of a result, or a parameter of a statement."""

    name: str
    #: ODBC's number of the SQL type, and the database's own name of it.
    sql_type: int
    native: str
    #: Characters, digits or bytes, and the digits after the point.
    size: int
    digits: int
    is_unsigned: bool


@cache
def library() -> Any:
    """Load the driver manager; raises ``InterfaceError`` where there is none."""
    if sys.platform == "win32":
        return ctypes.WinDLL("odbc32")
    name = ctypes.util.find_library("odbc")
    if name is None:
        raise errors.InterfaceError("the system has no ODBC driver manager", hint=_NO_MANAGER)
    return ctypes.CDLL(name)


@cache
def function(name: str, *types: Any) -> Callable[..., int]:
    """Give a function of the driver manager's by its name, and by the types of its arguments."""
    function = getattr(library(), name)
    function.restype, function.argtypes = c_short, types
    return function  # type: ignore[no-any-return]


_TEXT = (c_void_p, c_short)
_ATTRIBUTE = (c_void_p, c_int, c_void_p, c_int)


def wide(text: str) -> tuple[Any, int]:
    """Give a text as ODBC's functions with a W take it, and its length in units of two bytes."""
    data = text.encode("utf-16-le", "surrogatepass")
    return ctypes.create_string_buffer(data + b"\0\0"), len(data) // 2


class Handle:
    """A handle of the driver manager's, which is freed once."""

    kind: int

    def __init__(self, parent: "Handle | None") -> None:
        """Allocate it."""
        self.value, self._lock = c_void_p(), threading.Lock()
        above = parent.value if parent else None
        code = function("SQLAllocHandle", c_short, c_void_p, POINTER(c_void_p))(self.kind, above, byref(self.value))
        if parent is not None:
            parent.check(code)

    def check(self, code: int) -> int:
        """Give the code of a call back; raises ``OdbcError`` where it says that the call failed."""
        if code in (SUCCESS, SUCCESS_WITH_INFO, NO_DATA):
            return code
        found = [*self.diagnostics()]
        raise OdbcError("; ".join(text for _, text in found) or f"ODBC's code {code}", found[0][0] if found else None)

    def diagnostics(self) -> Iterator[tuple[str, str]]:
        """Give the states and the texts of the last call."""
        types = (c_short, c_void_p, c_short, c_void_p, POINTER(c_int), *_TEXT, POINTER(c_short))
        state, native, length = (c_char * 12)(), c_int(), c_short()
        text = (c_char * 8192)()
        for number in range(1, 8):
            arguments = (self.kind, self.value, number, state, byref(native), text, len(text) // 2, byref(length))
            if function("SQLGetDiagRecW", *types)(*arguments) not in (SUCCESS, SUCCESS_WITH_INFO):
                return
            yield state.raw[:10].decode("utf-16-le"), _decode(text, 2 * length.value)

    def set(self, attribute: int, value: Any) -> None:
        """Set one of its attributes: a number, or the address of a buffer."""
        name = {ENV: "SQLSetEnvAttr", DBC: "SQLSetConnectAttrW", STMT: "SQLSetStmtAttrW"}[self.kind]
        self.check(function(name, *_ATTRIBUTE)(self.value, attribute, value, 0))

    def free(self) -> None:
        """Free it, unless it is freed."""
        with self._lock:
            value, self.value = self.value, c_void_p()
            if value:
                self._end(value)
                function("SQLFreeHandle", c_short, c_void_p)(self.kind, value)

    def _end(self, value: c_void_p) -> None:
        """Do what comes before it is freed."""

    def __del__(self) -> None:
        """Free what was forgotten."""
        if "_lock" in vars(self):
            self.free()


class Environment(Handle):
    """The attributes that connections begin with."""

    kind = ENV


class Connection(Handle):
    """A connection to a data source."""

    kind = DBC

    def __init__(self, text: str) -> None:
        """Connect by a connection string."""
        self._environment = Environment(None)
        self._environment.set(ATTR_ODBC_VERSION, 3)
        self.address = text
        super().__init__(self._environment)
        types = (c_void_p, c_void_p, *_TEXT, c_void_p, c_short, c_void_p, c_ushort)
        given, length = wide(text)
        self.check(function("SQLDriverConnectW", *types)(self.value, None, given, length, None, 0, None, 0))

    def _end(self, value: c_void_p) -> None:
        function("SQLDisconnect", c_void_p)(value)

    def close(self) -> None:
        """Disconnect."""
        self.free()
        self._environment.free()

    def text(self, what: int) -> str:
        """Give a text of what the driver tells of itself."""
        into, length = (c_char * 512)(), c_short()
        self._info(what, into, length)
        return _decode(into, length.value)

    def number(self, what: int) -> int:
        """Give a number of what the driver tells of itself."""
        into, length = (c_char * 512)(), c_short()
        self._info(what, into, length)
        return int.from_bytes(into.raw[:4], sys.byteorder)

    def _info(self, what: int, into: Any, length: c_short) -> None:
        types = (c_void_p, c_ushort, *_TEXT, POINTER(c_short))
        self.check(function("SQLGetInfoW", *types)(self.value, what, into, len(into), byref(length)))

    def begin(self) -> None:
        """Begin a transaction."""
        self.set(ATTR_AUTOCOMMIT, 0)

    def commit(self) -> None:
        """Commit it."""
        self._finish(COMMIT)

    def rollback(self) -> None:
        """Roll it back."""
        self._finish(ROLLBACK)

    def _finish(self, how: int) -> None:
        self.check(function("SQLEndTran", c_short, c_void_p, c_short)(DBC, self.value, how))
        self.set(ATTR_AUTOCOMMIT, 1)


class Statement(Handle):
    """A statement: prepared, run, and its result."""

    kind = STMT
    #: Whether it was cancelled, which a driver heeds only while it waits.
    is_cancelled = False

    def __init__(self, connection: Connection, driver: "Driver") -> None:
        """Allocate it."""
        super().__init__(connection)
        self.driver = driver
        self._is_running = False
        #: Buffers that the driver writes to or reads from for as long as the statement lives.
        self.buffers: list[Any] = []

    def prepare(self, text: str) -> None:
        """Have the driver look at a statement."""
        self._say("SQLPrepare", text)

    def run(self, text: str | None = None) -> None:
        """Run a statement, or the one that is prepared."""
        self._look()
        if text is None:
            with self._running():
                code = self.check(function("SQLExecute", c_void_p)(self.value))
        else:
            code = self._say("SQLExecDirect", text)
        if code == SUCCESS_WITH_INFO and self.driver.hides_failures:
            for state, said in self.diagnostics():
                if state == GENERAL_WARNING:
                    raise OdbcError(said, state)

    def execute_sets(self, sets: int) -> int:
        """Run the prepared statement with each of the bound sets of parameters; gives how many rows all have changed.

        Raises ``OdbcError`` where the driver leaves a set out; -1 where it does not tell the rows.
        """
        status, done = (c_ushort * sets)(), c_size_t()
        self.buffers += [status, done]
        self.set(ATTR_PARAM_STATUS, addressof(status))
        self.set(ATTR_PARAMS_PROCESSED, addressof(done))
        self.run()
        if done.value != sets or PARAM_ERROR in status or PARAM_UNUSED in status:
            raise OdbcError(f"the driver ran the statement with {done.value} of {sets} sets of parameters", None)
        counts = [self.changed_rows]
        # PostgreSQL's driver tells of each set by itself.
        while self.has_another:
            counts.append(self.changed_rows)
        return -1 if min(counts) < 0 else sum(counts)

    def _say(self, name: str, text: str) -> int:
        given, length = (text.encode(), len(text.encode())) if self.driver.takes_utf8 else wide(text)
        name = name if self.driver.takes_utf8 else f"{name}W"
        with self._running():
            return self.check(function(name, c_void_p, c_void_p, c_int)(self.value, given, length))

    @contextlib.contextmanager
    def _running(self) -> Iterator[None]:
        """Wait for the server in the block, in which the statement can be cancelled in any case."""
        self._is_running = True
        try:
            yield
        finally:
            # A cancel that is under way ends first: it may have freed the result.
            with self._lock:
                self._is_running = False
        if self.driver.fetches_whole:
            self._look()

    def cancel(self) -> None:
        """Stop what runs, from any thread."""
        self.is_cancelled = True
        with self._lock:
            if self.value and (self._is_running or not self.driver.fetches_whole):
                function("SQLCancel", c_void_p)(self.value)

    def _look(self) -> None:
        if self.is_cancelled:
            raise OdbcError("the statement was cancelled", "HY008")

    def _count(self, name: str, kind: Any) -> int:
        count = kind()
        self.check(function(name, c_void_p, POINTER(kind))(self.value, byref(count)))
        return int(count.value)

    @property
    def changed_rows(self) -> int:
        """How many rows were changed; -1 where the driver does not know."""
        return self._count("SQLRowCount", c_ssize_t)

    @property
    def places(self) -> int:
        """How many parameters the prepared statement has."""
        return self._count("SQLNumParams", c_short)

    def columns(self) -> list[Description]:
        """Describe the columns of the result; none where there is no result."""
        return [self._column(number) for number in range(1, self._count("SQLNumResultCols", c_short) + 1)]

    def _column(self, number: int) -> Description:
        name, length = (c_char * 1024)(), c_short()
        kind, size, digits, nullable = c_short(), c_size_t(), c_short(), c_short()
        types = (c_void_p, c_ushort, *_TEXT, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p)
        told = (byref(length), byref(kind), byref(size), byref(digits), byref(nullable))
        self.check(function("SQLDescribeColW", *types)(self.value, number, name, len(name) // 2, *told))
        native, is_unsigned = self._attribute(number, DESC_TYPE_NAME), self._attribute(number, DESC_UNSIGNED)
        return Description(
            _decode(name, 2 * length.value), kind.value, native[0], size.value, digits.value, bool(is_unsigned[1])
        )

    def _attribute(self, number: int, what: int) -> tuple[str, int]:
        text, length, value = (c_char * 512)(), c_short(), c_ssize_t()
        types = (c_void_p, c_ushort, c_ushort, *_TEXT, c_void_p, c_void_p)
        arguments = (self.value, number, what, text, len(text), byref(length), byref(value))
        self.check(function("SQLColAttributeW", *types)(*arguments))
        return _decode(text, length.value), value.value

    def parameters(self) -> list[Description]:
        """Describe the parameters of the prepared statement."""
        types = (c_void_p, c_ushort, c_void_p, c_void_p, c_void_p, c_void_p)
        found = []
        for number in range(1, self.places + 1):
            kind, size, digits, nullable = c_short(), c_size_t(), c_short(), c_short()
            told = (byref(kind), byref(size), byref(digits), byref(nullable))
            self.check(function("SQLDescribeParam", *types)(self.value, number, *told))
            found.append(Description(str(number - 1), kind.value, "", size.value, digits.value, is_unsigned=False))
        return found

    def bind_parameter(self, number: int, types: Sequence[int], values: Any, width: int, lengths: Any) -> None:
        """Bind parameter ``number`` to buffers of one value for each set: C type, SQL type, size and digits of it."""
        signature = (c_void_p, c_ushort, c_short, c_short, c_short, c_size_t, c_short, c_void_p, c_ssize_t, c_void_p)
        bind, (c_type, sql_type, size, digits) = function("SQLBindParameter", *signature), types
        place = (values.ctypes.data, width, lengths.ctypes.data)
        self.check(bind(self.value, number, 1, c_type, sql_type, size, digits, *place))
        self.buffers += [values, lengths]

    def bind_column(self, number: int, c_type: int, values: Any, width: int, lengths: Any) -> None:
        """Bind column ``number`` to buffers of one value for each row that is fetched at once."""
        types = (c_void_p, c_ushort, c_short, c_void_p, c_ssize_t, c_void_p)
        place = (values.ctypes.data, width, lengths.ctypes.data)
        self.check(function("SQLBindCol", *types)(self.value, number, c_type, *place))
        self.buffers += [values, lengths]

    def fetch(self) -> bool:
        """Fetch the next rows into the buffers; False at the end."""
        self._look()
        return self.check(function("SQLFetch", c_void_p)(self.value)) != NO_DATA

    def long_value(self, row: int, number: int, c_type: int, most: int | None) -> bytes | None:
        """Give all bytes of a value of the rows that were fetched last; None where they are more than ``most``."""
        self.check(function("SQLSetPos", c_void_p, c_size_t, c_ushort, c_ushort)(self.value, row + 1, 0, 0))
        types = (c_void_p, c_ushort, c_short, c_void_p, c_ssize_t, POINTER(c_ssize_t))
        # The driver ends a text with a zero of as many bytes as a unit has.
        end = 2 if c_type == C_WCHAR else 0
        pieces: list[bytes] = []
        size, into, length = 0, (c_char * 512)(), c_ssize_t()
        while True:
            code = function("SQLGetData", *types)(self.value, number, c_type, into, len(into), byref(length))
            if self.check(code) == NO_DATA:
                return b"".join(pieces)
            room = len(into) - end
            is_rest = 0 <= length.value <= room
            pieces.append(bytes(memoryview(into)[: length.value if is_rest else room]))
            size += len(pieces[-1])
            if most is not None and size > most:
                return None
            if is_rest:
                return b"".join(pieces)
            # What is left is known of most drivers, and comes at once.
            left = length.value - room if length.value > 0 else 1 << 20
            if len(into) < left + end:
                into = (c_char * (min(left, (most or left) + 2) + end))()

    @property
    def has_another(self) -> bool:
        """Whether the statement has one more result, which becomes the current one."""
        return self.check(function("SQLMoreResults", c_void_p)(self.value)) != NO_DATA


C_CHAR, C_WCHAR, C_BINARY = 1, -8, -2


def _decode(buffer: Any, length: int) -> str:
    return str(buffer.raw[: max(0, min(length, len(buffer)))].decode("utf-16-le", "replace"))
