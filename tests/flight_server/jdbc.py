"""Apache's JDBC driver for Flight SQL, in a process of its own: `python -m tests.flight_server.jdbc JAR`.

It reads commands, a line of JSON each, and answers each with a line: what was found, or the words of the error.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from tests import installations

_FLAGS = ("-Xrs", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m")
#: Arrow's buffers are memory that Java has to open to it; its log is of no use.
_ARROW = ("--add-opens=java.base/java.nio=ALL-UNNAMED", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off")
#: The rows that are read before a statement is cancelled.
_BEFORE = 10


class JDBCError(Exception):
    """The driver's exception."""


class Driver:
    """The driver, in a JVM that several servers share."""

    def __init__(self) -> None:
        """Start it."""
        jar = installations.jar("org.apache.arrow", "flight-sql-jdbc-driver", installations.ARROW_JAVA)
        command = [sys.executable, "-m", "tests.flight_server.jdbc", str(jar)]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True)

    def __enter__(self) -> Self:
        """Give it."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the process, whose JVM would wait for the driver's own threads."""
        self._process.kill()
        self._process.communicate()

    def __call__(self, url: str, do: str, *arguments: Any) -> Any:
        """Have something done over a connection to a URL, which stays open."""
        if self._process.stdin is None or self._process.stdout is None:
            raise BrokenPipeError
        self._process.stdin.write(json.dumps([url, do, *arguments]) + "\n")
        self._process.stdin.flush()
        found, failed = json.loads(self._process.stdout.readline())
        if failed is not None:
            raise JDBCError(failed)
        return found


def _text(value: Any) -> str | None:
    if value is None:
        return None
    return bytes(byte % 256 for byte in value).hex() if type(value).__name__ == "byte[]" else str(value)


def _rows(found: Any) -> list[dict[str, str | None]]:
    """Read a result by the names of its columns, and close it."""
    names = [str(found.getMetaData().getColumnLabel(at + 1)) for at in range(found.getMetaData().getColumnCount())]
    rows = []
    while found.next():
        rows.append({name: _text(found.getObject(at + 1)) for at, name in enumerate(names)})
    found.close()
    return rows


class _Connection:
    """A connection, and what is done over it."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    def _with(self, work: Callable[[Any], Any]) -> Any:
        statement = self.connection.createStatement()
        try:
            return work(statement)
        finally:
            statement.close()

    def _prepared(self, sql: str, sets: list[list[Any]], work: Callable[[Any], Any]) -> Any:
        """Prepare, set each parameter by the method that its type names, and work."""
        import jpype

        java = jpype.java
        made: dict[str, Callable[[Any], Any]] = {
            "Date": java.sql.Date.valueOf,
            "Time": java.sql.Time.valueOf,
            "Timestamp": java.sql.Timestamp.valueOf,
            "BigDecimal": java.math.BigDecimal,
            "Bytes": lambda text: jpype.JArray(jpype.JByte)(bytes.fromhex(text)),
        }
        statement = self.connection.prepareStatement(sql)
        try:
            for values in sets:
                for at, (kind, value) in enumerate(values):
                    getattr(statement, f"set{kind}")(at + 1, made.get(kind, lambda same: same)(value))
                if len(sets) > 1:
                    statement.addBatch()
            return work(statement)
        finally:
            statement.close()

    def query(self, sql: str, *params: Any) -> Any:
        """Give the rows."""
        if params:
            return self._prepared(sql, [list(params)], lambda statement: _rows(statement.executeQuery()))
        return self._with(lambda statement: _rows(statement.executeQuery(sql)))

    def update(self, sql: str, *params: Any) -> Any:
        """Give the number of changed rows."""
        if params:
            return self._prepared(sql, [list(params)], lambda statement: int(statement.executeUpdate()))
        return self._with(lambda statement: int(statement.executeUpdate(sql)))

    def batch(self, sql: str, *sets: Any) -> Any:
        """Give the numbers of a batch."""
        return self._prepared(sql, list(sets), lambda statement: [int(count) for count in statement.executeBatch()])

    def execute(self, sql: str) -> Any:
        """Tell whether a statement has rows, and how many it has changed."""
        return self._with(lambda statement: [bool(statement.execute(sql)), int(statement.getUpdateCount())])

    def parameters(self, sql: str) -> Any:
        """Give the types of the parameters."""

        def types(statement: Any) -> list[str]:
            told = statement.getParameterMetaData()
            return [str(told.getParameterTypeName(at + 1)) for at in range(told.getParameterCount())]

        return self._prepared(sql, [], types)

    def columns(self, sql: str) -> Any:
        """Give the names and types of the columns of a query, which is not run."""

        def described(statement: Any) -> list[list[str]]:
            told = statement.getMetaData()
            places = range(1, told.getColumnCount() + 1)
            return [[str(told.getColumnName(place)), str(told.getColumnTypeName(place))] for place in places]

        return self._prepared(sql, [], described)

    def most(self, sql: str, rows: int) -> Any:
        """Give the rows of a statement that has at most so many."""

        def read(statement: Any) -> Any:
            statement.setMaxRows(rows)
            return _rows(statement.executeQuery(sql))

        return self._with(read)

    def cancel(self, sql: str) -> Any:
        """Read a few rows, cancel the statement, and read on."""

        def left(statement: Any) -> int:
            found = statement.executeQuery(sql)
            try:
                count = 0
                while found.next():
                    count += 1
                    if count == _BEFORE:
                        statement.cancel()
                return count
            finally:
                found.close()

        return self._with(left)

    def catalogue(self, method: str, *arguments: Any) -> Any:
        """Give what the driver tells of the database."""
        found = getattr(self.connection.getMetaData(), method)(*arguments)
        return _rows(found) if hasattr(found, "getMetaData") else str(found)

    def undo(self, sql: str) -> Any:
        """Run a statement in a transaction that is rolled back."""
        self.connection.setAutoCommit(False)
        try:
            count = self.update(sql)
            self.connection.rollback()
        finally:
            self.connection.setAutoCommit(True)
        return count

    def close(self) -> None:
        """Close."""
        self.connection.close()


def main(jar: str) -> None:
    """Do what the standard input says."""
    import jpype

    jpype.startJVM(*_FLAGS, *_ARROW, classpath=[jar])
    open_ones: dict[str, _Connection] = {}
    for line in sys.stdin:
        url, do, *arguments = json.loads(line)
        try:
            if url not in open_ones:
                open_ones[url] = _Connection(jpype.java.sql.DriverManager.getConnection(url))
            answer = [getattr(open_ones[url], do)(*arguments), None]
            if do == "close":
                del open_ones[url]
        except jpype.JException as failure:
            answer = [None, f"{type(failure).__name__}: {failure.getMessage()}"]
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
