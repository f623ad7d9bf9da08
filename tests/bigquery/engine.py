"""The fake of Google's clients over an engine: DuckDB runs what sqlglot makes of BigQuery's SQL.

It keeps what the service keeps: integers of 64 bits and doubles alone, typed parameters, jobs that are transactions of
their own, and the statuses of errors. It streams a result whose rows the service would have counted.
"""

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import duckdb
import pyarrow as pa
import sqlglot
from google.api_core import exceptions
from google.cloud import bigquery
from sqlglot.errors import SqlglotError

#: BigQuery's types by DuckDB's, and what the Storage Read API sends of them.
_TYPES = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"), ("INTEGER", pa.int64())),
    **dict.fromkeys(("FLOAT", "DOUBLE"), ("FLOAT", pa.float64())),
    "BOOLEAN": ("BOOLEAN", pa.bool_()),
    "VARCHAR": ("STRING", pa.string()),
    "BLOB": ("BYTES", pa.binary()),
    "DATE": ("DATE", pa.date32()),
    "TIME": ("TIME", pa.time64("us")),
    "TIMESTAMP": ("DATETIME", pa.timestamp("us")),
    "TIMESTAMP WITH TIME ZONE": ("TIMESTAMP", pa.timestamp("us", "UTC")),
    "JSON": ("JSON", pa.string()),
}
_NUMERIC = ("NUMERIC", pa.decimal128(38, 9))
#: What sqlglot makes of BigQuery's SQL, and what DuckDB means by it.
_OTHERWISE = {'"INFORMATION_SCHEMA.TABLES"': "information_schema.tables"}
#: Words that begin a statement whose rows are a result.
_QUERIES = ("SELECT", "WITH", "FROM", "(")


@dataclass
class Engine:
    """A project: what its clients share."""

    project: str
    database: duckdb.DuckDBPyConnection = field(default_factory=duckdb.connect)
    clients: "set[Client]" = field(default_factory=set)

    def client(self, **_: Any) -> "Client":
        """Stand in for `bigquery.Client`."""
        return Client(self)

    def storage(self, **_: Any) -> "Engine":
        """Stand in for `bigquery_storage.BigQueryReadClient`."""
        return self

    def running(self, marker: str) -> bool:
        """Tell whether a job with this text runs."""
        return any(marker in client.text for client in [*self.clients])


class Client:
    """The client of queries: a connection of the engine's."""

    _credentials = None

    def __init__(self, engine: Engine) -> None:
        """Connect."""
        self.engine, self.project, self.text = engine, engine.project, ""
        self.connection = engine.database.cursor()
        self.connection.execute("SET TimeZone = 'UTC'")
        engine.clients.add(self)

    def query(self, query: str, job_config: bigquery.QueryJobConfig) -> "Job":
        """Begin a job."""
        return Job(self, query, job_config)

    def close(self) -> None:
        """Close it."""
        self.engine.clients.discard(self)
        self.connection.close()


class Job:
    """A query's job."""

    num_dml_affected_rows: int | None = None

    def __init__(self, client: Client, query: str, config: bigquery.QueryJobConfig) -> None:
        """Read the query, which runs once its result is asked for."""
        self.client, self.query = client, query
        try:
            found = [each for each in sqlglot.parse(query, read="bigquery") if each is not None]
        except SqlglotError as error:
            raise exceptions.BadRequest(f"Syntax error: {error}") from None
        if len(found) != 1:
            raise exceptions.BadRequest("Syntax error: expected one statement")
        self.statement = found[0].sql("duckdb")
        for text, other in _OTHERWISE.items():
            self.statement = self.statement.replace(text, other)
        self.parameters = _bound(config.query_parameters)
        self.is_query = query.lstrip().upper().startswith(_QUERIES)

    @property
    def schema(self) -> list[bigquery.SchemaField]:
        """The columns, which a dry run tells."""
        return _fields(self._planned()) if self.is_query else []

    def result(self) -> "Rows":
        """Run it."""
        self.client.text = self.query
        try:
            with _answering():
                if self.is_query:
                    planned = self._planned()
                    return Rows(self, _fields(planned), planned.to_arrow_reader(10_000))
                changed = self.client.connection.execute(self.statement, self.parameters).fetchall()
        except BaseException:
            self.client.text = ""
            raise
        self.client.text = ""
        if self.query.lstrip().upper().startswith(("INSERT", "UPDATE", "DELETE", "MERGE")):
            self.num_dml_affected_rows = changed[0][0]
        return Rows(self, [], None)

    def _planned(self) -> duckdb.DuckDBPyRelation:
        with _answering():
            return self.client.connection.sql(self.statement, params=self.parameters)

    def cancel(self) -> None:
        """End it."""
        self.client.connection.interrupt()


class Rows:
    """The rows of a result."""

    #: The engine knows no more before the last one.
    total_rows = None

    def __init__(self, job: Job, schema: list[bigquery.SchemaField], reader: pa.RecordBatchReader | None) -> None:
        """Keep them."""
        self.job, self.schema, self.reader = job, schema, reader

    def to_arrow_iterable(self, _storage: Any) -> Iterator[pa.RecordBatch]:
        """Yield them as the service's Arrow types."""
        assert self.reader is not None
        kinds = pa.schema([(each.name, _arrow(each)) for each in self.schema])
        try:
            with _answering():
                for batch in self.reader:
                    arrays = [*map(_sent, batch.columns, self.schema)]
                    yield pa.RecordBatch.from_arrays(arrays, schema=kinds)
        finally:
            self.job.client.text = ""
            self.reader.close()


@contextlib.contextmanager
def _answering() -> Iterator[None]:
    """Raise the service's errors for the engine's."""
    try:
        yield
    except duckdb.InterruptException:
        raise exceptions.ClientError("the job was stopped") from None
    except (duckdb.Error, OSError, pa.ArrowException) as error:
        raise exceptions.BadRequest(str(error)) from None


def _fields(planned: duckdb.DuckDBPyRelation) -> list[bigquery.SchemaField]:
    pairs = zip(planned.columns, planned.types, strict=True)
    return [bigquery.SchemaField(name, _type(str(kind))) for name, kind in pairs]


def _type(kind: str) -> str:
    return _NUMERIC[0] if kind.startswith("DECIMAL") else _TYPES[kind][0]


def _sent(values: pa.Array, column: bigquery.SchemaField) -> pa.Array:
    """Return a column as the service sends it, which keeps no spaces of JSON."""
    if column.field_type != "JSON":
        return values.cast(_arrow(column))
    texts = values.cast(pa.string()).to_pylist()
    return pa.array([text and json.dumps(json.loads(text), separators=(",", ":")) for text in texts], pa.string())


def _arrow(column: bigquery.SchemaField) -> pa.DataType:
    return dict([*_TYPES.values(), _NUMERIC])[column.field_type]


def _bound(parameters: list[Any]) -> Any:
    """Return parameters as the engine binds them: by their names where they have some."""
    if not parameters or parameters[0].name is None:
        return [each.value for each in parameters]
    return {each.name: each.value for each in parameters}
