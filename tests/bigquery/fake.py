"""A fake of Google's clients: jobs and rows with their own fields, parameters and exceptions."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from google.api_core import exceptions
from google.cloud import bigquery


@dataclass
class Service:
    """Queries with their fields and batches, and a log of the jobs."""

    results: dict[str, tuple[list[bigquery.SchemaField], list[pa.RecordBatch]]] = field(default_factory=dict)
    #: The configuration of each job, and whether it was given a client of the Storage Read API.
    configs: list[bigquery.QueryJobConfig] = field(default_factory=list)
    clients: list[dict[str, Any]] = field(default_factory=list)
    storages: list[Any] = field(default_factory=list)
    #: The error of a job, and what comes after the first batch.
    failure: Exception | None = None
    later: Exception | None = None
    #: How many rows the service tells of, where that is another number.
    total_rows: int | None = None
    changed: int | None = None
    waits: bool = False
    cancelled: threading.Event = field(default_factory=threading.Event)

    def client(self, **arguments: Any) -> "Client":
        """Stand in for `bigquery.Client`."""
        self.clients.append(arguments)
        return Client(self, arguments["project"] or "own")

    def storage(self, **_: Any) -> "Service":
        """Stand in for `bigquery_storage.BigQueryReadClient`."""
        return self


class Client:
    """The client of queries."""

    _credentials = None

    def __init__(self, service: Service, project: str) -> None:
        """Ask nothing."""
        self.service, self.project = service, project

    def query(self, query: str, job_config: bigquery.QueryJobConfig) -> "Job":
        """Begin a job."""
        self.service.configs.append(job_config)
        return Job(self.service, query)

    def close(self) -> None:
        """Close it."""


class Job:
    """A query's job."""

    def __init__(self, service: Service, query: str) -> None:
        """Begin it."""
        self.service, self.query = service, query
        self.num_dml_affected_rows = service.changed

    @property
    def schema(self) -> list[bigquery.SchemaField]:
        """The columns, which a dry run tells."""
        return self.service.results[self.query][0]

    def result(self) -> "Rows":
        """Wait for its end."""
        if self.service.waits:
            assert self.service.cancelled.wait(30)
            raise exceptions.ClientError("the job was stopped")
        if self.service.failure is not None:
            raise self.service.failure
        return Rows(self.service, *self.service.results.get(self.query, ([], [])))

    def cancel(self) -> None:
        """End it."""
        self.service.cancelled.set()


class Rows:
    """The rows of a result."""

    def __init__(self, service: Service, schema: list[bigquery.SchemaField], batches: list[pa.RecordBatch]) -> None:
        """Keep them."""
        self.service, self.schema, self.batches = service, schema, batches
        come = sum(batch.num_rows for batch in batches)
        self.total_rows = come if service.total_rows is None else service.total_rows

    def to_arrow_iterable(self, storage: Any) -> Iterator[pa.RecordBatch]:
        """Yield them."""
        self.service.storages.append(storage)
        for batch in self.batches:
            yield batch
            if self.service.later is not None:
                raise self.service.later
