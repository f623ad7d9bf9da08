"""BigQuery, by a fake of Google's clients over DuckDB: what runs is the source, and the SQL that DuckDB knows, too."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import longshore
from tests.quirks.columns import JSON
from tests.quirks.quirks import Kind, Quirks, Refusal

if TYPE_CHECKING:
    from tests.bigquery.engine import Engine

#: The fakes by their projects.
_ENGINES: "dict[str, Engine]" = {}


#: The patch that puts them in the place of Google's clients, while there are some.
_PATCH = pytest.MonkeyPatch()


@contextlib.contextmanager
def on_fake(_: pytest.FixtureRequest, directory: Path) -> Iterator[str]:
    """Give the URL of a project whose clients are the fake's; those of other projects stay the real ones."""
    from tests.bigquery.engine import Engine

    if not _ENGINES:
        _patch()
    _ENGINES[directory.name] = Engine(directory.name)
    try:
        yield f"bigquery://{directory.name}/main"
    finally:
        del _ENGINES[directory.name]
        if not _ENGINES:
            _PATCH.undo()


def _patch() -> None:
    from google.cloud import bigquery, bigquery_storage

    real: Any = bigquery.Client
    reader: Any = bigquery_storage.BigQueryReadClient

    def client(**arguments: Any) -> Any:
        engine = _ENGINES.get(arguments["project"])
        return real(**arguments) if engine is None else engine.client()

    def storage(**arguments: Any) -> Any:
        return reader(**arguments) if arguments["credentials"] is not None else None

    _PATCH.setattr(bigquery, "Client", client)
    _PATCH.setattr(bigquery_storage, "BigQueryReadClient", storage)


def engine_of(url: str) -> "Engine":
    """Return the fake at a URL."""
    return _ENGINES[url.removeprefix("bigquery://").removesuffix("/main")]


def _typed(literal: str, native: str) -> str:
    # A quote within quotes has a backslash before it.
    text = f"'{literal[1:-1].replace(chr(39) * 2, chr(92) + chr(39))}'" if literal.startswith("'") else literal
    return f"PARSE_JSON({text})" if native == "JSON" else f"CAST({text} AS {native})"


QUIRKS = Quirks(
    source="bigquery",
    listed_types=("INT64", "STRING", "NUMERIC(10, 2)"),
    place=on_fake,
    left_out={
        "test_network": "the fake has none: deadlines and statuses are in `tests/bigquery`",
        "test_secrets": "its clients take no password",
        "test_rounded_decimals": "BIGNUMERIC has 76 digits, which polars cannot hold",
        **dict.fromkeys(
            ("test_stream_memory", "test_ctrl_c", "test_ctrl_c_while_connecting", "test_ctrl_c_in_a_write"),
            "a process of its own has the real clients",
        ),
        "test_rows_need_no_more_memory_than_some_of_them": "the fake runs within this process",
        **dict.fromkeys(
            (
                *("test_commit_and_rollback", "test_transactions", "test_executemany_is_all_or_nothing"),
                "test_a_rollback_throws_away_what_was_not_fetched",
                "test_a_cancelled_executemany_leaves_no_transaction",
                "test_an_error_of_the_first_rows_is_raised_by_execute",
                *("test_ingest", "test_ingest_into_a_temporary_table", "test_what_is_known_of_statements_and_tables"),
            ),
            "a statement is a transaction of its own, which leaves nothing to roll back, and keys are not enforced",
        ),
    },
    types={
        "bool": Kind("BOOL", pa.bool_()),
        **{
            f"{sign}int{bits}": Kind("INT64", pa.int64())
            for sign in ("", "u")
            for bits in (8, 16, 32, 64)
            if (sign, bits) != ("u", 64)
        },
        "float32": Kind("FLOAT64", pa.float64()),
        "float64": Kind("FLOAT64", pa.float64()),
        "text": Kind("STRING", pa.string()),
        "binary": Kind("BYTES", pa.binary()),
        "date": Kind("DATE", pa.date32()),
        "time": Kind("TIME", pa.time64("us")),
        "timestamp": Kind("DATETIME", pa.timestamp("us")),
        "instant": Kind("TIMESTAMP", pa.timestamp("us", "UTC")),
        "uuid": Kind("STRING", pa.string(), str),
        # Without its spaces.
        "json": Kind("JSON", JSON, lambda value: value.replace(" ", "")),
    },
    series="WITH series AS (SELECT i FROM UNNEST(GENERATE_ARRAY(1, {rows})) AS i)",
    # Of DuckDB's functions: the service has no result without an end.
    computing="SELECT count(*) AS n FROM range(100000000000000) AS r WHERE hash(range) = 7",
    streaming="SELECT range AS i, repeat('x', 100) AS t FROM range(100000000000)",
    running=lambda url, marker: engine_of(url).running(marker),
    sessions=lambda url: len(engine_of(url).clients),
    tables="SELECT table_name AS n FROM INFORMATION_SCHEMA.TABLES",
    typed=_typed,
    binary="FROM_HEX('{}')",
    quote="`",
    primary_key="",
    enforces_keys=False,
    constraint="",
    # As a NUMERIC.
    holds_otherwise=frozenset({"uint64"}),
    tells_not_null=False,
    has_sqlstates=False,
    has_transactions=False,
    together={"snapshot": False},
    lists_see_one_snapshot=False,
    analyze=None,
    has_references=False,
    cannot={
        "uint64": Refusal("is beyond INT64", longshore.DataError),
        **dict.fromkeys(
            ("uint64 in a frame", "decimal in a frame"), Refusal("does not fit int64", longshore.DataError)
        ),
        # BIGNUMERIC has 76 digits, which polars cannot hold: `tests/bigquery`.
        "decimal": Refusal("Conversion|does not fit", longshore.ProgrammingError),
        "partitions of one snapshot": Refusal("no snapshot that other processes can join"),
        "partitions": Refusal("over several streams by itself"),
        "any name": Refusal("a name of BigQuery's cannot have", longshore.ProgrammingError),
        "a generated column": Refusal("Syntax error", longshore.ProgrammingError),
        # With what was changed before.
        "test_a_write_is_done_whose_rows_no_one_fetches": Refusal("Syntax error|has kept", longshore.DatabaseError),
        "a rollback": Refusal("has kept what was changed"),
        "a current schema": Refusal("no current schema to change"),
        "scripts": Refusal("runs one statement at a time"),
        "a stream before its first row": Refusal("no answer within", longshore.TimeoutError),
        "a transaction": Refusal("cannot be part of a transaction"),
        "a write in a transaction": Refusal("cannot be part of a transaction"),
        "a new table in a transaction": Refusal("cannot be part of a transaction"),
        "a duration": Refusal("has no type in BigQuery"),
        "writes over several connections": Refusal("writes over one connection", longshore.SerialWriteWarning),
        "types of parameters": Refusal("does not tell their types"),
        "uuid as a parameter": Refusal("UUID is not a type of BigQuery's parameters"),
    },
)
