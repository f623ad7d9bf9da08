"""TPC-H's lineitem from the server of the tests that speaks TDS: there is no SQL Server to load it into.

The first rows come again and again until there are as many as the scale factor has.
"""

import contextlib
import csv
import itertools
import subprocess
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from benches.lineitem import tpchgen
from tests.servers import MSSQL
from tests.tds.tokens import UPDATABLE, Column, Count, Rows
from tests.tds.types import DATE, Type, char, decimal, fixed, varchar

#: The rows of scale factor 1, and those that are repeated.
ROWS, REPEATED = 6_001_215, 6_000
_TEXTS: list[tuple[str, Type]] = [
    ("l_returnflag", char(1)),
    ("l_linestatus", char(1)),
    ("l_shipdate", DATE),
    ("l_commitdate", DATE),
    ("l_receiptdate", DATE),
    ("l_shipinstruct", char(25)),
    ("l_shipmode", char(10)),
    ("l_comment", varchar(44)),
]
_KEYS = [(name, fixed("bigint")) for name in ("l_orderkey", "l_partkey", "l_suppkey")]
_NUMBERS = ("l_quantity", "l_extendedprice", "l_discount", "l_tax")


@contextlib.contextmanager
def measured_mssql(scale: float) -> Iterator[MSSQL]:
    """Start the server, with an answer to each table."""
    with MSSQL() as server:
        for start in ("SET ", "BEGIN", "COMMIT", "IF @@TRANCOUNT"):
            server.answer(start, Count(), match="starts", kind="batch")
        server.answer("SELECT 1", Rows([Column("one", fixed("int"), UPDATABLE)], [(1,)]))
        for table, number in (("lineitem", decimal(15, 2)), ("lineitem_float", fixed("float"))):
            answer = Rows(_columns(number), list(_rows(number)), times=round(scale * ROWS / REPEATED))
            server.answer(f"SELECT * FROM {table}", answer)
        # ConnectorX asks first how many there are.
        count = Rows([Column("rows", fixed("int"), UPDATABLE)], [(REPEATED * round(scale * ROWS / REPEATED),)])
        for function in ("count(", "COUNT("):
            server.answer(function, count, match="contains")
        yield server


def _columns(number: Type) -> list[Column]:
    told = [*_KEYS, ("l_linenumber", fixed("int")), *((name, number) for name in _NUMBERS), *_TEXTS]
    return [Column(name, kind, UPDATABLE) for name, kind in told]


def _rows(number: Type) -> Iterator[tuple[Any, ...]]:
    command = [tpchgen(), "csv", "--scale-factor=0.01", "--tables=lineitem", "--stdout", "--quiet"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as generator:
        if generator.stdout is None:
            return
        of_number = float if number.name == "float" else Decimal
        for row in itertools.islice(csv.reader(generator.stdout), 1, REPEATED + 1):
            yield (*map(int, row[:4]), *map(of_number, row[4:8]), *row[8:])
        generator.kill()
