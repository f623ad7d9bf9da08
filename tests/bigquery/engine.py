"""The fake of Google's clients over an engine: DuckDB runs what sqlglot makes of BigQuery's SQL.

It keeps what the service keeps: integers of 64 bits and doubles alone, typed parameters, jobs that are transactions of
their own, and the statuses of errors. It streams a result whose rows the service would have counted. Files of Parquet
are loaded by the types that the service's documentation tells; a key is not enforced. BIGNUMERIC has 38 digits here.
"""

import contextlib
import datetime as dt
import io
import json
import threading
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import sqlglot
from google.api_core import exceptions
from google.cloud import bigquery
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokens import TokenType

from tests.bigquery.dictionary import VIEWS

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
#: NUMERIC and BIGNUMERIC, and DuckDB's for them.
_DECIMALS = {
    "NUMERIC": (pa.decimal128(38, 9), "DECIMAL(38, 9)"),
    "BIGNUMERIC": (pa.decimal256(76, 38), "DECIMAL(38, 18)"),
}
_BIG_SCALE = 18
#: The types into which a file of Parquet is not loaded: the service's documentation does not tell of it.
_NOT_LOADED = {"TIME", "DATETIME", "JSON", "GEOGRAPHY", "INTERVAL"}
#: The names of BigQuery's in sqlglot's SQL, and what DuckDB calls them.
_OTHERWISE = {'"INFORMATION_SCHEMA.TABLES"': "standin.tables"}
#: The rows of a result that no one reads, of which the service has no end either.
_MOST_ROWS = 20_000_000
#: Words that begin a statement whose rows are a result.
_QUERIES = ("SELECT", "WITH", "FROM", "(")


@dataclass
class Engine:
    """A project: what its clients share."""

    project: str
    database: duckdb.DuckDBPyConnection = field(default_factory=duckdb.connect)
    clients: "set[Client]" = field(default_factory=set)
    #: The jobs that have loaded: the table, the disposition, and the names of the columns.
    loads: list[tuple[str, str, list[str]]] = field(default_factory=list)
    #: The tables that have an end of their own, and when.
    expiring: dict[str, dt.datetime] = field(default_factory=dict)
    #: The errors of jobs, by the beginning of their statement, or "LOAD".
    failures: dict[str, Exception] = field(default_factory=dict)
    #: Told each query.
    heard: Callable[[str], Any] = str
    #: Whether a job that loads waits until it is cancelled, and whether one was.
    waits: bool = False
    cancelled: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        """Make what its INFORMATION_SCHEMA is of."""
        self.database.execute(VIEWS.replace("{project}", self.project))

    def client(self, **_: Any) -> "Client":
        """Stand in for `bigquery.Client`."""
        return Client(self)

    def running(self, marker: str) -> bool:
        """Tell whether a job with this text runs."""
        return any(marker in client.text for client in [*self.clients])


class Client:
    """The client of queries: a connection of the engine's."""

    _credentials = None
    location = None

    def __init__(self, engine: Engine) -> None:
        """Connect."""
        self.engine, self.project, self.text = engine, engine.project, ""
        self.connection = engine.database.cursor()
        self.connection.execute("SET TimeZone = 'UTC'")
        engine.clients.add(self)

    def query(self, query: str, job_config: bigquery.QueryJobConfig) -> "Job":
        """Begin a job."""
        return Job(self, query, job_config)

    def load_table_from_file(
        self, file_obj: Any, destination: Any, *, size: int, location: str, job_config: bigquery.LoadJobConfig
    ) -> "LoadJob":
        """Take a file, and begin to load it."""
        assert location == "EU"
        return LoadJob(self, file_obj.read(size), destination.table_id, job_config)

    def keep_key(self, tree: Any) -> None:
        """Note the primary key of a new table, which the service does not enforce."""
        if isinstance(tree, exp.Create) and isinstance(tree.this, exp.Schema):
            name, key = tree.this.this.name, tree.find(exp.PrimaryKey)
            rows = [(name, each.name, at) for at, each in enumerate(key.expressions if key else (), 1)]
            self.connection.execute("DELETE FROM standin.keys WHERE table_name = ?", [name])
            if rows:
                self.connection.executemany("INSERT INTO standin.keys VALUES (?, ?, ?)", rows)

    def get_dataset(self, _: Any) -> SimpleNamespace:
        """Tell of a dataset."""
        return SimpleNamespace(location="EU")

    def get_table(self, reference: Any) -> bigquery.Table:
        """Tell of a table."""
        try:
            found = self.connection.sql(f"SELECT * FROM {_name(reference.table_id)}")
        except duckdb.CatalogException:
            raise exceptions.NotFound(f"Not found: Table {reference}") from None
        more = self.connection.execute(
            "SELECT column_name, is_nullable, column_default FROM duckdb_columns() WHERE table_name = ?",
            [reference.table_id],
        ).fetchall()
        own = {name: (is_nullable, default) for name, is_nullable, default in more}
        fields = []
        for each in _fields(found):
            is_nullable, default = own[each.name]
            resource = {**each.to_api_repr(), **({"defaultValueExpression": default} if default else {})}
            mode = each.mode if is_nullable else "REQUIRED"
            fields.append(bigquery.SchemaField.from_api_repr({**resource, "mode": mode}))
        table = bigquery.Table(reference, schema=fields)
        table._properties["location"] = "EU"  # noqa: SLF001  the service's own
        return table

    def create_table(self, table: bigquery.Table) -> None:
        """Make a table."""
        with _answering():
            self.connection.execute(f"CREATE TABLE {_name(table.table_id)} ({_definitions(table.schema)})")
        if table.expires is not None:
            self.engine.expiring[table.table_id] = table.expires

    def delete_table(self, reference: Any, *, not_found_ok: bool) -> None:
        """Drop a table."""
        assert not_found_ok
        if (failure := self.engine.failures.get("DROP")) is not None:
            raise failure
        self.connection.execute(f"DROP TABLE IF EXISTS {_name(reference.table_id)}")
        self.engine.expiring.pop(reference.table_id, None)

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
        client.engine.heard(query)
        try:
            found = [each for each in sqlglot.parse(query, read="bigquery") if each is not None]
        except SqlglotError as error:
            raise exceptions.BadRequest(f"Syntax error: {error}") from None
        tokens = sqlglot.tokenize(query, read="bigquery")
        if any(one.text.upper() == "FROM" and other.token_type == TokenType.STRING for one, other in pairwise(tokens)):
            raise exceptions.BadRequest("Syntax error: Unexpected string literal")
        if len(found) != 1 and not query.startswith("BEGIN TRANSACTION;"):
            raise exceptions.BadRequest("Syntax error: expected one statement")
        if any(each.find(exp.Returning) for each in found):
            raise exceptions.BadRequest("Syntax error: Expected end of input but got keyword RETURNING")
        for each in found:
            client.keep_key(each)
        self.statements = [text for each in found for text in _translated(each, client.project)]
        self.statement = self.statements[0]
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
                self._fail()
                changed = self._run()
        except BaseException:
            self.client.text = ""
            raise
        self.client.text = ""
        if self.query.lstrip().upper().startswith(("INSERT", "UPDATE", "DELETE", "MERGE")):
            self.num_dml_affected_rows = changed[0][0]
        return Rows(self, [], None)

    def _fail(self) -> None:
        for start, failure in self.client.engine.failures.items():
            if self.query.startswith(start):
                raise failure

    def _run(self) -> list[Any]:
        """Run a statement, or several that are one transaction."""
        connection = self.client.connection
        if len(self.statements) == 1:
            return connection.execute(self.statement, self.parameters).fetchall()
        connection.execute("BEGIN")
        try:
            for each in self.statements:
                if each not in {"BEGIN", "COMMIT"}:
                    connection.execute(each)
            connection.execute("COMMIT")
        except duckdb.Error:
            with contextlib.suppress(duckdb.Error):
                connection.execute("ROLLBACK")
            raise
        return []

    def _planned(self) -> duckdb.DuckDBPyRelation:
        with _answering():
            return self.client.connection.sql(self.statement, params=self.parameters)

    def cancel(self) -> None:
        """End it."""
        self.client.connection.interrupt()


class LoadJob:
    """A job that loads a file."""

    output_rows = 0

    def __init__(self, client: Client, file: bytes, table: str, config: bigquery.LoadJobConfig) -> None:
        """Keep the file."""
        self.client, self.file, self.table, self.config = client, file, table, config

    def result(self) -> None:
        """Load it, whole or not at all."""
        assert self.config.source_format == "PARQUET"
        if self.client.engine.waits:
            assert self.client.engine.cancelled.wait(30)
            raise exceptions.ClientError("the job was stopped")
        assert self.config.parquet_options.enable_list_inference
        connection, name = self.client.connection, _name(self.table)
        fields, disposition = list(self.config.schema), self.config.write_disposition
        rows = pq.read_table(io.BytesIO(self.file))
        for each in fields:
            if any(inner.field_type in _NOT_LOADED for inner in [each, *each.fields]):
                raise exceptions.BadRequest(f"{each.name}: {each.field_type} is not loaded from Parquet")
            if rows.schema.field(each.name).type != _arrow(each):
                raise exceptions.BadRequest(f"{each.name}: {rows.schema.field(each.name).type} in {each.field_type}")
        failure = self.client.engine.failures.get("LOAD")
        with _answering():
            stored = pa.table([_kept(rows[each.name], each) for each in fields], names=[each.name for each in fields])
            connection.execute("BEGIN")
            try:
                if disposition == "WRITE_TRUNCATE":
                    connection.execute(f"CREATE OR REPLACE TABLE {name} ({_definitions(fields)})")
                elif disposition == "WRITE_EMPTY":
                    connection.execute(f"CREATE TABLE {name} ({_definitions(fields)})")
                connection.register("loaded", stored)
                names = ", ".join(_name(each.name) for each in fields)
                connection.execute(f"INSERT INTO {name} ({names}) SELECT {names} FROM loaded")
                if failure is not None:
                    raise failure  # noqa: TRY301  the service's
                connection.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(duckdb.Error):
                    connection.execute("ROLLBACK")
                raise
            finally:
                connection.unregister("loaded")
        self.output_rows = len(rows)
        self.client.engine.loads.append((self.table, disposition, [each.name for each in fields]))

    def cancel(self) -> None:
        """End it."""
        self.client.engine.cancelled.set()
        self.client.connection.interrupt()


class Rows:
    """The rows of a result."""

    #: The engine knows no more before the last one.
    is_read = False

    def __init__(self, job: Job, schema: list[bigquery.SchemaField], reader: pa.RecordBatchReader | None) -> None:
        """Keep them."""
        self.job, self.schema, self.reader = job, schema, reader

    @property
    def total_rows(self) -> int | None:
        """How many they are, where none is read."""
        if self.is_read or self.reader is None:
            return None
        count = 0
        with contextlib.closing(self.to_arrow_iterable(None)) as batches:
            for batch in batches:
                count += batch.num_rows
                if count > _MOST_ROWS:
                    raise exceptions.Forbidden("Response too large to return")
        return count

    def to_arrow_iterable(self, _storage: Any) -> Generator[pa.RecordBatch]:
        """Yield them as the service's Arrow types."""
        assert self.reader is not None
        self.is_read = True
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


def _translated(tree: Any, project: str) -> list[str]:
    """Return what DuckDB means by a statement."""
    for table in tree.find_all(exp.Table):
        if table.catalog == project and table.name.startswith("INFORMATION_SCHEMA."):
            assert table.db == "main"
            table.set("catalog", None)
            table.set("db", exp.to_identifier("standin"))
            table.set("this", exp.to_identifier(table.name.partition(".")[2].lower()))
        elif table.catalog == project:
            table.set("catalog", None)
    for kind in tree.find_all(exp.DataType):
        scale = {exp.DataType.Type.BIGDECIMAL: _BIG_SCALE, exp.DataType.Type.DECIMAL: 9}.get(kind.this)
        if scale is not None and not kind.expressions:
            kind.replace(exp.DataType.build(f"DECIMAL(38, {scale})"))
    for key in [*tree.find_all(exp.PrimaryKey, exp.PrimaryKeyColumnConstraint, exp.UniqueColumnConstraint)]:
        # The service does not enforce them.
        (key.parent if isinstance(key.parent, exp.ColumnConstraint | exp.Constraint) else key).pop()
    statements = [tree]
    if isinstance(tree, exp.Create) and isinstance(tree.this, exp.Schema) and tree.expression is not None:
        statements.append(exp.insert(tree.expression.copy(), tree.this.this.copy()))
        tree.set("expression", None)
    texts = [each.sql("duckdb") for each in statements]
    for text, other in _OTHERWISE.items():
        texts = [each.replace(text, other) for each in texts]
    return texts


def _name(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _definitions(fields: list[bigquery.SchemaField]) -> str:
    return ", ".join(f"{_name(each.name)} {_stored(each)}{' NOT NULL' * (each.mode == 'REQUIRED')}" for each in fields)


def _stored(column: bigquery.SchemaField) -> str:
    """Return DuckDB's type of a column."""
    if column.mode == "REPEATED":
        return f"{_stored(_element(column))}[]"
    if column.field_type == "RECORD":
        return f"STRUCT({', '.join(f'{_name(each.name)} {_stored(each)}' for each in column.fields)})"
    if column.precision is not None:
        return f"DECIMAL({column.precision}, {column.scale or 0})"
    if column.field_type in _DECIMALS:
        return _DECIMALS[column.field_type][1]
    names = {"INTEGER": "INT64", "FLOAT": "FLOAT64", "BOOLEAN": "BOOL"}
    return next(kind for kind, (name, _) in reversed(_TYPES.items()) if column.field_type in {name, names.get(name)})


def _element(column: bigquery.SchemaField) -> bigquery.SchemaField:
    return bigquery.SchemaField.from_api_repr({**column.to_api_repr(), "mode": "NULLABLE"})


def _kept(values: pa.ChunkedArray, column: bigquery.SchemaField) -> pa.ChunkedArray:
    """Return a column of which DuckDB takes all digits."""
    return values.cast(pa.decimal128(38, _BIG_SCALE)) if column.field_type == "BIGNUMERIC" else values


def _fields(planned: duckdb.DuckDBPyRelation) -> list[bigquery.SchemaField]:
    return [_field(*each) for each in zip(planned.columns, planned.types, strict=True)]


def _field(name: str, kind: Any, mode: str = "NULLABLE") -> bigquery.SchemaField:
    if kind.id == "list":
        return _field(name, kind.children[0][1], "REPEATED")
    if kind.id == "struct":
        return bigquery.SchemaField(name, "RECORD", mode=mode, fields=[_field(*each) for each in kind.children])
    if kind.id != "decimal":
        return bigquery.SchemaField(name, _TYPES[str(kind)][0], mode=mode)
    precision, scale = (number for _, number in kind.children)
    if (precision, scale) in {(38, 9), (38, _BIG_SCALE)}:
        return bigquery.SchemaField(name, "BIGNUMERIC" if scale == _BIG_SCALE else "NUMERIC", mode=mode)
    return bigquery.SchemaField(name, "NUMERIC", mode=mode, precision=precision, scale=scale)


def _sent(values: pa.Array, column: bigquery.SchemaField) -> pa.Array:
    """Return a column as the service sends it, which keeps no spaces of JSON."""
    if column.field_type != "JSON":
        return values.cast(_arrow(column))
    texts = values.cast(pa.string()).to_pylist()
    return pa.array([text and json.dumps(json.loads(text), separators=(",", ":")) for text in texts], pa.string())


def _arrow(column: bigquery.SchemaField) -> pa.DataType:
    if column.mode == "REPEATED":
        return pa.list_(_arrow(_element(column)))
    if column.field_type == "RECORD":
        return pa.struct([(each.name, _arrow(each)) for each in column.fields])
    kinds = {**dict(_TYPES.values()), **{name: kind for name, (kind, _) in _DECIMALS.items()}}
    return {**kinds, "INT64": pa.int64(), "FLOAT64": pa.float64(), "BOOL": pa.bool_()}[column.field_type]


def _bound(parameters: list[Any]) -> Any:
    """Return parameters as the engine binds them: by their names where they have some."""
    if not parameters or parameters[0].name is None:
        return [each.value for each in parameters]
    return {each.name: each.value for each in parameters}
