"""Where a server listens and for whom, its limits and its end."""

import datetime as dt
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from itertools import permutations
from pathlib import Path
from typing import Any

import duckdb
import psutil
import pyarrow as pa
import pyarrow.flight as fl
import pytest

import longshore
from longshore import _core
from longshore.duckdb import parameter_types
from longshore.errors import InterfaceError, OperationalError
from tests.certificates import Certificates
from tests.flight_server.conftest import BERTHS, DatabaseOptions, client, client_with_session, made


@pytest.fixture
def lake(tmp_path: Path) -> str:
    """Give the URL of a DuckDB file."""
    return made("duckdb", tmp_path)


@pytest.fixture
def users(tmp_path: Path) -> Path:
    """Give a file with a reader and a writer."""
    path = tmp_path / "users"
    path.write_text("".join(_core.user_line(name, f"{name} knows", name) + "\n" for name in ("reader", "writer")))
    return path


def count(connection: Any, query: str = "SELECT count(*) FROM berths") -> Any:
    """Give the one value of a query."""
    with connection.cursor() as cursor:
        cursor.execute(query)
        return cursor.fetchone()[0]


def field(number: int, value: bytes) -> bytes:
    """Encode a field of a message of Protocol Buffers: its bytes, text or message."""
    size, length = len(value), b""
    while size > 127:
        length += bytes([size & 127 | 128])
        size >>= 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + value


def message(name: str, body: bytes) -> bytes:
    """Encode a message of Flight SQL as its commands and actions have them: within google.protobuf.Any."""
    return field(1, f"type.googleapis.com/arrow.flight.protocol.sql.{name}".encode()) + field(2, body)


def plain(server: longshore.Server, statement: str) -> tuple[fl.FlightClient, fl.FlightDescriptor]:
    """Give a client of Flight's own, and the descriptor of a statement."""
    command = message("CommandStatementQuery", field(1, statement.encode()))
    location = server.url.replace("grpc://", "grpc+tcp://")
    return fl.FlightClient(location), fl.FlightDescriptor.for_command(command)


def parts(number: int) -> fl.FlightCallOptions:
    """Ask for a result in so many parts."""
    return fl.FlightCallOptions(headers=[(b"longshore-parts", str(number).encode())])


def test_users_have_passwords_and_tokens(lake: str, users: Path) -> None:
    with longshore.serve(lake, port=0, auth=users) as server:
        with client(server, "reader", autocommit=True) as connection:
            assert count(connection) == 10
        for options in ({}, {"username": "reader", "password": "wrong"}, {"username": "stranger", "password": ""}):
            with (
                pytest.raises(Exception, match=r"(?i)unauthenticated"),
                client(server, db_kwargs=options, autocommit=True) as wrong,
            ):
                count(wrong)
        header = {DatabaseOptions.AUTHORIZATION_HEADER.value: "Bearer " + "0" * 64}
        with (
            pytest.raises(Exception, match="token is unknown"),
            client(server, db_kwargs=header, autocommit=True) as wrong,
        ):
            count(wrong)


def test_what_a_user_holds_is_not_anothers(lake: str, users: Path) -> None:
    with longshore.serve(lake, port=0, auth=users) as server:
        flight, descriptor = plain(server, "SELECT berth FROM berths")
        mine, other = (
            fl.FlightCallOptions(headers=[flight.authenticate_basic_token(name, f"{name} knows")])
            for name in ("reader", "writer")
        )
        ticket = flight.get_flight_info(descriptor, mine).endpoints[0].ticket
        with pytest.raises(KeyError, match="another user's"):
            flight.do_get(ticket, other).read_all()
        assert flight.do_get(ticket, mine).read_all().num_rows == 10

        def act(name: str, body: bytes, options: fl.FlightCallOptions) -> bytes:
            results = list(flight.do_action(fl.Action(name, message(f"Action{name}Request", body)), options))
            return results[0].body.to_pybytes() if results else b""

        prepared = act("CreatePreparedStatement", field(1, b"SELECT 1 AS n"), mine)
        prepared = field(1, prepared[(at := prepared.index(b"\n ") + 2) : at + 32])
        transaction = field(1, act("BeginTransaction", b"", mine)[-32:])
        command = fl.FlightDescriptor.for_command(message("CommandPreparedStatementQuery", prepared))
        act("ClosePreparedStatement", prepared, other)
        with pytest.raises(KeyError, match="another user's"):
            flight.get_flight_info(command, other)
        with pytest.raises(KeyError, match="another user's"):
            act("EndTransaction", transaction + b"\x10\x01", other)
        assert flight.get_flight_info(command, mine).schema.names == ["n"]
        act("EndTransaction", transaction + b"\x10\x01", mine)


def test_tls_with_clients_certificates(lake: str, tmp_path: Path) -> None:
    files = Certificates.make(tmp_path / "tls")
    root = {DatabaseOptions.TLS_ROOT_CERTS.value: files.authority.read_text()}
    with longshore.serve(lake, port=0, tls=[files.server, files.server_key]) as server:
        assert server.url.startswith("grpc+tls://")
        with client(server, db_kwargs=root, autocommit=True) as connection:
            assert count(connection) == 10
    both = [files.server, files.server_key, files.authority]
    own = {
        **root,
        DatabaseOptions.MTLS_CERT_CHAIN.value: files.client.read_text(),
        DatabaseOptions.MTLS_PRIVATE_KEY.value: files.client_key.read_text(),
    }
    with longshore.serve(lake, port=0, tls=both) as server:
        with client(server, db_kwargs=own, autocommit=True) as connection:
            assert count(connection) == 10
        with (
            pytest.raises(Exception, match=r"(?i)unavailable|certificate|handshake"),
            client(server, db_kwargs=root, autocommit=True) as stranger,
        ):
            count(stranger)


def test_strangers_need_tls_and_users(lake: str, users: Path, tmp_path: Path) -> None:
    files = Certificates.make(tmp_path / "tls")
    tls = [files.server, files.server_key]
    kept: list[dict[str, Any]] = [{}, {"auth": users}, {"tls": tls}]
    for options in kept:
        with pytest.raises(InterfaceError, match="without TLS and a password"):
            longshore.serve(lake, host="0.0.0.0", port=0, **options)  # noqa: S104
    let_in: list[dict[str, Any]] = [{"auth": users, "tls": tls}, {"insecure": True}]
    for options in let_in:
        longshore.serve(lake, host="0.0.0.0", port=0, **options).stop()  # noqa: S104


def test_what_cannot_be_served_says_why(lake: str, tmp_path: Path) -> None:
    with longshore.serve(lake, port=0) as server, pytest.raises(OperationalError, match="cannot listen"):
        longshore.serve(lake, port=server.port)
    server.stop()
    (tmp_path / "users").write_text("ada:secret\n")
    with pytest.raises(InterfaceError, match="line 1 of the file of users") as caught:
        longshore.serve(lake, port=0, auth=tmp_path / "users")
    assert "secret" not in str(caught.value)
    with pytest.raises(InterfaceError, match="max_rows"):
        longshore.serve(lake, port=0, max_rows=0)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InterfaceError, match="no Parquet file"):
        longshore.serve(tmp_path / "empty", port=0)


def test_results_and_statements_have_limits(lake: str) -> None:
    endless = "SELECT count(*) FROM range(1000000) a, range(1000000) b"
    with (
        longshore.serve(lake, port=0, max_rows=1000, statement_timeout=0.5) as server,
        client(server, autocommit=True) as connection,
    ):
        assert count(connection, "SELECT sum(range) FROM range(1000)") == 499500
        with connection.cursor() as cursor:
            cursor.execute("SELECT * FROM range(1001)")
            with pytest.raises(Exception, match="more than 1000 rows"):
                cursor.fetchall()
        began = time.monotonic()
        with connection.cursor() as cursor, pytest.raises(Exception, match=r"no answer within 0.5 s"):
            cursor.execute(endless)
        assert time.monotonic() - began < 10
        assert count(connection) == 10


def test_a_statement_is_cancelled(lake: str) -> None:
    with longshore.serve(lake, port=0) as server, client(server, autocommit=True) as connection:
        with connection.cursor() as cursor:
            timer = threading.Timer(0.3, cursor.adbc_cancel)
            timer.start()
            with pytest.raises(Exception, match=r"(?i)cancel"):
                cursor.execute("SELECT count(*) FROM range(1000000) a, range(1000000) b")
            timer.join()
        assert count(connection) == 10


def test_a_stream_that_is_left_ends_its_statement(lake: str) -> None:
    with longshore.serve(lake, port=0, max_sessions=1) as server:
        flight, descriptor = plain(server, "SELECT a.range FROM range(100000) a, range(100000) b")
        stream = flight.do_get(flight.get_flight_info(descriptor).endpoints[0].ticket)
        assert stream.read_chunk().data.num_rows > 0
        stream.cancel()
        # There is one session, which the statement has until it ends.
        with client(server, autocommit=True) as connection:
            assert count(connection) == 10


def test_a_session_has_a_schema(tmp_path: Path) -> None:
    url = made("duckdb", tmp_path)
    with longshore.serve(url, port=0) as server, client_with_session(server) as connection:
        with connection.cursor() as cursor:
            cursor.execute("CREATE SCHEMA dock")
            cursor.execute("CREATE TABLE dock.berths AS SELECT 1 AS berth")
        connection.adbc_current_db_schema = "dock"
        assert connection.adbc_current_db_schema == "dock"
        assert count(connection) == 1
        with pytest.raises(Exception, match=r"(?i)invalid"):
            connection.adbc_current_db_schema = "no_such_schema"


def test_longshore_reads_what_it_serves(lake: str, users: Path, tmp_path: Path) -> None:
    files = Certificates.make(tmp_path / "tls")
    with longshore.serve(lake, port=0, auth=users, tls=[files.server, files.server_key]) as server:
        url = server.url.replace("://", "://writer:writer%20knows@") + f"?tls_ca={files.authority}"
        query = "SELECT berth, name FROM berths WHERE berth > ? ORDER BY berth"
        read = longshore.read_sql(query, url, params=[3], return_type="arrow")
        assert read.cast(BERTHS.schema) == BERTHS.slice(3)


def test_longshore_polls_for_a_result(lake: str) -> None:
    query = "SELECT berth, name FROM berths WHERE berth > ? ORDER BY berth"
    with longshore.serve(lake, port=0) as server:
        read = longshore.read_sql(query, f"{server.url}/?poll=true", params=[3], return_type="arrow")
        assert read.cast(BERTHS.schema) == BERTHS.slice(3)
        with pytest.raises(longshore.ProgrammingError, match="no_such_table"):
            longshore.read_sql("SELECT 1 AS n FROM no_such_table", f"{server.url}/?poll=true")


def test_longshore_binds_values_that_are_more_exact_than_the_columns(lake: str) -> None:
    """The types that the server tells of parameters are those of what they are compared with."""
    ask = "SELECT count(*) AS n FROM berths WHERE berth {} AND TIMESTAMP '2024-01-01 00:00:00.5' {} ?"
    with longshore.serve(lake, port=0) as server:
        for value, found in ((8.5, 2), (Decimal("8.5"), 2), (9, 1)):
            for time, order in (("00:00:00.500001", "<"), ("00:00:00", ">")):
                params = [value, dt.datetime.fromisoformat(f"2024-01-01 {time}")]
                rows = longshore.read_sql(ask.format("> ?", order), server.url, params=params, return_type="arrow")
                assert rows["n"].to_pylist() == [found], params


def test_longshore_reads_one_execution_in_parts(tmp_path: Path) -> None:
    url = made("duckdb", tmp_path)
    with longshore.connect(url, autocommit=True) as connection:
        connection.execute("CREATE SEQUENCE s")
    with longshore.serve(url, port=0) as server:
        for rows, params in (("300000", None), ("?) LIMIT (300000", [300_001])):
            query = f"SELECT nextval('s') AS n FROM range({rows})"
            before = longshore.read_sql("SELECT nextval('s') AS n", server.url, return_type="arrow")["n"][0].as_py()
            read = longshore.read_sql(query, server.url, params=params, partition_num=4, return_type="arrow")
            # One that ran once in each part would number more rows than there are.
            assert sorted(read["n"].to_pylist()) == [*range(before + 1, before + 300_001)]
        with pytest.warns(longshore.SerialReadWarning, match="as it comes"):
            longshore.read_sql("SELECT 1 AS n", server.url, partition_on="n", partition_num=2)
        with pytest.warns(longshore.SerialReadWarning, match="over one connection"):
            longshore.read_sql(["SELECT 1 AS n", "SELECT 2 AS n"], server.url, partition_num=2)


def test_a_gateway_runs_a_query_once_for_all_of_its_parts(postgres: Any) -> None:
    postgres.psql("CREATE SEQUENCE gateway_parts")
    try:
        with longshore.serve(postgres.url(), port=0) as server:
            query = "SELECT nextval('gateway_parts') AS n FROM generate_series(1, 100000)"
            for start in (1, 100_001):
                read = longshore.read_sql(query, server.url, partition_num=4, return_type="arrow")
                assert sorted(read["n"].to_pylist()) == [*range(start, start + 100_000)]
    finally:
        postgres.psql("DROP SEQUENCE gateway_parts")


def test_servers_of_one_file_share_its_engine(lake: str) -> None:
    with (
        longshore.serve(lake, port=0) as one,
        longshore.serve(lake, port=0) as other,
        longshore.connect(one.url) as writer,
        longshore.connect(other.url, autocommit=True) as reader,
    ):
        writer.execute("DELETE FROM berths WHERE berth = 10")
        assert reader.execute("SELECT berth FROM berths") == 10
        writer.commit()
        assert reader.execute("SELECT berth FROM berths") == 9


def test_types_of_parameters_are_asked_of_the_engine_that_runs_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    with duckdb.connect() as connection:
        assert parameter_types.typed_nulls(connection, "SELECT ?::BIGINT + 1", ["1"]) == ["NULL::BIGINT"]
        parameter_types.c_api.cache_clear()
        monkeypatch.setattr("_duckdb.__version__", "2.0.999")
        with pytest.raises(longshore.NotSupportedError, match=r"DuckDB's library has another version"):
            parameter_types.c_api()
    parameter_types.c_api.cache_clear()


@pytest.mark.parametrize(("end", "left"), [(b"\x10\x01", 11), (b"\x10\x02", 10)], ids=["commit", "rollback"])
def test_an_ingestion_is_part_of_the_transaction_that_it_names(lake: str, end: bytes, left: int) -> None:
    with longshore.serve(lake, port=0) as server, client(server, autocommit=True) as connection:
        flight, _ = plain(server, "")
        (begun,) = flight.do_action(fl.Action("BeginTransaction", message("ActionBeginTransactionRequest", b"")))
        transaction = begun.body.to_pybytes()[-32:]
        append = field(1, b"\x08\x02\x10\x02") + field(2, b"berths") + field(5 + 1, transaction)
        descriptor = fl.FlightDescriptor.for_command(message("CommandStatementIngest", append))
        boats = pa.table({"berth": pa.array([11], pa.int64()), "name": ["quay 11"]})
        writer, reader = flight.do_put(descriptor, boats.schema)
        writer.write_table(boats)
        writer.done_writing()
        assert reader.read().to_pybytes() == b"\x08\x01"
        writer.close()
        assert count(connection) == 10
        ended = message("ActionEndTransactionRequest", field(1, transaction) + end)
        assert list(flight.do_action(fl.Action("EndTransaction", ended))) == []
        assert count(connection) == left


def test_savepoints_undo_a_part_of_a_transaction(tmp_path: Path) -> None:
    with longshore.serve(made("sqlite", tmp_path), port=0) as server, client(server, autocommit=True) as connection:
        flight, _ = plain(server, "")

        def act(name: str, body: bytes) -> bytes:
            results = list(flight.do_action(fl.Action(name, message(f"Action{name}Request", body))))
            return results[0].body.to_pybytes()[-32:] if results else b""

        def update(statement: bytes, changed: bytes) -> None:
            command = message("CommandStatementUpdate", field(1, statement) + field(2, transaction))
            writer, reader = flight.do_put(fl.FlightDescriptor.for_command(command), pa.schema([]))
            writer.done_writing()
            assert reader.read().to_pybytes() == changed
            writer.close()

        transaction = act("BeginTransaction", b"")
        with pytest.raises(NotImplementedError, match='the server has no action "BeginSavepoint"'):
            act("BeginSavepoint", field(1, transaction) + field(2, b"here"))
        update(b"DELETE FROM berths WHERE berth = 1", b"\x08\x01")
        update(b"SAVEPOINT here", b"")
        update(b"DELETE FROM berths WHERE berth = 2", b"\x08\x01")
        update(b"ROLLBACK TO SAVEPOINT here", b"")
        act("EndTransaction", field(1, transaction) + b"\x10\x01")
        assert count(connection, "SELECT min(berth) FROM berths") == 2


def test_keys_are_listed(tmp_path: Path) -> None:
    with longshore.serve(made("sqlite", tmp_path), port=0) as server, client(server, autocommit=True) as connection:
        with connection.cursor() as cursor:
            cursor.execute("CREATE TABLE boats (boat BIGINT PRIMARY KEY, berth BIGINT REFERENCES berths (berth))")
        flight, _ = plain(server, "")

        def listed(name: str, body: bytes) -> list[dict[str, Any]]:
            descriptor = fl.FlightDescriptor.for_command(message(name, body))
            info = flight.get_flight_info(descriptor)
            table = flight.do_get(info.endpoints[0].ticket).read_all()
            assert table.schema == info.schema
            rows: list[dict[str, Any]] = table.to_pylist()
            return rows

        keys = listed("CommandGetPrimaryKeys", field(3, b"boats"))
        assert [(key["table_name"], key["column_name"], key["key_sequence"]) for key in keys] == [("boats", "boat", 1)]
        pairs = [("CommandGetImportedKeys", b"boats"), ("CommandGetExportedKeys", b"berths")]
        for name, body in [(name, field(3, table)) for name, table in pairs] + [
            ("CommandGetCrossReference", field(3, b"berths") + field(6, b"boats"))
        ]:
            (key,) = listed(name, body)
            columns = (key["pk_table_name"], key["pk_column_name"], key["fk_table_name"], key["fk_column_name"])
            assert columns == ("berths", "berth", "boats", "berth")
        assert len(listed("CommandGetXdbcTypeInfo", b"")) == 11
        assert len(listed("CommandGetSqlInfo", b"")) == 17


def test_parts_are_read_once_in_any_order(lake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One after another, of a result four times as large as what may wait in memory: the rest waits on the disk."""
    monkeypatch.setattr("longshore.server._PART_MEMORY", 1 << 20)
    rows = 4096 * 11
    query = f"SELECT range AS number, repeat(range::VARCHAR, 20) AS text, random() AS chance FROM range({rows})"
    with longshore.serve(lake, port=0) as server:
        flight, descriptor = plain(server, query)
        for order in permutations(range(4)):
            endpoints = flight.get_flight_info(descriptor, parts(4)).endpoints
            assert len(endpoints) == 4
            found = pa.concat_tables([flight.do_get(endpoints[at].ticket).read_all() for at in order])
            assert found.nbytes > 4 << 20
            found = found.sort_by("number")
            assert found["number"].to_pylist() == list(range(rows))
            assert found["text"].to_pylist() == [str(number) * 20 for number in range(rows)]
        with pytest.raises(pa.ArrowInvalid, match="has been read") as caught:
            flight.do_get(endpoints[0].ticket).read_all()
        assert "run the query again" in str(caught.value)
        flight.close()


def test_a_result_of_any_size_is_one_endpoint_unless_more_are_asked_for(
    lake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who reads the first endpoint alone has all rows, in order, and who reads one after another needs no disk."""
    monkeypatch.setattr("longshore.server._PART_MEMORY", 1 << 20)
    monkeypatch.setattr("longshore.server._PART_DISK", 1 << 20)
    query = "SELECT range AS number FROM range(8000000)"
    with longshore.serve(lake, port=0) as server:
        flight, descriptor = plain(server, query)
        info = flight.get_flight_info(descriptor)
        (endpoint,) = info.endpoints
        numbers = flight.do_get(endpoint.ticket).read_all()["number"].to_numpy()
        assert info.ordered
        assert numbers.shape == (8_000_000,)
        assert (numbers[1:] > numbers[:-1]).all()
        two = {DatabaseOptions.RPC_CALL_HEADER_PREFIX.value + "longshore-parts": "2"}
        with client(server, autocommit=True, db_kwargs=two) as connection, connection.cursor() as cursor:
            cursor.execute(query)
            # ADBC's driver reads them one after another.
            with pytest.raises(Exception, match="parts that no one has read"):
                cursor.fetch_arrow_table()
        flight.close()


def test_parts_that_no_one_reads_have_a_quota(lake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longshore.server._PART_MEMORY", 1 << 20)
    monkeypatch.setattr("longshore.server._PART_DISK", 1 << 20)
    query = "SELECT range AS number, repeat(range::VARCHAR, 20) AS text FROM range(100000)"
    with longshore.serve(lake, port=0) as server:
        flight, descriptor = plain(server, query)
        endpoint = flight.get_flight_info(descriptor, parts(4)).endpoints[-1]
        with pytest.raises((fl.FlightError, pa.ArrowInvalid), match="parts that no one has read"):
            flight.do_get(endpoint.ticket).read_all()


def test_one_part_is_never_read_and_one_reader_leaves(lake: str) -> None:
    with longshore.serve(lake, port=0, idle_timeout=1.5) as server:
        flight, descriptor = plain(server, "SELECT range AS number FROM range(2000000)")
        endpoints = flight.get_flight_info(descriptor, parts(4)).endpoints
        left = flight.do_get(endpoints[0].ticket)
        left.read_chunk()
        left.cancel()
        read = [flight.do_get(endpoint.ticket).read_all() for endpoint in endpoints[1:3]]
        numbers = pa.concat_tables(read)["number"].to_pylist()
        assert len(set(numbers)) == len(numbers) > 0
        deadline = time.monotonic() + 20
        while server._core.held and time.monotonic() < deadline:  # noqa: SLF001  what clients hold is told to tests alone
            time.sleep(0.05)
        assert server._core.held == 0  # noqa: SLF001


#: A client that reads a result without an end in four parts until it is killed.
READING_PARTS = """
import sys, longshore
query = "SELECT a.range FROM range(100000) a, range(100000) b"
stream = longshore.read_sql(query, sys.argv[1], partition_num=4, return_type="arrow_stream")
next(iter(stream))
print("reads", flush=True)
sys.stdin.read()
"""


def test_a_client_that_is_killed_in_the_middle_of_its_parts_leaves_nothing(lake: str) -> None:
    with longshore.serve(lake, port=0, max_sessions=1) as server:
        arguments = [sys.executable, "-c", READING_PARTS, server.url]
        with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "reads\n"
            assert server._core.held > 0  # noqa: SLF001  what clients hold is told to tests alone
            process.kill()
        # There is one session, which the statement has until it ends.
        with client(server, autocommit=True) as connection:
            assert count(connection) == 10
        deadline = time.monotonic() + 20
        while server._core.held and time.monotonic() < deadline:  # noqa: SLF001
            time.sleep(0.05)
        assert server._core.held == 0  # noqa: SLF001


def command(*arguments: str, **options: Any) -> "subprocess.Popen[str]":
    """Start the command."""
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [sys.executable, "-m", "longshore", *arguments], stdin=pipe, stdout=pipe, stderr=pipe, text=True, **options
    )


@pytest.fixture
def start() -> Iterator[Callable[..., "subprocess.Popen[str]"]]:
    """Give a function that starts the command, which is ended with the test."""
    started: list[subprocess.Popen[str]] = []

    def run(*arguments: str) -> "subprocess.Popen[str]":
        started.append(command(*arguments))
        return started[-1]

    yield run
    for each in started:
        each.kill()
        each.communicate()


@pytest.mark.parametrize(("number", "reads"), [(signal.SIGTERM, True), (signal.SIGINT, False)])
def test_the_command_serves_until_a_signal(
    lake: str, start: Any, tmp_path: Path, number: signal.Signals, *, reads: bool
) -> None:
    """A result without an end that is being read ends, too, and not as if it were whole."""
    added = start("users", "add", "ada", "--role", "writer", "--file", str(tmp_path / "users"))
    assert added.communicate("a password\n", timeout=60)[0] == f"ada, a writer, is in {tmp_path}/users\n"
    assert "a password" not in (tmp_path / "users").read_text()
    assert (tmp_path / "users").stat().st_mode & 0o777 == 0o600
    serving = start("serve", lake, "--port", "0", "--users", str(tmp_path / "users"))
    url = json.loads(serving.stdout.readline())["url"]
    flight = fl.FlightClient(url.replace("grpc://", "grpc+tcp://"))
    known = fl.FlightCallOptions(headers=[flight.authenticate_basic_token("ada", "a password")])
    endless = message("CommandStatementQuery", field(1, b"SELECT a.range FROM range(1000000) a, range(1000000) b"))
    if reads:
        info = flight.get_flight_info(fl.FlightDescriptor.for_command(endless), known)
        stream = flight.do_get(info.endpoints[0].ticket, known)
        assert stream.read_chunk().data.num_rows > 0
    serving.send_signal(number)
    _, log = serving.communicate(timeout=60)
    if reads:
        with pytest.raises((fl.FlightError, pa.ArrowException)):
            stream.read_all()
    events = [json.loads(line)["event"] for line in log.splitlines()]
    assert (serving.returncode, events[0], events[-1]) == (0, "started", "stopped")


def test_wide_rows_that_wait_for_their_reader_take_little_memory(lake: str, start: Any) -> None:
    serving = start("serve", lake, "--port", "0")
    url, process = json.loads(serving.stdout.readline())["url"], psutil.Process(serving.pid)
    longshore.read_sql("SELECT 1", url)
    before = process.memory_info().rss
    wide = "SELECT repeat('x', 2000 + i::INT % 7) AS wide FROM range(300_000) AS numbers(i)"
    with longshore.read_sql(wide, url, return_type="arrow_stream") as stream:
        next(iter(stream))
        busy = -1.0
        while busy != (busy := process.cpu_times().user):
            time.sleep(0.2)
        # All rows have 600 MB, and a batch has 33 MB.
        assert process.memory_info().rss - before < 230 << 20


def test_the_log_tells_neither_statements_nor_values(lake: str, start: Any) -> None:
    serving = start("serve", lake, "--port", "0")
    url = json.loads(serving.stdout.readline())["url"]

    class Running:
        pass

    running: Any = Running()
    running.url = url
    with client(running, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT 'a secret' AS word, ? AS other", ("another secret",))
        assert cursor.fetchall() == [("a secret", "another secret")]
    serving.send_signal(signal.SIGTERM)
    _, log = serving.communicate(timeout=60)
    told = [json.loads(line) for line in log.splitlines()]
    assert {"user", "milliseconds", "rows", "status"} <= set(next(line for line in told if line["event"] == "rows"))
    assert "secret" not in log
