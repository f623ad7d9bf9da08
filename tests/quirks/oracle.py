"""Oracle, by a fake of its driver over DuckDB: what runs is the source, and the SQL that DuckDB is taught, too."""

import contextlib
import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import longshore
from tests.quirks.columns import JSON
from tests.quirks.quirks import Kind, Quirks, Refusal

if TYPE_CHECKING:
    from tests.oracle.engine import Engine

#: The fakes by their hosts.
_ENGINES: "dict[str, Engine]" = {}
#: The patch that puts them in the place of the driver's `connect`, while there are some.
_PATCH = pytest.MonkeyPatch()


@contextlib.contextmanager
def on_fake(_: pytest.FixtureRequest, directory: Path) -> Iterator[str]:
    """Give the URL of a host whose driver is the fake; those of other hosts stay the real ones."""
    from tests.oracle.engine import Engine

    if not _ENGINES:
        _patch()
    _ENGINES[directory.name] = Engine()
    try:
        yield f"oracle://scott:tiger@{directory.name}/harbour"
    finally:
        del _ENGINES[directory.name]
        if not _ENGINES:
            _PATCH.undo()


def _patch() -> None:
    import oracledb

    real: Any = oracledb.connect

    def connect(**arguments: Any) -> Any:
        engine = _ENGINES.get(arguments.get("host", ""))
        return real(**arguments) if engine is None else engine.connect(**arguments)

    _PATCH.setattr(oracledb, "connect", connect)


def engine_of(url: str) -> "Engine":
    """Return the fake at a URL."""
    return _ENGINES[url.partition("@")[2].removesuffix("/harbour")]


def _typed(literal: str, native: str) -> str:
    word = native.partition(" ")[0].partition("(")[0]
    return f"{word} {literal}" if word in {"DATE", "TIMESTAMP"} and literal != "NULL" else literal


QUIRKS = Quirks(
    source="oracle",
    listed_types=("NUMBER(10,0)", "VARCHAR2(50)", "NUMBER(10,2)"),
    place=on_fake,
    left_out={
        "test_network": "the fake has none, and in front of it is the driver's",
        **dict.fromkeys(
            ("test_stream_memory", "test_ctrl_c", "test_ctrl_c_while_connecting", "test_ctrl_c_in_a_write"),
            "a process of its own has the real driver",
        ),
        "test_rows_need_no_more_memory_than_some_of_them": "the fake runs within this process",
        **dict.fromkeys(
            ("test_copies", "test_frames_into_tables"),
            "other sources' tables have empty texts, which would be NULL, and dates without a time of day",
        ),
    },
    types={
        "bool": Kind("BOOLEAN", pa.bool_()),
        **{
            f"{sign}int{bits}": Kind(f"NUMBER({digits},0)", pa.int64())
            for sign in ("", "u")
            for bits, digits in ((8, 3), (16, 5), (32, 10), (64, 19))
        },
        "uint64": Kind("NUMBER(20,0)", pa.decimal128(20, 0), Decimal),
        "float32": Kind("BINARY_FLOAT", pa.float32()),
        "float64": Kind("BINARY_DOUBLE", pa.float64()),
        "decimal": Kind("NUMBER(38,10)", pa.decimal128(38, 10)),
        # Nothing but NULL is empty.
        "text": Kind("VARCHAR2(4000)", pa.string(), lambda value: value or None),
        "binary": Kind("BLOB", pa.large_binary(), lambda value: value or None),
        "date": Kind("DATE", pa.timestamp("us"), lambda value: dt.datetime.combine(value, dt.time())),
        "timestamp": Kind("TIMESTAMP(6)", pa.timestamp("us")),
        "instant": Kind("TIMESTAMP(6) WITH TIME ZONE", pa.timestamp("us", "UTC")),
        "uuid": Kind("RAW(16)", pa.large_binary(), lambda value: value.bytes),
        # Without its spaces.
        "json": Kind("JSON", JSON, lambda value: value.replace(" ", "")),
    },
    placeholder=":{n}",
    # DuckDB's functions, where Oracle has CONNECT BY.
    series="WITH series AS (SELECT CAST(range AS NUMBER(19,0)) AS i FROM range(1, {rows} + 1))",
    computing="SELECT count(*) AS n FROM range(100000000000000) r WHERE hash(range) = 7",
    streaming="SELECT CAST(range AS NUMBER(19,0)) AS i, repeat('x', 100) AS t FROM range(100000000000)",
    running=lambda url, marker: engine_of(url).running(marker),
    sessions=lambda url: len(engine_of(url).connections),
    tables="SELECT LOWER(table_name) AS n FROM user_tables",
    kept=str.upper,
    numbers_as_text="number",
    integer="CAST({} AS NUMBER(9,0))",
    typed=_typed,
    binary="HEXTORAW('{}')",
    instant="%Y-%m-%d %H:%M:%S.%f +00:00",
    generated="VIRTUAL",
    tells_not_null=False,
    has_sqlstates=False,
    lists_see_one_snapshot=False,
    analyze="ANALYZE TABLE {table} COMPUTE STATISTICS",
    # DuckDB does not keep them.
    tells_constraint_names=False,
    check_columns=("id",),
    cannot={
        "time": Refusal("no type for time64|Python type .*time.* is not supported|time64.* does not go into"),
        "a name twice in one SELECT": Refusal("not all different"),
        "partitions of one snapshot": Refusal("no snapshot that other processes can join"),
        "RETURNING": Refusal("ORA-00925", longshore.ProgrammingError),
        "a temporary table for rows": Refusal("no temporary table for rows"),
        "a current schema": Refusal("ORA-01435", longshore.DatabaseError),
        "scripts": Refusal("runs one statement at a time"),
        "a stream before its first row": Refusal("no answer within", longshore.TimeoutError),
        "types of parameters": Refusal("does not tell their types"),
        "instant as a parameter": Refusal("drop the time zone"),
        "text as a parameter": Refusal("an empty text is NULL", longshore.DataError),
        "binary as a parameter": Refusal("an empty text is NULL", longshore.DataError),
        "a new table in a transaction": Refusal("commits an open transaction"),
        "a generated column": Refusal("ORA-54013", longshore.DatabaseError),
        "a long text in a new table": Refusal("ORA-12899", longshore.DataError),
        "text in a frame": Refusal("would become NULL", longshore.DataError),
        "binary in a frame": Refusal("would become NULL", longshore.DataError),
        "any name": Refusal("which Oracle's names cannot", longshore.ProgrammingError),
        "writes over several connections": Refusal("writes over one connection", longshore.SerialWriteWarning),
    },
)
