"""DuckDB."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import longshore
from tests.quirks.columns import JSON, UUID
from tests.quirks.quirks import Column, Kind, Quirks, Refusal


@contextlib.contextmanager
def in_file(_: pytest.FixtureRequest, directory: Path) -> Iterator[str]:
    """Give the URL of a file."""
    file = directory / "contract.duckdb"
    duckdb.connect(file).close()
    yield f"duckdb:///{file}"


_INTEGERS = {"8": "TINYINT", "16": "SMALLINT", "32": "INTEGER", "64": "BIGINT"}

QUIRKS = Quirks(
    source="duckdb",
    listed_types=("INTEGER", "VARCHAR", "DECIMAL(10,2)"),
    check_columns=("id",),
    tells_constraint_names=False,
    place=in_file,
    types={
        "bool": Kind("BOOLEAN", pa.bool_()),
        **{f"int{bits}": Kind(name, getattr(pa, f"int{bits}")()) for bits, name in _INTEGERS.items()},
        **{f"uint{bits}": Kind(f"U{name}", getattr(pa, f"uint{bits}")()) for bits, name in _INTEGERS.items()},
        "float32": Kind("FLOAT", pa.float32()),
        "float64": Kind("DOUBLE", pa.float64()),
        "decimal": Kind("DECIMAL(38,10)", pa.decimal128(38, 10)),
        "text": Kind("VARCHAR", pa.string()),
        "binary": Kind("BLOB", pa.binary()),
        "date": Kind("DATE", pa.date32()),
        "time": Kind("TIME", pa.time64("us")),
        "timestamp": Kind("TIMESTAMP", pa.timestamp("us")),
        "instant": Kind("TIMESTAMPTZ", pa.timestamp("us", "UTC")),
        "uuid": Kind("UUID", UUID),
        "json": Kind("JSON", JSON),
    },
    more={
        "UTINYINT": Column(pa.uint8(), (0, 255)),
        "VARCHAR(5)": Column(pa.string(), ("a", "abcde")),
        "TIMETZ": Column(pa.string(), ("12:00:00+02", "00:00:00-01:30")),
        "BIT": Column(pa.string(), ("0", "10110")),
    },
    series="WITH series AS (SELECT i::INTEGER AS i FROM generate_series(1, {rows}) AS s (i))",
    computing="SELECT count(*) AS n FROM range(10000000) a, range(10000000) b WHERE a.range + b.range = 7",
    streaming="SELECT range AS i, repeat('x', 100) AS t FROM range(100000000000)",
    tables="SELECT table_name AS n FROM duckdb_tables()",
    binary="unhex('{}')",
    generated="VIRTUAL",
    tells_not_null=False,
    has_sqlstates=False,
    cannot={
        "partitions of one snapshot": Refusal("no snapshot that other processes can join"),
        "partitions": Refusal("reads a query in parallel inside"),
        "a temporary table for rows": Refusal("no temporary table for rows"),
        "types of parameters": Refusal("does not tell their types"),
        # The engine works until its first rows.
        "a stream before its first row": Refusal("no answer within", longshore.TimeoutError),
        "writes over several connections": Refusal("writes over one connection", longshore.SerialWriteWarning),
        # What stands in the place of a host is the start of a path.
        "a network": Refusal("there is no file '127.0.0.1", longshore.OperationalError),
        "a password": Refusal("the URL of a file has no user", longshore.InterfaceError),
        "a connection in a forked child": Refusal("open when this process was forked", longshore.InterfaceError),
    },
)
