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
from tests.quirks.quirks import OF_TRANSACTIONS, Kind, Quirks, Refusal

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


#: The tests that take its server, a JVM, more processor time than CI has: a tenth of a second each statement.
_SLOW = frozenset(
    {
        *("test_copies_that_fail", "test_executemany", "test_forks", "test_parts"),
        *("test_another_process_reads_the_snapshot", "test_partitions_without_a_snapshot"),
        # Of `test_parameters` and `test_dbapi`.
        *("test_each_type", "test_in_a_query", "test_null", "test_sql_in_a_value_runs_nothing"),
        *("test_each_value_as_a_row_has_it", "test_rows_in_pieces"),
        *("test_the_rest_in_arrow", "test_decimals_in_a_frame_are_those_of_read_sql", "test_two_cursors_in_turn"),
        *("test_rows_need_no_more_memory_than_some_of_them", "test_more_rows_than_are_read_ahead"),
        *("test_how_much_is_read_ahead", "test_other_libraries_read_on_a_connection", "test_a_cancelled_cursor"),
        *("test_a_write_is_done_whose_rows_no_one_fetches", "test_a_cancelled_cursor_gives_no_further_rows"),
        # Of `test_metadata` and `test_sessions`.
        *("test_columns", "test_constraints", "test_objects_are_listed_as_deep_as_wanted", "test_statistics"),
        *("test_objects_in_asyncio", "test_the_methods_of_adbc_leave_no_transaction"),
        *("test_a_pool_has_no_more_sessions_than_its_size", "test_the_result_in_asyncio"),
        *("test_a_cancelled_write_leaves_nothing", "test_a_failed_statement_leaves_the_connection"),
        # Of `test_writing`.
        *("test_a_key_cannot_be_null", "test_a_missing_table_is_said", "test_any_name", "test_each_type_comes_back"),
        *("test_columns_that_the_table_has_not_are_named", "test_a_column_that_must_have_a_value_is_named"),
        *("test_texts_in_any_arrow_layout", "test_many_batches_are_one_write", "test_no_rows"),
        *("test_a_new_table", "test_replace_makes_another_table", "test_an_open_transaction_is_joined"),
        "test_a_pool_has_its_session_back",
        *("test_several_connections_write_the_same", "test_what_several_connections_fail_at_undoes_all"),
    }
)

QUIRKS = Quirks(
    source="trino",
    listed_types=("integer", "varchar(50)", "decimal(10,2)"),
    place=in_memory,
    # Between two requests it goes on over another connection.
    left_out={"test_network": "how its network fails is in `test_http_network`"},
    in_the_long_run=_SLOW,
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
    unique="",
    constraint="",
    enforces_keys=False,
    default=None,
    has_references=False,
    has_constraints=False,
    tells_not_null=False,
    has_transactions=False,
    analyze=None,
    # SHOW STATS is of one table.
    estimates_rows=False,
    kinds_that_fit=2,
    # Of a page's rows: a batch waits for no further one.
    fills_batches=False,
    # As a decimal.
    holds_otherwise=frozenset({"uint64"}),
    cannot={
        "uint64": Refusal("does not fit bigint exactly|Cannot cast", longshore.DataError),
        # A parameter is a literal of its value's type, which the server does not parse.
        "json as a parameter": Refusal("mismatched column types", longshore.ProgrammingError),
        **dict.fromkeys(
            ("a transaction", "a new table in a transaction", "a write in a transaction", *OF_TRANSACTIONS),
            Refusal("only supports writes using autocommit|cannot be part of a transaction"),
        ),
        **dict.fromkeys(
            ("an UPDATE", "test_one_snapshot_while_another_session_writes"),
            Refusal("does not support modifying table rows"),
        ),
        # All of it is a transaction: of PEP 249's suite, too.
        **dict.fromkeys(
            ("test_executemany_does_what_execute_does", "test_compliance.test_executemany"),
            Refusal("only supports writes using autocommit"),
        ),
        "test_executemany": Refusal("only supports writes using autocommit|does not support modifying table rows"),
        **dict.fromkeys(
            ("test_a_write_is_done_whose_rows_no_one_fetches", "test_an_error_of_the_first_rows_is_raised_by_execute"),
            Refusal("mismatched input|only supports writes using autocommit", longshore.DatabaseError),
        ),
        "a generated column": Refusal("mismatched input 'GENERATED'", longshore.ProgrammingError),
        "a key": Refusal("Trino's tables have no keys"),
        "a temporary table for rows": Refusal("no temporary table for rows"),
        "partitions of one snapshot": Refusal("no snapshot that other processes can join"),
        "partitions": Refusal("exports no snapshot that sessions share"),
        "an upsert": Refusal("not every catalog of Trino's has a MERGE"),
        "writes over several connections": Refusal("writes over one connection", longshore.SerialWriteWarning),
        "a duration": Refusal("has no type in Trino"),
        "a password": Refusal("without encryption", longshore.InterfaceError),
        "types of parameters": Refusal("as text alone"),
    },
)
