"""Reads in parts next to serial ones, and what a server was told meanwhile."""

import collections
import re
from typing import Any

import pyarrow as pa
import pytest

import longshore
from tests.servers import PostgreSQL

#: The rows of the table `t` of the fixture `server`.
ROWS = 3000


def read(query: Any, conn: Any, **arguments: Any) -> pa.Table:
    return longshore.read_sql(query, conn, return_type="arrow", **arguments)


def rows(table: pa.Table) -> collections.Counter[str]:
    """Give all rows, in no order; NaN equals NaN."""
    return collections.Counter(repr(tuple(row.values())) for row in table.to_pylist())


def in_parts(query: Any, conn: Any, *, ordered: bool = False, **arguments: Any) -> pa.Table:
    """Read in parts, which warns of nothing, and compare with the serial read."""
    plain = {name: value for name, value in arguments.items() if not name.startswith("partition_")}
    serial = read(query, conn, **plain)
    parallel = read(query, conn, **arguments)
    assert parallel.schema.equals(serial.schema, check_metadata=True)
    assert rows(parallel) == rows(serial)
    if ordered:
        assert parallel.equals(serial)
    return parallel


def serially(reason: str, query: Any, conn: Any, **arguments: Any) -> pa.Table:
    """Read in parts, which is warned of with `reason`, and give the result."""
    with pytest.warns(longshore.SerialReadWarning, match=re.escape(reason)):
        return read(query, conn, **arguments)


class Statements:
    """The statements that a server was sent from here on."""

    def __init__(self, server: PostgreSQL) -> None:
        """Begin now."""
        self.server = server
        self.start = len(server.log)

    def of_parts(self) -> list[str]:
        """Give the statements that the sessions have run that joined a snapshot, parts only."""
        said: dict[str, list[str]] = collections.defaultdict(list)
        for line in re.split(r"\n(?=\d+\|)", self.server.log[self.start :]):
            pid, _, text = line.partition("|")
            if found := re.match(r"LOG:  (?:statement|execute [^:]*): (.*)", text, re.DOTALL):
                said[pid].append(found[1].rstrip("\n"))
        joined = [texts for texts in said.values() if any("SET TRANSACTION SNAPSHOT" in text for text in texts)]
        ours = ("BEGIN", "COMMIT", "ROLLBACK", "SET LOCAL")
        return [
            text for texts in joined for text in texts if not text.startswith(ours) and "pg_catalog.pg_" not in text
        ]
