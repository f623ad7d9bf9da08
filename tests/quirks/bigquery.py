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


@contextlib.contextmanager
def on_fake(_: pytest.FixtureRequest, directory: Path) -> Iterator[str]:
    """Give the URL of a project whose clients are the fake's; those of other projects stay the real ones."""
    from google.cloud import bigquery, bigquery_storage

    from tests.bigquery.engine import Engine

    engine = _ENGINES[directory.name] = Engine(directory.name)
    real: Any = bigquery.Client
    reader: Any = bigquery_storage.BigQueryReadClient

    def client(**arguments: Any) -> Any:
        return engine.client() if arguments["project"] == engine.project else real(**arguments)

    def storage(**arguments: Any) -> Any:
        return reader(**arguments) if arguments["credentials"] is not None else engine

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bigquery, "Client", client)
        patch.setattr(bigquery_storage, "BigQueryReadClient", storage)
        yield f"bigquery://{directory.name}"


def _engine(url: str) -> "Engine":
    return _ENGINES[url.removeprefix("bigquery://")]


def _typed(literal: str, native: str) -> str:
    # A quote within quotes has a backslash before it.
    text = f"'{literal[1:-1].replace(chr(39) * 2, chr(92) + chr(39))}'" if literal.startswith("'") else literal
    return f"PARSE_JSON({text})" if native == "JSON" else f"CAST({text} AS {native})"


QUIRKS = Quirks(
    source="bigquery",
    listed_types=("INT64", "STRING", "NUMERIC"),
    place=on_fake,
    # It is read only, and its results are whole before their first row, so that none is without an end; a session is
    # not a connection, and processes of their own have the real clients. What means nothing then is left out:
    # deadlines, batches, keys and statuses are in `tests/bigquery`.
    left_out=frozenset(
        {
            *("test_arguments", "test_copies", "test_copies_that_fail", "test_frames_into_tables", "test_writing"),
            *("test_rounded_decimals", "test_verbs", "test_dbapi", "test_dbapi_compliance", "test_metadata"),
            *("test_forks", "test_interruption", "test_network", "test_parts", "test_partitions", "test_secrets"),
            *("test_sessions", "test_tasks", "test_warnings", "test_streams", "test_cancel"),
        }
    ),
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
    # In the modules that are left out.
    computing="",
    streaming="",
    running=lambda url, marker: _engine(url).running(marker),
    sessions=lambda url: len(_engine(url).clients),
    tables="SELECT table_name AS n FROM INFORMATION_SCHEMA.TABLES",
    typed=_typed,
    binary="FROM_HEX('{}')",
    quote="`",
    primary_key="",
    tells_not_null=False,
    has_sqlstates=False,
    has_transactions=False,
    analyze=None,
    cannot={
        "uint64": Refusal("is beyond INT64", longshore.DataError),
        # BIGNUMERIC has 76 digits, which polars cannot hold: `tests/bigquery`.
        "decimal": Refusal("Conversion", longshore.ProgrammingError),
        "writing": Refusal("BigQuery is only read"),
        "types of parameters": Refusal("does not tell their types"),
        "uuid as a parameter": Refusal("UUID is not a type of BigQuery's parameters"),
    },
)
