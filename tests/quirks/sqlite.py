"""SQLite."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import longshore
from tests.quirks.quirks import Kind, Quirks, Refusal


@contextlib.contextmanager
def in_file(_: pytest.FixtureRequest, directory: Path) -> Iterator[str]:
    """Give the URL of an empty file."""
    file = directory / "contract.db"
    file.touch()
    yield f"sqlite:///{file}"


ENDLESS = "WITH RECURSIVE r (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r) SELECT"

QUIRKS = Quirks(
    source="sqlite",
    listed_types=("INTEGER", "varchar(50)", "decimal(10,2)"),
    tells_constraint_names=False,
    analyze=None,
    place=in_file,
    types={
        "bool": Kind("BOOLEAN", pa.bool_()),
        # Integers are of 64 bits, signed.
        **{f"{sign}int{bits}": Kind("INTEGER", pa.int64()) for sign in ("", "u") for bits in (8, 16, 32)},
        "int64": Kind("INTEGER", pa.int64()),
        "float32": Kind("REAL", pa.float64()),
        "float64": Kind("REAL", pa.float64()),
        "decimal": Kind("decimal_text(38,10)", pa.decimal128(38, 10)),
        "text": Kind("TEXT", pa.string()),
        "binary": Kind("BLOB", pa.binary()),
        "date": Kind("DATE", pa.date32()),
        "time": Kind("TIME", pa.time64("us")),
        "timestamp": Kind("TIMESTAMP", pa.timestamp("us")),
        "instant": Kind("TIMESTAMP WITH TIME ZONE", pa.timestamp("us", "UTC")),
        "uuid": Kind("UUID", pa.string(), str),
        "json": Kind("JSON", pa.string()),
    },
    series="WITH RECURSIVE series (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM series WHERE i < {rows})",
    computing=f"{ENDLESS} count(*) AS n FROM r",
    streaming=f"{ENDLESS} i, printf('%.100c', 'x') AS t FROM r",
    tables="SELECT name AS n FROM sqlite_schema WHERE type = 'table'",
    reads_what_is_replaced=False,
    contended="?busy_timeout=0.1",
    cannot={
        "partitions of one snapshot": Refusal("no snapshot that other processes can join"),
        "a current schema": Refusal("no current schema to change"),
        "types of parameters": Refusal("takes a value of any type"),
        "uint64": Refusal("beyond SQLite's integers|does not fit 64 bits", longshore.DataError),
        # Its columns have the types of their first values.
        "a stream before its first row": Refusal("no answer within", longshore.TimeoutError),
        "writes over several connections": Refusal("one connection write at a time", longshore.SerialWriteWarning),
        "a network": Refusal("a SQLite URL has no host", longshore.InterfaceError),
        "a password": Refusal("a SQLite URL has no host", longshore.InterfaceError),
        "a connection in a forked child": Refusal("open when this process was forked", longshore.InterfaceError),
    },
)
