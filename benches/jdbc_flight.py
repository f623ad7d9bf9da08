"""Apache's JDBC driver for Flight SQL as a client: `python -m benches.jdbc_flight WAY URL QUERY`.

The way is `rows`, each of which becomes Python's objects, or `arrow`: Apache's adapter makes Arrow of the rows in Java,
and its memory is handed over. Prints the figures as JSON, without those of the JVM's start.
"""

import json
import resource
import sys
import time
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pyarrow as pa

from tests import installations

_FLAGS = ("-Xmx2g", "--add-opens=java.base/java.nio=ALL-UNNAMED")
_BATCH = 65_536
#: The adapter, next to the driver, whose own Arrow has other names.
_ADAPTER = [
    ("org.apache.arrow", name, installations.ARROW_JAVA, "")
    for name in ("arrow-jdbc", "arrow-c-data", "arrow-memory-unsafe")
]


def jars() -> list[str]:
    """Return the class path, fetched from Maven Central once."""
    driver = installations.jar("org.apache.arrow", "flight-sql-jdbc-driver", installations.ARROW_JAVA)
    target = installations.jars("arrow-jdbc", installations.ARROW_JAVA, _ADAPTER)
    return [str(driver), *map(str, target.glob("*.jar"))]


def _rows(result: Any) -> int:
    """Read as JayDeBeApi does: a row is a tuple."""
    columns = range(1, result.getMetaData().getColumnCount() + 1)
    rows = []
    while result.next():
        rows.append(tuple(result.getObject(column) for column in columns))
    return len(rows)


def _arrow(result: Any) -> int:
    """Make Arrow of the rows in Java, and import it."""
    import jpype

    arrow = jpype.JPackage("org").apache.arrow
    allocator = jpype.JClass("org.apache.arrow.memory.RootAllocator")(sys.maxsize)
    adapter = arrow.adapter.jdbc
    builder = adapter.JdbcToArrowConfigBuilder(allocator, adapter.JdbcToArrowUtils.getUtcCalendar())
    config = builder.setTargetBatchSize(_BATCH).build()
    batches = []
    vectors = adapter.JdbcToArrow.sqlToArrowVectorIterator(result, config)
    while vectors.hasNext():
        root = vectors.next()
        array, schema = arrow.c.ArrowArray.allocateNew(allocator), arrow.c.ArrowSchema.allocateNew(allocator)
        arrow.c.Data.exportVectorSchemaRoot(allocator, root, None, array, schema)
        batches.append(pa.RecordBatch._import_from_c(array.memoryAddress(), schema.memoryAddress()))  # noqa: SLF001
        root.close()
    return int(pa.Table.from_batches(batches).num_rows)


def main(way: str, url: str, query: str) -> None:
    """Read, and print the figures."""
    import jpype

    jpype.startJVM(*_FLAGS, classpath=jars())
    parts = urlsplit(url)
    (authority,) = parse_qs(parts.query)["tls_ca"]
    place = f"jdbc:arrow-flight-sql://{parts.netloc}/?useEncryption=true&tlsRootCerts={authority}"
    before = resource.getrusage(resource.RUSAGE_SELF)
    start = time.perf_counter()
    connection = jpype.java.sql.DriverManager.getConnection(place)
    count = {"rows": _rows, "arrow": _arrow}[way](connection.createStatement().executeQuery(query))
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(json.dumps([{"wall": wall, "cpu": cpu, "rows": count}]), flush=True)
    # The driver's own threads would keep the process.
    jpype.java.lang.System.exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
