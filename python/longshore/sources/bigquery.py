"""BigQuery: ``bigquery://project/dataset``, by Google's clients of its queries and of its Storage Read API."""

import base64
import binascii
import contextlib
import datetime as dt
import decimal
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from google.api_core import exceptions
from google.auth.exceptions import GoogleAuthError
from google.cloud import bigquery, bigquery_storage
from google.oauth2 import service_account
from requests.exceptions import RequestException

from longshore import _core, errors
from longshore.sources.arrow import stream
from longshore.sources.bigquery_types import conform, schema_of
from longshore.sources.files import flag
from longshore.sources.loading import Load
from longshore.sources.many import Insert, Kinds, Row
from longshore.sources.session import DriverSession, Result
from longshore.texts import closest

_LOGIN = "run gcloud auth application-default login, or name a key file: ?credentials_path="
_READ = "the reader needs the role BigQuery Read Session User, as rows come by the Storage Read API"
_ALONE = 'options={"snapshot": False} runs them one after another'
_SCRIPT = "write the whole transaction as one statement: BEGIN TRANSACTION; ...; COMMIT TRANSACTION"
_SETTINGS = {
    "credentials_path", "credentials_base64", "location", "maximum_bytes_billed", "priority", "use_query_cache",
    "api_endpoint", "project", "dataset",
}  # fmt: skip
_INT64, _NUMERIC, _BIGNUMERIC = 1 << 63, (29, 9), (38, 38)
#: The most parameters of a query.
_PARAMETERS = 10_000
_SCOPES = ["https://www.googleapis.com/auth/cloud-platform"]


def connect(rest: str, keywords: Mapping[str, str], **_: bool) -> "Session":
    """Make the clients of the project after ``bigquery://``; nothing is asked yet."""
    path, _mark, query = rest.partition("?")
    project, _slash, dataset = path.removeprefix("//").partition("/")
    given = {**dict(_core.url_query(query)), **keywords}
    if not project and dataset.endswith(".json"):
        # As ConnectorX has it: the path of a key file.
        given.setdefault("credentials_path", f"/{unquote(dataset)}")
        dataset = ""
    for name in given:
        if name not in _SETTINGS:
            meant = closest(name, _SETTINGS)
            hint = f"did you mean {meant}?" if meant else f"the settings are {', '.join(sorted(_SETTINGS))}"
            raise errors.InterfaceError(f"{name!r} is not a setting of BigQuery", hint=hint)
    credentials = _credentials(given)
    dataset = given.get("dataset", unquote(dataset.strip("/")))
    endpoint = {"api_endpoint": given["api_endpoint"]} if "api_endpoint" in given else None
    session = Session(None, given)
    with session.translating():
        session.connection = bigquery.Client(
            project=given.get("project", unquote(project)) or getattr(credentials, "project_id", None),
            credentials=credentials,
            location=given.get("location"),
            client_options=endpoint,
        )
        session.storage = bigquery_storage.BigQueryReadClient(credentials=session.connection._credentials)  # noqa: SLF001
    session.defaults = _defaults(given, session.connection.project, dataset)
    return session


def _credentials(given: Mapping[str, str]) -> Any:
    """Give those of a key; None for the environment's own. No error tells a word of the key."""
    hint = "give the path of a service account's key file, or its text in base64"
    try:
        if "credentials_base64" in given:
            info = json.loads(base64.b64decode(given["credentials_base64"], validate=True))
            return service_account.Credentials.from_service_account_info(info, scopes=_SCOPES)
        if "credentials_path" in given:
            path = given["credentials_path"]
            return service_account.Credentials.from_service_account_file(path, scopes=_SCOPES)
    except OSError as error:
        raise errors.InterfaceError(f"the key file cannot be read: {error.strerror}", hint=hint) from None
    except (ValueError, KeyError, AttributeError, TypeError, binascii.Error, GoogleAuthError):
        raise errors.InterfaceError("the key is not one of a service account", hint=hint) from None
    return None


def _defaults(given: Mapping[str, str], project: str, dataset: str) -> dict[str, Any]:
    """Give what every query is told."""
    defaults: dict[str, Any] = {"use_legacy_sql": False}
    if dataset:
        defaults["default_dataset"] = f"{project}.{dataset}"
    if "maximum_bytes_billed" in given:
        if not given["maximum_bytes_billed"].isdecimal():
            raise errors.InterfaceError("maximum_bytes_billed is not a number")
        defaults["maximum_bytes_billed"] = int(given["maximum_bytes_billed"])
    if "priority" in given:
        defaults["priority"] = given["priority"].upper()
    if "use_query_cache" in given:
        defaults["use_query_cache"] = flag(given["use_query_cache"], "use_query_cache")
    return defaults


class Session(DriverSession):
    """A project's clients. Each query is a job, which bills its project."""

    not_split = "the Storage Read API sends a result over several streams by itself"
    not_prepared = "BigQuery's client does not tell their types"
    undoes_what_fails = True
    storage: Any = None
    #: The job that runs.
    job: Any = None
    #: Whether a statement without a result has run since a transaction began.
    has_changed = False
    #: How many rows the last statement without a result has changed.
    count: int | None = None

    def __init__(self, connection: Any, settings: Mapping[str, str]) -> None:
        """Keep the client, and what its errors may quote."""
        super().__init__(connection)
        self.settings = settings
        self.defaults: dict[str, Any] = {}
        #: Whether what runs is to end.
        self.is_stopped = threading.Event()

    @contextlib.contextmanager
    def translating(self) -> Iterator[None]:
        """Raise Longshore's exceptions for the clients'."""
        try:
            yield
        except (exceptions.GoogleAPIError, GoogleAuthError, RequestException) as error:
            raise self.translate(error) from None

    def translate(self, error: Exception) -> errors.Error:
        """Give Longshore's exception for a client's, by its status."""
        if isinstance(error, errors.Error):
            return error
        if isinstance(error, GoogleAuthError):
            return errors.OperationalError(str(error), hint=_LOGIN)
        text = getattr(error, "message", None) or str(error)
        code = getattr(error, "code", None)
        reasons = {each.get("reason") for each in getattr(error, "errors", None) or () if isinstance(each, dict)}
        if isinstance(error, exceptions.BadRequest | exceptions.NotFound | exceptions.Conflict):
            return errors.ProgrammingError(f"{code} {text}")
        if isinstance(error, exceptions.Forbidden):
            is_session = "readsessions" in text or "ReadSession" in text
            is_limit = reasons & {"quotaExceeded", "rateLimitExceeded"}
            kind = errors.OperationalError if is_limit else errors.ProgrammingError
            return kind(f"{code} {text}", hint=_READ if is_session else None)
        return errors.OperationalError(f"{code} {text}" if code else text)

    def _prepare(self, query: str, params: Any) -> tuple[Any, Any]:
        statement, _ = super()._prepare(query, None)
        return statement, parameters(params)

    def begin_job(self, statement: str, params: Any = None, **more: Any) -> Any:
        """Begin a job."""
        config = bigquery.QueryJobConfig(**self.defaults, **more)
        if params:
            config.query_parameters = params
        return self.connection.query(statement, job_config=config)

    def wait_for(self, job: Any) -> Any:
        """Wait for a job, which ``cancel`` ends, and give its result."""
        self.job = job
        try:
            if self.is_stopped.is_set():
                job.cancel()
            return job.result()
        finally:
            self.job = None

    def _rows(self, statement: str, params: Any) -> Any:
        """Run a statement to its end, and give what iterates over its rows."""
        self.is_stopped.clear()
        job = self.begin_job(statement, params)
        rows = self.wait_for(job)
        # A statement without rows has no columns; one that changes some tells how many.
        self.count = None if rows.schema else job.num_dml_affected_rows
        self.has_changed |= not rows.schema
        return rows

    def _run(self, statement: Any, params: Any) -> Any:
        rows = self._rows(statement, params)
        count = rows.total_rows if rows.schema else self.count
        return SimpleNamespace(rowcount=-1 if count is None else int(count), description=None)

    def _inserts_many(self) -> bool:
        return True

    def _insert_many(self, insert: Insert, rows: Sequence[Row], kinds: Kinds | None) -> int | None:
        if kinds is None:
            return sum(self.execute(insert.by_place, row) or 0 for row in rows)
        place, size = f"({', '.join('?' * len(insert.places))})", _PARAMETERS // len(insert.places)
        # A NULL has the type of its column's values, of which BIGNUMERIC holds all decimals.
        found = ({_kind(row[at]) for row in rows if row[at] is not None} or {"STRING"} for at in range(len(kinds)))
        types = [min(each) for each in found]
        count = 0
        for start in range(0, len(rows), size):
            some = rows[start : start + size]
            values = [_scalar(None, value, kind) for row in some for value, kind in zip(row, types, strict=True)]
            self._rows(f"{insert.head} VALUES {', '.join([place] * len(some))}", values)
            count += self.count or 0
        return count

    def _result(self, statement: Any, params: Any, _rows: int) -> Result | None:
        rows = self._rows(statement, params)
        if not rows.schema:
            return None
        schema = schema_of(rows.schema)
        return stream(self, schema, self._batches(rows, schema)), [], []

    def _batches(self, rows: Any, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        before = 0
        with contextlib.closing(rows.to_arrow_iterable(self.storage)) as batches:
            for batch in batches:
                if self.is_stopped.is_set():
                    raise errors.OperationalError("the read was cancelled")
                yield conform(batch, schema, before)
                before += batch.num_rows
        if rows.total_rows is not None and before != rows.total_rows:
            raise errors.OperationalError(f"{before} rows came of a result of {rows.total_rows}")

    def _changed_rows(self) -> int | None:
        return self.count

    def _schema(self, statement: Any, params: Any) -> Result | None:
        job = self.begin_job(statement, params, dry_run=True)
        return (schema_of(job.schema).empty_table(), [], []) if job.schema else None

    def begin(self) -> None:
        """Begin what a connection takes for a transaction: each statement is one of its own."""
        self.transaction, self.has_changed = "open", False

    def commit(self) -> None:
        """End it: all is there already."""
        self.transaction = "none"

    def rollback(self) -> None:
        """End it; raises ``NotSupportedError`` where a statement has changed what cannot be undone."""
        self.transaction, has_changed = "none", self.has_changed
        if has_changed:
            message = "BigQuery has kept what was changed: each statement is a transaction of its own"
            raise errors.NotSupportedError(message, hint=_SCRIPT)

    def _control(self, method: str, has_options: bool) -> None:  # noqa: FBT001  of the statement
        del method, has_options
        message = "BigQuery's transactions do not last from one statement to the next"
        raise errors.NotSupportedError(message, hint=_SCRIPT)

    def begin_snapshot(self) -> None:
        """Refuse one snapshot of several queries."""
        raise errors.NotSupportedError("BigQuery's queries do not share a snapshot", hint=_ALONE)

    @property
    def catalogue(self) -> Mapping[str, str]:
        """The queries of INFORMATION_SCHEMA."""
        from longshore.sources.bigquery_catalogue import catalogue

        project, _, dataset = self.defaults.get("default_dataset", "").rpartition(".")
        return catalogue(project or self.connection.project, dataset, self.settings.get("location", "us"))

    def quoted_name(self, *names: str) -> str:
        """Give a table's name for a statement."""
        from longshore.sources.bigquery_loading import quoted_name

        return quoted_name(*names)

    def load(self, **load: Any) -> Any:
        """Begin to write."""
        from longshore.sources.bigquery_loading import TableLoader

        return TableLoader(self, Load(**load))

    def _another(self) -> Any:
        # Nothing of a query stays.
        return self.connection

    def cancel(self) -> None:
        """Stop what runs: the job, or its rows on their way."""
        self.is_stopped.set()
        if (job := self.job) is not None:
            job.cancel()


def parameters(params: Any) -> list[Any]:
    """Give typed parameters: by their places for ``?``, by their names for ``@name``."""
    named = params.items() if isinstance(params, dict) else ((None, value) for value in params or ())
    return [_parameter(name, value) for name, value in named]


def _parameter(name: str | None, value: Any) -> Any:
    if isinstance(value, list | tuple):
        kinds = {_kind(each) for each in value if each is not None} or {"STRING"}
        if len(kinds) > 1 or None in value:
            message = "an array of BigQuery's has one type, and no NULL"
            raise errors.NotSupportedError(message, hint="give values of one type, or cast them in the query")
        kind = kinds.pop()
        return bigquery.ArrayQueryParameter(name, kind, [_bind(each, kind) for each in value])
    return _scalar(name, value, "STRING" if value is None else _kind(value))


def _scalar(name: str | None, value: Any, kind: str) -> Any:
    return bigquery.ScalarQueryParameter(name, kind, None if value is None else _bind(value, kind))


def _bind(value: Any, kind: str) -> Any:
    """Give a value, or its text where the client's own has no zeros before a year of fewer than four digits."""
    return value.isoformat(timespec="microseconds") if kind == "DATETIME" else value


def _kind(value: Any) -> str:
    """Give BigQuery's type of a value that it holds exactly."""
    if isinstance(value, bool):
        return "BOOL"
    if isinstance(value, int):
        if not -_INT64 <= value < _INT64:
            raise errors.DataError(f"{value} is beyond INT64", hint="give a decimal, for NUMERIC or BIGNUMERIC")
        return "INT64"
    if isinstance(value, decimal.Decimal):
        return _decimal(value)
    if isinstance(value, dt.datetime):
        return "DATETIME" if value.tzinfo is None else "TIMESTAMP"
    if isinstance(value, dt.time) and value.tzinfo is not None:
        raise errors.NotSupportedError("a time with an offset has no type in BigQuery")
    kinds: Sequence[tuple[type, str]] = (
        (float, "FLOAT64"), (str, "STRING"), (bytes, "BYTES"), (dt.date, "DATE"), (dt.time, "TIME")
    )  # fmt: skip
    found = next((name for kind, name in kinds if isinstance(value, kind)), None)
    if found is None:
        message = f"{type(value).__name__} is not a type of BigQuery's parameters"
        raise errors.NotSupportedError(message, hint="give its text, and cast it in the query")
    return found


def _decimal(value: decimal.Decimal) -> str:
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise errors.DataError("NUMERIC has no NaN and no infinity")
    whole, places = len(digits) + exponent, -exponent
    for name, (most, scale) in (("NUMERIC", _NUMERIC), ("BIGNUMERIC", _BIGNUMERIC)):
        if whole <= most and places <= scale:
            return name
    raise errors.DataError(f"{value} is beyond BIGNUMERIC, which would round it")
