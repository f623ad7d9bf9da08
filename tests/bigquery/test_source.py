"""BigQuery through a fake of its clients, and the real ones against an HTTP stand-in."""

import base64
import datetime as dt
import decimal
import io
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from google.api_core import exceptions
from google.cloud import bigquery, bigquery_storage

import longshore
from tests.bigquery.fake import Service

URL = "bigquery://harbour/boats"
QUERY = "SELECT c FROM t"
D = decimal.Decimal
Field = bigquery.SchemaField
timestamp = dt.datetime.fromisoformat


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Service:
    """Stand in for the clients."""
    fake = Service()
    monkeypatch.setattr(bigquery, "Client", fake.client)
    monkeypatch.setattr(bigquery_storage, "BigQueryReadClient", fake.storage)
    return fake


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the file of a service account's key."""
    private = rsa.generate_private_key(65537, 2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path = tmp_path_factory.mktemp("keys") / "key.json"
    text = {"type": "service_account", "project_id": "keyed", "private_key_id": "1", "private_key": private.decode()}
    text |= {"client_email": "reader@keyed.example", "token_uri": "http://127.0.0.1:9/token"}
    path.write_text(json.dumps(text))
    return path


def of_one(service: Service, field: Field, *arrays: pa.Array) -> str:
    service.results[QUERY] = ([field], [pa.record_batch([array], names=["c"]) for array in arrays])
    return QUERY


def numbers(service: Service, *batches: list[int]) -> str:
    return of_one(service, Field("c", "INTEGER"), *map(pa.array, batches))


def read(query: str | list[str], **arguments: Any) -> pa.Table:
    return longshore.read_sql(query, URL, return_type="arrow", **arguments)


# Where to connect.


def test_a_url_names_the_project_and_the_dataset(service: Service) -> None:
    query = numbers(service, [1])
    longshore.read_sql(query, f"{URL}?location=EU&maximum_bytes_billed=1000&priority=batch&use_query_cache=false")
    assert (service.clients[0]["project"], service.clients[0]["location"]) == ("harbour", "EU")
    (config,) = service.configs
    assert str(config.default_dataset) == "harbour.boats"
    assert (config.maximum_bytes_billed, config.priority, config.use_query_cache) == (1000, "BATCH", False)
    assert config.use_legacy_sql is False
    assert service.storages == [service]


def test_keys(service: Service, key: Path) -> None:
    query = numbers(service, [1])
    text = base64.b64encode(key.read_bytes()).decode()
    for url in (
        f"bigquery://?credentials_path={key}",
        f"bigquery://{key}",
        f"bigquery://keyed?credentials_base64={text.replace('+', '%2B')}",
    ):
        longshore.read_sql(query, url)
        client = service.clients.pop()
        assert client["project"] == "keyed"
        assert client["credentials"].service_account_email == "reader@keyed.example"


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("bigquery://harbour?credential_path=x", "did you mean credentials_path"),
        ("bigquery://harbour?credentials_path=/nowhere/rope.json", "key file cannot be read"),
        ("bigquery://harbour?credentials_base64=cm9wZQ==", "not one of a service account"),
        ("bigquery://harbour?credentials_base64=rope!", "not one of a service account"),
        ("bigquery://harbour?maximum_bytes_billed=rope", "is not a number"),
        ("bigquery://harbour?use_query_cache=rope", "true or false"),
    ],
)
def test_what_is_not_an_address(url: str, says: str, service: Service) -> None:
    del service
    with pytest.raises(longshore.InterfaceError, match=says) as caught:
        longshore.read_sql(QUERY, url)
    assert "rope" not in str(caught.value)


def test_without_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    with pytest.raises(longshore.OperationalError, match="default credentials were not found") as caught:
        longshore.read_sql(QUERY, URL)
    assert "gcloud auth" in (caught.value.hint or "")


# Types.

RANGE = {"rangeElementType": {"type": "DATE"}}
CASES: list[tuple[Field, pa.DataType, str, list[Any]]] = [
    (Field("c", "INTEGER"), pa.int64(), "INT64", [-(2**63), 2**63 - 1]),
    (Field("c", "FLOAT"), pa.float64(), "FLOAT64", [0.1, float("inf")]),
    (Field("c", "BOOLEAN"), pa.bool_(), "BOOL", [True, False]),
    (Field("c", "STRING"), pa.string(), "STRING", ["", "é"]),
    (Field("c", "BYTES"), pa.binary(), "BYTES", [b"", b"\0"]),
    (Field("c", "DATE"), pa.date32(), "DATE", [dt.date(1, 1, 1), dt.date(9999, 12, 31)]),
    (Field("c", "TIME"), pa.time64("us"), "TIME", [dt.time(23, 59, 59, 999_999)]),
    (Field("c", "DATETIME"), pa.timestamp("us"), "DATETIME", [timestamp("0001-01-01 00:00:00.000001")]),
    (Field("c", "TIMESTAMP"), pa.timestamp("us", "UTC"), "TIMESTAMP", [timestamp("9999-12-31 23:59:59.999999+00:00")]),
    (Field("c", "NUMERIC"), pa.decimal128(38, 9), "NUMERIC", [D("9" * 29 + ".999999999")]),
    (Field("c", "BIGNUMERIC"), pa.decimal256(76, 38), "BIGNUMERIC", [D("9" * 38 + "." + "9" * 38)]),
    (Field("c", "INTERVAL"), pa.month_day_nano_interval(), "INTERVAL", [pa.MonthDayNano([1, -2, 3_001])]),
    (Field("c", "JSON"), pa.string(), "JSON", ['{"a":1}']),
    (Field("c", "GEOGRAPHY"), pa.string(), "GEOGRAPHY", ["POINT(1 2)"]),
    (Field("c", "INTEGER", mode="REPEATED"), pa.list_(pa.int64()), "ARRAY<INT64>", [[1, 2], []]),
    (
        Field("c", "RECORD", fields=[Field("a", "INTEGER"), Field("b", "NUMERIC", mode="REPEATED")]),
        pa.struct([("a", pa.int64()), ("b", pa.list_(pa.decimal128(38, 9)))]),
        "STRUCT",
        [{"a": 1, "b": [D("1.500000000")]}],
    ),
    (
        Field("c", "RANGE", range_element_type="DATE"),
        pa.struct([("start", pa.date32()), ("end", pa.date32())]),
        "RANGE<DATE>",
        [{"start": dt.date(2024, 1, 1), "end": None}],
    ),
]


@pytest.mark.parametrize(("field", "kind", "native", "values"), CASES, ids=[case[2] for case in CASES])
def test_types(field: Field, kind: pa.DataType, native: str, values: list[Any], service: Service) -> None:
    is_list = pa.types.is_list(kind)
    cells = [*values] if is_list else [None, *values, None]
    table = read(of_one(service, field, pa.array(cells, kind)))
    found = table.schema.field(0)
    assert getattr(found.type, "storage_type", found.type) == kind
    assert found.metadata[b"native_type"].decode() == native
    assert table["c"].to_pylist() == cells
    empty = read(of_one(service, field))
    assert empty.schema.equals(table.schema, check_metadata=True)
    assert longshore.schema(QUERY, URL).equals(table.schema, check_metadata=True)
    assert service.configs[-1].dry_run is True


def test_extension_types(service: Service) -> None:
    stream = longshore.read_sql(of_one(service, Field("c", "GEOGRAPHY"), pa.array(["POINT(1 2)"])), URL)
    assert stream["c"].tolist() == ["POINT(1 2)"]
    field = longshore.schema(QUERY, URL).field(0)
    assert field.metadata[b"ARROW:extension:name"] == b"geoarrow.wkt"
    assert json.loads(field.metadata[b"ARROW:extension:metadata"])["edges"] == "spherical"


def test_a_value_that_arrow_cannot_hold_is_an_error_that_names_its_row(service: Service) -> None:
    most = pa.decimal256(76, 38)
    buffer = pa.py_buffer((0).to_bytes(32, "little") + (2**255 - 1).to_bytes(32, "little"))
    values = pa.Array.from_buffers(most, 2, [None, buffer])
    with pytest.raises(longshore.DataError) as caught:
        read(of_one(service, Field("c", "BIGNUMERIC"), values))
    assert (caught.value.column, caught.value.row, caught.value.native_type) == ("c", 1, "BIGNUMERIC")
    with pytest.raises(longshore.NotSupportedError, match="column of FOREIGN") as refused:
        read(of_one(service, Field("c", "FOREIGN")))
    assert refused.value.column == "c"


# Rows.


def test_rows_come_in_batches_and_are_counted(service: Service) -> None:
    query = numbers(service, [1, 2, 3], [4])
    stream = longshore.read_sql(query, URL, return_type="arrow_stream", batch_size=2)
    assert [len(batch) for batch in stream] == [2, 1, 1]
    service.total_rows = 5
    with pytest.raises(longshore.OperationalError, match="4 rows came of a result of 5"):
        read(query)


def test_an_error_after_the_first_rows_is_no_short_result(service: Service) -> None:
    query = numbers(service, [1], [2])
    service.later = exceptions.ServiceUnavailable("the stream broke")
    with pytest.raises(longshore.OperationalError, match="503 the stream broke"):
        read(query)


def test_a_deadline_cancels_the_job(service: Service) -> None:
    query = numbers(service, [1])
    service.waits = True
    with pytest.raises(longshore.TimeoutError):
        read(query, timeout=1)
    assert service.cancelled.wait(10)


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        (exceptions.BadRequest("Syntax error at [1:8]"), longshore.ProgrammingError),
        (exceptions.NotFound("Not found: Table"), longshore.ProgrammingError),
        (exceptions.Forbidden("Access Denied"), longshore.ProgrammingError),
        (exceptions.Forbidden("Quota", errors=[{"reason": "quotaExceeded"}]), longshore.OperationalError),
        (exceptions.InternalServerError("oops"), longshore.OperationalError),
    ],
)
def test_errors_keep_their_status(failure: Any, kind: type[Exception], service: Service) -> None:
    service.failure = failure
    with pytest.raises(kind, match=f"{failure.code} {failure.message.split(' ')[0]}"):
        read(numbers(service))


def test_a_reader_without_the_role_is_told_of_it(service: Service) -> None:
    query = numbers(service, [1])
    service.later = exceptions.Forbidden("request failed: needs bigquery.readsessions.create")
    with pytest.raises(longshore.ProgrammingError) as caught:
        read(query)
    assert "Read Session User" in (caught.value.hint or "")


# Statements.


def test_parameters_are_typed(service: Service) -> None:
    query = numbers(service, [1])
    utc = timestamp("2024-01-01 00:00:00+00:00")
    values = [
        True,
        1,
        0.5,
        "a",
        b"a",
        D("1.5"),
        D("1E-20"),
        utc,
        utc.replace(tzinfo=None),
        utc.date(),
        utc.time(),
        [1, 2],
    ]
    read(query, params=[*values, None])
    found = service.configs[-1].query_parameters
    kinds = [getattr(each, "type_", None) or getattr(each, "array_type", None) for each in found]
    assert kinds == [
        "BOOL", "INT64", "FLOAT64", "STRING", "BYTES", "NUMERIC", "BIGNUMERIC", "TIMESTAMP", "DATETIME", "DATE", "TIME",
        "INT64", "STRING",
    ]  # fmt: skip
    assert isinstance(found[-2], bigquery.ArrayQueryParameter)
    read(query, params={"n": 1})
    assert [(each.name, each.value) for each in service.configs[-1].query_parameters] == [("n", 1)]


def test_parameters_at_their_borders(service: Service) -> None:
    query, first = numbers(service, [1]), dt.datetime(1, 1, 1)  # noqa: DTZ001  naive
    read(query, params=[-(2**63), first, [first]])
    sent = [each["parameterValue"] for each in service.configs[-1].to_api_repr()["query"]["queryParameters"]]
    text = "0001-01-01T00:00:00.000000"
    assert sent == [{"value": str(-(2**63))}, {"value": text}, {"arrayValues": [{"value": text}]}]


@pytest.mark.parametrize("value", [2**63, D("1E-39"), D("NaN"), [1, "a"], [None], dt.time(0, tzinfo=dt.UTC)])
def test_a_parameter_that_bigquery_would_change_is_refused(value: Any, service: Service) -> None:
    with pytest.raises(longshore.DatabaseError):
        read(numbers(service, [1]), params=[value])
    assert service.configs == []


def test_statements_without_rows(service: Service) -> None:
    service.changed = 3
    with longshore.connect(URL) as connection:
        assert connection.execute("DELETE FROM t WHERE true") == 3
        assert connection.execute(numbers(service, [1, 2])) == 2
        with pytest.raises(longshore.NotSupportedError, match="do not last"):
            connection.execute("BEGIN TRANSACTION")
        with pytest.raises(longshore.NotSupportedError, match="has kept what was changed"):
            connection.rollback()
        connection.execute(QUERY)
        connection.rollback()
    with pytest.raises(longshore.ProgrammingError, match="returns no rows"):
        read("DELETE FROM t WHERE true")


def test_what_it_cannot_do_is_told(service: Service) -> None:
    query = numbers(service, [1])
    with pytest.raises(longshore.NotSupportedError, match="do not share a snapshot") as caught:
        read([query, query])
    assert "snapshot" in (caught.value.hint or "")
    assert read([query, query], options={"snapshot": False}).num_rows == 2
    with pytest.warns(longshore.SerialReadWarning, match="Storage Read API"):
        read(query, partition_num=2)


# The real clients.


class Answer(BaseHTTPRequestHandler):
    """Google's token service, and BigQuery's jobs: a dry run, what the query says is wrong, or a file that is sent."""

    seen: ClassVar[list[str]] = []
    #: The last job that loads, and its file.
    loaded: ClassVar[tuple[Any, bytes]]
    described: ClassVar[Any]

    def do_GET(self) -> None:
        """Tell of a dataset without tables."""
        if "/tables/" in self.path:
            self._send(404, {"error": {"code": 404, "message": "Not found: Table"}})
            return
        reference = {"projectId": "keyed", "datasetId": "harbour"}
        self._send(200, {"id": "keyed:harbour", "datasetReference": reference, "location": "EU"})

    def do_PUT(self) -> None:
        """Take the only chunk of a file whose job was told before."""
        self._finish_load(self.described, self.rfile.read(int(self.headers["Content-Length"])))

    def _load(self, body: bytes) -> None:
        if "uploadType=resumable" in self.path:
            type(self).described = json.loads(body)
            self.send_response(200)
            self.send_header("Location", f"http://{self.headers['Host']}/upload/chunks")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        boundary = self.headers["Content-Type"].partition("boundary=")[2].strip('"').encode()
        _, described, file = body.split(b"--" + boundary)[:3]
        # Of a multipart body the file is all between its headers and a line's end.
        described, file = (part.partition(b"\r\n\r\n")[2].removesuffix(b"\r\n") for part in (described, file))
        self._finish_load(json.loads(described), file)

    def _finish_load(self, job: Any, file: bytes) -> None:
        type(self).loaded = (job, file)
        rows = pq.read_metadata(io.BytesIO(self.loaded[1])).num_rows
        self._send(200, {**job, "statistics": {"load": {"outputRows": str(rows)}}, "status": {"state": "DONE"}})

    def do_POST(self) -> None:
        """Answer."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.seen.append(self.path)
        if self.path.startswith("/upload/"):
            self._load(body)
            return
        if self.path == "/token":
            self._send(200, {"access_token": "rope", "expires_in": 3600, "token_type": "Bearer"})
            return
        job = json.loads(body)
        query = job["configuration"]["query"]["query"]
        if query.isdecimal():
            reason = {"reason": "invalid", "message": "so it is"}
            self._send(int(query), {"error": {"code": int(query), "message": "so it is", "errors": [reason]}})
            return
        fields = [{"name": "n", "type": "INTEGER", "mode": "NULLABLE"}, {"name": "d", "type": "RANGE", **RANGE}]
        job["jobReference"] = {"projectId": "keyed", "jobId": "1", "location": "EU"}
        job["statistics"] = {"query": {"schema": {"fields": fields}, "statementType": "SELECT"}}
        self._send(200, {**job, "status": {"state": "DONE"}})

    def _send(self, status: int, answer: Any) -> None:
        text = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def stand_in(key: Path, tmp_path: Path) -> Iterator[str]:
    """Give the URL of a project whose tokens and jobs come from here."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    address = f"http://127.0.0.1:{server.server_port}"
    own = tmp_path / "key.json"
    own.write_text(json.dumps({**json.loads(key.read_text()), "token_uri": f"{address}/token"}))
    yield f"bigquery://keyed?credentials_path={own}&api_endpoint={address}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_real_client_runs_dry(stand_in: str) -> None:
    schema = longshore.schema("SELECT n, d FROM t", stand_in)
    assert schema.names == ["n", "d"]
    assert schema.types == [pa.int64(), pa.struct([("start", pa.date32()), ("end", pa.date32())])]
    assert "/token" in Answer.seen


@pytest.mark.parametrize(("status", "kind"), [(400, longshore.ProgrammingError), (403, longshore.ProgrammingError)])
def test_the_real_clients_errors(status: int, kind: type[Exception], stand_in: str) -> None:
    with pytest.raises(kind, match=f"{status} .*so it is") as caught:
        longshore.read_sql(str(status), stand_in)
    assert "rope" not in str(caught.value)
    assert "PRIVATE" not in str(caught.value)


@pytest.mark.parametrize("most", [5 << 20, 1], ids=["at once", "resumable"])
def test_the_real_client_loads_a_file(stand_in: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # Of which size a file is sent in chunks.
    monkeypatch.setattr(bigquery.client, "_MAX_MULTIPART_SIZE", most)
    data = pa.table({"id": [1, 2], "name": ["Ada", None]})
    assert longshore.write_sql(data, "harbour.boats", stand_in) == 2
    job, file = Answer.loaded
    assert job["jobReference"]["location"] == "EU"
    load = job["configuration"]["load"]
    assert load["destinationTable"] == {"projectId": "keyed", "datasetId": "harbour", "tableId": "boats"}
    assert (load["sourceFormat"], load["writeDisposition"]) == ("PARQUET", "WRITE_EMPTY")
    fields = [(each["name"], each["type"], each["mode"]) for each in load["schema"]["fields"]]
    assert fields == [("id", "INT64", "NULLABLE"), ("name", "STRING", "NULLABLE")]
    assert pq.read_table(io.BytesIO(file)).to_pylist() == data.to_pylist()


def test_a_table_by_its_name_in_sql(service: Service) -> None:
    fields, none = [Field("id", "INTEGER"), Field("ship", "STRING")], pa.schema({"id": pa.int64(), "ship": pa.string()})
    service.results["SELECT * FROM `dock`.`boats` WHERE 1 = 0"] = (fields, [*none.empty_table().to_batches()])
    rows = pa.record_batch([pa.array([2])], names=["id"])
    service.results["SELECT `id` FROM `dock`.`boats` WHERE (`id` > 1)"] = (fields[:1], [rows])
    query = "SELECT id FROM harbour.dock.boats WHERE id > 1"
    assert longshore.sql(query, attach={"harbour": URL}, return_type="arrow").to_pylist() == [{"id": 2}]
