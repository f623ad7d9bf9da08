"""Microsoft's JDBC driver, in a process of its own: `python -m tests.mssql.jdbc JAR URL`.

It reads queries, a line of JSON each, and prints for each its rows' first column, as text, or that it timed out.
"""

import json
import struct
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any

from tests import installations
from tests.tds.types import Type

_FLAGS = ("-Xrs", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m")


def read(url: str, queries: Iterable[str]) -> list[list[str | None]]:
    """Return the first column of each query's rows."""
    jar = installations.jar("com.microsoft.sqlserver", "mssql-jdbc", "13.6.2.jre11")
    command = [sys.executable, "-m", "tests.mssql.jdbc", str(jar), url]
    lines = "".join(json.dumps(query) + "\n" for query in queries)
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=False, timeout=120)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return [json.loads(line) for line in done.stdout.splitlines()]


def value(kind: Type, text: str | None) -> Any:
    """Return the value that the driver shows as this text."""
    if text is None:
        return None
    name = kind.name.partition("(")[0]
    return _PARSED[name](text) if name in _PARSED else text


def shown(kind: Type, value: Any) -> Any:
    """Return what `value` gives for a value that was sent: older types lose the zeros behind their seconds."""
    return value.rstrip("0") if kind.name == "datetime" and value is not None else value


_PARSED: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), int),
    **dict.fromkeys(("decimal", "numeric", "money", "smallmoney"), Decimal),
    **dict.fromkeys(
        ("varbinary", "binary", "image", "rowversion", "hierarchyid", "geometry", "geography"), bytes.fromhex
    ),
    "bit": lambda text: bool(int(text)),
    "real": lambda text: struct.unpack("f", struct.pack("f", float(text)))[0],
    "float": float,
    "uniqueidentifier": uuid.UUID,
    "vector": json.loads,
    "datetime": lambda text: text.rstrip("0"),
    "smalldatetime": lambda text: text.removesuffix(".0"),
}


def _text(rows: Any) -> str | None:
    import jpype

    if rows.getMetaData().getColumnTypeName(1) == "vector":
        found = rows.getObject(1, jpype.JClass("microsoft.sql.Vector"))
        numbers = None if found is None else found.getData()
        return None if numbers is None else json.dumps([float(number) for number in numbers])
    value = rows.getObject(1)
    if value is None:
        return None
    if type(value).__name__ == "byte[]":
        return bytes(byte % 256 for byte in value).hex()
    return str(rows.getString(1))


def _read(connection: Any, query: str) -> list[str | None]:
    rows = connection.createStatement().executeQuery(query)
    found = []
    while rows.next():
        found.append(_text(rows))
    return found


def main(jar: str, url: str) -> None:
    """Run the queries of the standard input."""
    import jpype

    jpype.startJVM(*_FLAGS, classpath=[jar])
    connection = jpype.java.sql.DriverManager.getConnection(url)
    for line in sys.stdin:
        try:
            found = _read(connection, json.loads(line))
        except jpype.java.sql.SQLTimeoutException as timeout:
            found = [str(timeout.getMessage())]
        sys.stdout.write(json.dumps(found) + "\n")
    connection.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
