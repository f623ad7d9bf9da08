"""Trino, of which the contract's tables are in the catalog `memory`."""

import contextlib
import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pyarrow as pa
import pytest

import longshore
from tests.quirks.columns import JSON, UUID
from tests.quirks.quirks import Kind, Quirks, Refusal

if TYPE_CHECKING:
    from tests.servers import Trino


@contextlib.contextmanager
def in_memory(request: pytest.FixtureRequest, directory: Path) -> Iterator[str]:
    """Give the URL of a schema."""
    server: Trino = request.getfixturevalue("trino")
    with longshore.connect(server.url(), autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA memory.{directory.name}")
    # It goes with the server, which may end before us.
    yield server.url() + f"/{directory.name}"


def _typed(literal: str, native: str) -> str:
    """Return a literal as a value of a type: Trino converts few of them by itself."""
    return f"json_parse({literal})" if native == "json" else f"CAST({literal} AS {native})"


_RUNNING = {"QUEUED", "PLANNING", "STARTING", "RUNNING", "FINISHING"}


def _running(url: str, marker: str) -> bool:
    """Tell whether a statement with this text runs: to plan a query of them takes a quarter of a second."""
    place = urlsplit(url)
    with contextlib.closing(http.client.HTTPConnection(place.hostname or "", place.port, timeout=60)) as connection:
        connection.request("GET", "/v1/query", headers={"X-Trino-User": place.username or ""})
        return any(marker in each["query"] for each in json.load(connection.getresponse()) if each["state"] in _RUNNING)


QUIRKS = Quirks(
    source="trino",
    listed_types=("integer", "varchar(50)", "decimal(10,2)"),
    place=in_memory,
    # Writes without transactions, unique keys and upserts are in `tests/trino`.
    left_out=frozenset(
        {"test_copies_that_fail", "test_dbapi", "test_dbapi_compliance", "test_executemany", "test_forks"}
        | {"test_metadata", "test_network", "test_parameters", "test_partitions", "test_parts", "test_sessions"}
        | {"test_writing", "test_of_a_write"}
    ),
    types={
        "bool": Kind("boolean", pa.bool_()),
        "int8": Kind("tinyint", pa.int8()),
        "uint8": Kind("smallint", pa.int16()),
        "int16": Kind("smallint", pa.int16()),
        "uint16": Kind("integer", pa.int32()),
        "int32": Kind("integer", pa.int32()),
        "uint32": Kind("bigint", pa.int64()),
        "int64": Kind("bigint", pa.int64()),
        "float32": Kind("real", pa.float32()),
        "float64": Kind("double", pa.float64()),
        "decimal": Kind("decimal(38,10)", pa.decimal128(38, 10)),
        "text": Kind("varchar", pa.string()),
        "binary": Kind("varbinary", pa.binary()),
        "date": Kind("date", pa.date32()),
        "time": Kind("time(6)", pa.time64("us")),
        "timestamp": Kind("timestamp(6)", pa.timestamp("us")),
        "instant": Kind("timestamp(6) with time zone", pa.timestamp("us", "UTC")),
        "uuid": Kind("uuid", UUID),
        # Without its spaces.
        "json": Kind("json", JSON, lambda value: value.replace(" ", "")),
    },
    series="WITH series AS (SELECT CAST(i AS integer) AS i FROM (SELECT a * 1000 + b + 1 AS i "
    "FROM UNNEST(sequence(0, ({rows} - 1) / 1000)) AS x (a), UNNEST(sequence(0, 999)) AS y (b)) WHERE i <= {rows})",
    computing="SELECT count(*) AS n FROM tpch.sf1000.lineitem WHERE orderkey * 7 = 3",
    # In half of the processor time of the generator's rows.
    streaming="SELECT a * 10000 + b AS i, lpad(CAST(c AS varchar), 100, 'x') AS t "
    "FROM UNNEST(sequence(1, 10000)) AS x (a) "
    "CROSS JOIN UNNEST(sequence(1, 10000)) AS y (b) CROSS JOIN UNNEST(sequence(1, 10000)) AS z (c)",
    running=_running,
    tables="SELECT table_name AS n FROM information_schema.tables WHERE table_schema = current_schema",
    instant="%Y-%m-%d %H:%M:%S.%f UTC",
    typed=_typed,
    # It plans in its own time.
    seconds_to_answer=4,
    numeric="decimal",
    primary_key="",
    tells_not_null=False,
    has_transactions=False,
    analyze=None,
    # As a decimal.
    holds_otherwise=frozenset({"uint64"}),
    cannot={
        "uint64": Refusal("beyond its type"),
        "an upsert": Refusal("not every catalog of Trino's has a MERGE"),
        "writes over several connections": Refusal("writes over one connection", longshore.SerialWriteWarning),
        "a duration": Refusal("has no type in Trino"),
        "a password": Refusal("without encryption", longshore.InterfaceError),
        "types of parameters": Refusal("as text alone"),
    },
)
