"""Reads in parts next to serial ones."""

import collections
import re
from typing import Any

import pyarrow as pa
import pytest

import longshore
from tests.mysql.reading import table

#: The rows of the table `parted` of the fixture `filled`.
ROWS = 3000
#: The rows of the table `ships` of the fixture `harbour`.
SHIPS = 1500
Options = dict[str, Any]


def rows(result: pa.Table) -> collections.Counter[str]:
    """Give all rows, in no order."""
    return collections.Counter(repr(tuple(row.values())) for row in result.to_pylist())


def in_parts(query: Any, conn: Any, options: Options, **arguments: Any) -> pa.Table:
    """Read in parts, which warns of nothing, and compare with the serial read."""
    plain = {name: given for name, given in arguments.items() if not name.startswith("partition_")}
    serial = table(query, conn, **plain)
    parallel = table(query, conn, options=options, **arguments)
    assert parallel.schema.equals(serial.schema, check_metadata=True)
    assert rows(parallel) == rows(serial)
    return parallel


def serially(reason: str, query: Any, conn: Any, **arguments: Any) -> pa.Table:
    """Read in parts, which is warned of with `reason`, and give the result."""
    with pytest.warns(longshore.SerialReadWarning, match=re.escape(reason)):
        return table(query, conn, **arguments)
