"""ClickHouse, by the stand-in over its own engine."""

import contextlib
import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import longshore
from tests.quirks.columns import UUID
from tests.quirks.quirks import OF_TRANSACTIONS, Column, Kind, Quirks, Refusal

if TYPE_CHECKING:
    from tests.servers import ClickHouse


@contextlib.contextmanager
def on_stand_in(request: pytest.FixtureRequest, directory: Path) -> Iterator[str]:
    """Give the URL of a database of the stand-in."""
    server: ClickHouse = request.getfixturevalue("clickhouse")
    server.sql(f"CREATE DATABASE {directory.name}")
    try:
        yield server.url(database=directory.name)
    finally:
        server.sql(f"DROP DATABASE {directory.name}")


_OTHERS = "query NOT LIKE '%system.processes%' AND query NOT LIKE 'KILL%'"

QUIRKS = Quirks(
    source="clickhouse",
    listed_types=("Int32", "Nullable(String)", "Nullable(Decimal(10, 2))"),
    place=on_stand_in,
    left_out={
        "test_network": "how its network fails is in `test_http_network`",
        "test_rows_need_no_more_memory_than_some_of_them": "the stand-in runs within this process",
        "test_executemany": "no UPDATE counts its rows",
        **dict.fromkeys(
            (
                *("test_columns", "test_constraints", "test_objects_are_listed_as_deep_as_wanted", "test_statistics"),
                *("test_objects_in_asyncio", "test_the_methods_of_adbc_leave_no_transaction"),
            ),
            "tables have no FOREIGN KEY, and constraints are not listed",
        ),
    },
    types={
        "bool": Kind("Bool", pa.bool_()),
        **{
            f"{sign}int{bits}": Kind(f"{'U' if sign else ''}Int{bits}", getattr(pa, f"{sign}int{bits}")())
            for sign in ("", "u")
            for bits in (8, 16, 32, 64)
        },
        "float32": Kind("Float32", pa.float32()),
        "float64": Kind("Float64", pa.float64()),
        "decimal": Kind("Decimal(38, 10)", pa.decimal128(38, 10)),
        "text": Kind("String", pa.string()),
        # String holds bytes, too, and is read as text.
        "binary": Kind("FixedString(2)", pa.binary(2), lambda value: value.ljust(2, b"\0")),
        "date": Kind("Date32", pa.date32()),
        "time": Kind("Time64(6)", pa.time64("us")),
        "instant": Kind("DateTime64(6, 'UTC')", pa.timestamp("us", "UTC")),
        "uuid": Kind("UUID", UUID),
        "json": Kind("String", pa.string()),
    },
    more={
        "IPv4": Column(pa.string(), ("0.0.0.0", "255.1.2.3")),  # noqa: S104  a value
        "IPv6": Column(pa.string(), ("::1", "2001:db8::ff00:42:8329")),
        "Date": Column(pa.date32(), (dt.date(1970, 1, 1), dt.date(2149, 6, 6))),
    },
    placeholder="${n}",
    series="WITH series AS (SELECT toNullable(toInt32(number + 1)) AS i FROM numbers({rows}))",
    computing="SELECT count() AS n FROM numbers(100000000000000) WHERE sipHash64(number) = 7 SETTINGS max_threads = 1",
    streaming="SELECT number AS i, repeat('x', 100) AS t FROM numbers(100000000000)",
    running="SELECT count() AS n FROM system.processes WHERE query LIKE '%{marker}%' AND " + _OTHERS,
    sessions="SELECT count() AS n FROM system.processes WHERE " + _OTHERS,
    tables="SELECT name AS n FROM system.tables WHERE database = currentDatabase() AND NOT is_temporary",
    instant="%Y-%m-%d %H:%M:%S.%f",
    binary="unhex('{}')",
    quote="`",
    enforces_keys=False,
    unique="PRIMARY KEY",
    # Each type has one.
    asks_for_values=False,
    # No key is unique: one that ends with it.
    constraint=", CONSTRAINT no_end CHECK i < 2998",
    # It may have NULL where columns may.
    primary_key="NOT NULL PRIMARY KEY",
    has_sqlstates=False,
    has_transactions=False,
    counts_changes=False,
    analyze=None,
    plain="?secure=false",
    users=("CREATE USER {name} IDENTIFIED BY '{password}'",),
    no_users="DROP USER {name}",
    cannot={
        "a name twice in one SELECT": Refusal("Multiple expressions", longshore.ProgrammingError),
        "timestamp": Refusal("a timestamp without a time zone has no type in ClickHouse"),
        "timestamp in a frame": Refusal("a date or timestamp is not a number"),
        "a duration": Refusal("has no type in ClickHouse"),
        # Bytes become a String, which is read as text.
        "binary in a new table": Refusal("a text is not UTF-8", longshore.DataError),
        **dict.fromkeys(
            (
                *("a transaction", "a new table in a transaction", "a write in a transaction", *OF_TRANSACTIONS),
                "test_compliance.test_executemany",
            ),
            Refusal("no transactions: what is written cannot be rolled back"),
        ),
        "a generated column": Refusal("Syntax error", longshore.ProgrammingError),
        "test_a_write_is_done_whose_rows_no_one_fetches": Refusal("Syntax error|no transac", longshore.DatabaseError),
        "a temporary table for rows": Refusal("no temporary table for rows"),
        "an upsert": Refusal("no statement for an upsert"),
        "partitions of one snapshot": Refusal("no snapshot that other processes can join"),
        "partitions": Refusal("reads a query in parallel inside"),
        "types of parameters": Refusal("does not tell their types"),
        "a stream before its first row": Refusal("no answer within", longshore.TimeoutError),
        "writes over several connections": Refusal("writes over one connection", longshore.SerialWriteWarning),
    },
)
