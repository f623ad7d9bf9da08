"""Oracle through a fake of its driver, and the real driver with a listener that refuses."""

import contextlib
import datetime as dt
import decimal
import re
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import oracledb
import pyarrow as pa
import pytest
from oracledb import errors

import longshore
from longshore.sources.oracle import Session
from tests.contract.conftest import wait
from tests.oracle.conftest import URL, of_one, read
from tests.oracle.engine import Change, Cursor, Engine
from tests.oracle.fake import Database, Info, error
from tests.quirks.oracle import engine_of, on_fake

NUMBER, VARCHAR = oracledb.DB_TYPE_NUMBER, oracledb.DB_TYPE_VARCHAR
UTC = dt.UTC
D = decimal.Decimal
timestamp = dt.datetime.fromisoformat


@pytest.mark.parametrize(
    ("url", "arguments"),
    [
        (URL, {"user": "scott", "password": "tiger", "host": "quay", "port": 1521, "service_name": "harbour"}),
        ("oracle://scott:t%40ger@quay?service_name=a.b", {"password": "t@ger", "service_name": "a.b", "host": "quay"}),
        ("oracle://scott:tiger@quay:1522?sid=ORCL", {"sid": "ORCL", "port": 1522}),
        ("oracle+oracledb://scott:tiger@alias?config_dir=/etc/tns", {"dsn": "alias", "config_dir": "/etc/tns"}),
        ("oracle://scott:tiger@?dsn=(DESCRIPTION%3D(ADDRESS%3D...))", {"dsn": "(DESCRIPTION=(ADDRESS=...))"}),
        (
            "oracle://scott:tiger@alias?wallet_location=/w&wallet_password=rope&ssl_server_dn_match=false",
            {"wallet_location": "/w", "wallet_password": "rope", "ssl_server_dn_match": False, "dsn": "alias"},
        ),
        ("oracle://sys:x@quay/harbour?mode=sysdba&tcp_connect_timeout=2.5", {"mode": oracledb.AUTH_MODE_SYSDBA}),
    ],
)
def test_urls(url: str, arguments: dict[str, Any], database: Database) -> None:
    query = of_one(database, Info("C", NUMBER, 1, 0))
    longshore.read_sql(query, url, return_type="arrow")
    assert arguments.items() <= database.arguments.items()


def test_a_dict_and_a_callable_password(database: Database) -> None:
    query = of_one(database, Info("C", NUMBER, 1, 0))
    conn = {"scheme": "oracle", "dsn": "alias", "user": "scott", "password": lambda: "tiger"}
    longshore.read_sql(query, conn, return_type="arrow")
    assert database.arguments["password"] == "tiger"


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("oracle://scott:tiger@quay/h?servicename=a", "did you mean service_name"),
        ("oracle://scott:tiger@quay/h?events=perhaps", "events is not true or false"),
        ("oracle://scott:tiger@quay:port/h", "port is not a number"),
        ("oracle://scott:tiger@quay/h?mode=tiger", "mode is not one of"),
        ("oracle://", "needs a host"),
    ],
)
def test_what_is_not_an_address(url: str, says: str, database: Database) -> None:
    del database
    with pytest.raises(longshore.InterfaceError, match=says) as caught:
        longshore.read_sql("SELECT 1 FROM dual", url)
    assert "tiger" not in str(caught.value)


def test_no_secret_is_in_an_error(database: Database) -> None:
    query = of_one(database, Info("C", NUMBER, 1, 0))
    database.failures["SELECT"] = error(942, "no scott/tiger here, nor rope or anchor")
    url = "oracle://scott:tiger@?dsn=scott%2Fanchor%40quay%2Fh&wallet_password=rope"
    with pytest.raises(longshore.ProgrammingError, match="ORA-00942") as caught:
        longshore.read_sql(query, url)
    assert not re.search("tiger|rope|anchor", str(caught.value))


# Statements.


def test_parameters(database: Database) -> None:
    with longshore.connect(URL) as connection:
        at = timestamp("2024-01-01 00:00:00.000005")
        connection.execute("INSERT INTO t VALUES (:1, :2)", params=[at, "a"])
        assert database.sizes == [(oracledb.DB_TYPE_TIMESTAMP, None)]
        assert database.arguments["parameters"] == [at, "a"]
        connection.execute("INSERT INTO t VALUES (:at, :b)", params={"at": at, "b": 1})
        assert database.sizes[1:] == [{"at": oracledb.DB_TYPE_TIMESTAMP, "b": None}]
        with pytest.raises(longshore.DataError, match="empty text is NULL"):
            connection.execute("INSERT INTO t VALUES (:1)", params=[""])
        with pytest.raises(longshore.NotSupportedError, match="drop the time zone"):
            connection.execute("INSERT INTO t VALUES (:1)", params=[dt.datetime(2024, 1, 1, tzinfo=UTC)])


def test_parameters_of_a_query_are_bound_as_they_are(database: Database) -> None:
    query = of_one(database, Info("C", NUMBER, 9, 0), D(1))
    at = timestamp("2024-01-01 00:00:00.000005")
    read(query, params={"at": at, "far": 1e200, "near": 0.5})
    found = database.arguments["parameters"]
    assert (found["at"].kind, found["at"].value) == (oracledb.DB_TYPE_TIMESTAMP, at)
    assert (found["far"].kind, found["far"].value) == (oracledb.DB_TYPE_BINARY_DOUBLE, 1e200)
    assert found["near"] == 0.5


def test_an_integer_beyond_64_bits_is_an_error_that_names_its_row(database: Database) -> None:
    with pytest.raises(longshore.DataError, match="64 bits does not hold it") as caught:
        read(of_one(database, Info("C", NUMBER, 19, 0), D(1), D(2**63)))
    assert (caught.value.column, caught.value.row) == ("C", 1)


def test_a_float_that_a_number_does_not_hold_is_bound_as_a_double(database: Database) -> None:
    with longshore.connect(URL) as connection:
        for value in (1e126, -1e300, 1e-200, float("inf"), float("nan"), -0.0):
            connection.execute("INSERT INTO t VALUES (:1, :2)", params=[value, 0.1])
    assert database.sizes == [(oracledb.DB_TYPE_BINARY_DOUBLE, None)] * 6


def test_many_sets_of_parameters_go_at_once(database: Database) -> None:
    at = timestamp("2024-01-01 00:00:00")
    with longshore.connect(URL) as connection:
        cursor = connection.cursor()
        cursor.executemany("INSERT INTO t VALUES (:1, :2)", [[at, 1], [at.replace(microsecond=5), None]])
        assert cursor.rowcount == 2
        assert database.written == [
            ("INSERT INTO t VALUES (:1, :2)", [[at, 1], [at.replace(microsecond=5), None]]),
        ]
        assert database.sizes == [(oracledb.DB_TYPE_TIMESTAMP, None)]
        # Those that a NUMBER does not hold are doubles, and would make all the others so.
        cursor.executemany("INSERT INTO t VALUES (:1)", [[0.1], [-0.0]])
        assert (len(database.written), database.log[1:]) == (1, ["INSERT INTO t VALUES (:1)"] * 2)
        database.log[1:] = []
        # The driver takes one type for a parameter.
        cursor.executemany("INSERT INTO t VALUES (:1)", [[1], ["a"]])
        assert len(database.written) == 1
        assert database.log[1:] == ["INSERT INTO t VALUES (:1)"] * 2
        with pytest.raises(longshore.DataError, match="empty text is NULL"):
            cursor.executemany("INSERT INTO t VALUES (:1)", [["a"], [""]])


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (942, longshore.ProgrammingError),
        (904, longshore.ProgrammingError),
        (1722, longshore.DataError),
        (12899, longshore.DataError),
        (600, longshore.DatabaseError),
    ],
)
def test_errors_keep_oracles_number(number: int, kind: type[Exception], database: Database) -> None:
    query = of_one(database, Info("C", NUMBER, 1, 0))
    database.failures["SELECT"] = error(number, "so it is")
    with pytest.raises(kind, match=f"ORA-{number:05}: so it is"):
        read(query)


def test_an_error_after_the_first_rows_is_no_short_result(database: Database) -> None:
    query = of_one(database, Info("C", NUMBER, 9, 0), *map(D, range(10)))
    database.later = error(1555, "snapshot too old", oracledb.OperationalError)
    with pytest.raises(longshore.OperationalError, match="ORA-01555"):
        list(longshore.read_sql(query, URL, return_type="arrow_stream", batch_size=4))


def test_a_deadline_cancels(database: Database) -> None:
    query = of_one(database, Info("C", NUMBER, 9, 0), D(1))
    database.waits = True
    with pytest.raises(longshore.TimeoutError):
        read(query, timeout=1)
    assert database.cancelled.wait(10)


def test_what_makes_and_drops_a_table_is_not_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    connection = Engine().connect()
    session, run, cancels = Session(connection, {}), connection.change, list[threading.Thread]()

    def change(each: Change) -> int:
        cancels.append(threading.Thread(target=session.cancel))
        cancels[-1].start()
        # Were it let through, it would end now.
        cancels[-1].join(0.05)
        assert cancels[-1].is_alive()
        return run(each)

    monkeypatch.setattr(connection, "change", change)
    columns = pa.table({"n": [1]})
    loader = session.load(schema=None, table="t", columns=columns, required=[], if_exists="fail", key=[], types={})
    loader.abort()
    assert len(cancels) == 2
    for each in cancels:
        each.join()
    session.close()


def test_a_write_is_undone_once_the_driver_stops(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, stops = threading.Event(), threading.Event()

    def stubborn(_cursor: Cursor, _statement: str, _rows: Any) -> None:
        begun.set()
        assert stops.wait(30)
        raise error(1013, "user requested cancel of current operation")

    with on_fake(request, tmp_path) as url:
        monkeypatch.setattr(Cursor, "executemany", stubborn)
        tenths = 2
        while not begun.is_set():
            tenths *= 2
            with pytest.raises(longshore.TimeoutError):
                longshore.write_sql({"n": [1]}, f"left_{tenths}", url, timeout=tenths / 10)
        tables = f"SELECT count(*) FROM duckdb_tables() WHERE table_name = 'LEFT_{tenths}'"
        count = engine_of(url).database.cursor().execute
        assert count(tables).fetchall() == [(1,)]
        stops.set()
        wait(lambda: count(tables).fetchall() == [(0,)])


def test_transactions(database: Database) -> None:
    query = of_one(database, Info("C", NUMBER, 9, 0), D(1))
    with longshore.connect(URL) as connection:
        connection.execute("BEGIN")
        connection.execute("INSERT INTO t VALUES (1)")
        database.failures["boom"] = error(942, "no")
        with pytest.raises(longshore.ProgrammingError):
            connection.execute("INSERT INTO boom VALUES (1)")
        connection.execute("COMMIT")
        assert database.log == ["INSERT INTO t VALUES (1)", "INSERT INTO boom VALUES (1)", "COMMIT"]
        assert connection.execute(query) == 1
    database.log.clear()
    longshore.read_sql([query, query], URL, return_type="arrow")
    assert database.log[:3] == ["SET TRANSACTION READ ONLY", query, query]


def test_a_query_of_more_than_a_table_is_not_split(database: Database) -> None:
    query = of_one(database, Info("C", NUMBER, 9, 0), D(1))
    database.queries[f"{query}, u"] = database.queries[query]
    with pytest.warns(longshore.SerialReadWarning, match="not a plain SELECT from one table"):
        read(f"{query}, u", partition_num=2)


@pytest.mark.parametrize("number", [1466, 1555, 8180, 8181])
def test_a_snapshot_that_is_gone(database: Database, number: int) -> None:
    query = of_one(database, Info("C", NUMBER, 9, 0), D(1))
    database.failures[query] = error(number, "snapshot too old")
    with pytest.raises(longshore.OperationalError, match=rf"ORA-0{number}(.|\n)*read again; UNDO_RETENTION"):
        read(query)


def test_parameters_that_do_not_match_are_the_callers(database: Database) -> None:
    query = of_one(database, Info("C", NUMBER, 1, 0))
    found = errors._create_err(errors.ERR_MISSING_BIND_VALUE, name="1")  # noqa: SLF001  the driver's own
    database.failures["SELECT"] = found.exc_type(found)
    with pytest.raises(longshore.ProgrammingError, match="DPY-4010"):
        read(query)


# The real driver.


@contextlib.contextmanager
def refusing(number: int) -> Iterator[tuple[int, threading.Event]]:
    """Give the port of a listener that answers with TNS's packet REFUSE, and what it waits for before it does."""
    may_answer = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            with contextlib.suppress(OSError):
                while True:
                    client, _ = server.accept()
                    with client:
                        client.recv(4096)
                        may_answer.wait(30)
                        reason = f"(DESCRIPTION=(ERR={number})(ERROR_STACK=(ERROR=(CODE={number})(EMFI=4))))".encode()
                        body = bytes([4, 0]) + len(reason).to_bytes(2, "big") + reason
                        client.sendall((len(body) + 8).to_bytes(2, "big") + bytes([0, 0, 4, 0, 0, 0]) + body)
                        # The driver has closed its end.
                        client.recv(1)

        thread = threading.Thread(target=answer)
        thread.start()
        try:
            yield server.getsockname()[1], may_answer
        finally:
            may_answer.set()
            server.shutdown(socket.SHUT_RDWR)
            thread.join(30)


@pytest.mark.parametrize(
    ("number", "query", "says"),
    [
        (12514, "/harbour", 'Service "harbour" is not registered'),
        (12505, "?sid=ORCL", 'SID "ORCL" is not registered'),
        (12516, "/harbour", "Listener refused connection"),
    ],
)
def test_a_listener_refuses_the_real_driver(number: int, query: str, says: str) -> None:
    with refusing(number) as (port, may_answer):
        may_answer.set()
        with pytest.raises(longshore.OperationalError, match=says) as caught:
            longshore.read_sql("SELECT 1 FROM dual", f"oracle://scott:tiger@127.0.0.1:{port}{query}")
    assert f"ORA-{number}" in str(caught.value)
    assert "tiger" not in str(caught.value)
    assert (number == 12514) == ("?sid=" in (caught.value.hint or ""))


def test_the_real_driver_without_a_listener() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(longshore.OperationalError, match="cannot connect"):
        longshore.read_sql("SELECT 1 FROM dual", f"oracle://scott:tiger@127.0.0.1:{port}/harbour")
    with pytest.raises(longshore.DatabaseError, match="no configuration directory"):
        longshore.read_sql("SELECT 1 FROM dual", "oracle://scott:tiger@nowhere")


def test_a_listener_that_says_nothing_ends_at_the_deadline() -> None:
    with refusing(12516) as (port, _), pytest.raises(longshore.TimeoutError):
        longshore.read_sql("SELECT 1 FROM dual", f"oracle://scott:tiger@127.0.0.1:{port}/harbour", timeout=0.3)


def test_a_table_by_its_name_in_sql(database: Database) -> None:
    info = [Info("ID", NUMBER, precision=9, scale=0), Info("SHIP", VARCHAR)]
    database.failures = {'FROM "boats"': error(942, "table or view does not exist")}
    database.queries['SELECT * FROM "BOATS" WHERE 1 = 0'] = (info, [])
    read = """SELECT "ID", "SHIP" FROM "BOATS" WHERE ("ID" > 1) AND ("SHIP" = 'Ada')"""
    database.queries[read] = (info, [(D(2), "Ada")])
    query = "SELECT id, ship FROM harbour.boats WHERE id > 1 AND ship = 'Ada'"
    found = longshore.sql(query, attach={"harbour": URL}, return_type="arrow").to_pylist()
    assert found == [{"ID": 2, "SHIP": "Ada"}]
