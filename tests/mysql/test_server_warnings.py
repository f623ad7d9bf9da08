"""The server's own warnings about values reach the caller as a `DataWarning` of each code."""

import contextlib
import socket
import threading
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import longshore
from tests.mysql.relay import relay
from tests.servers import LOOPBACK, MySQLEndpoint

TRUNCATED = "repeat('x', 2000000000)"
PROTOCOLS = pytest.mark.parametrize("protocol", ["binary", "text"])
Tables = Callable[[str], None]


def warned(query: Any, conn: Any, **arguments: Any) -> list[str]:
    """Read; give the texts of the warnings, each of which is of the line that read."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        longshore.read_sql(query, conn, **{"return_type": "arrow", **arguments})
    assert all(warning.category is longshore.DataWarning for warning in caught)
    assert all(warning.filename == __file__ for warning in caught)
    return [str(warning.message) for warning in caught]


@PROTOCOLS
@pytest.mark.parametrize(
    ("query", "code", "word"),
    [
        (f"SELECT {TRUNCATED} AS a", 1301, "max_allowed_packet"),
        ("SELECT 1 / 0 AS a", 1365, "ivision by 0"),
        ("SELECT CAST('12abc' AS SIGNED) AS a", 1292, "12abc"),
        ("SELECT CAST('2024-02-30' AS DATE) AS a", 1292, "2024-02-30"),
        ("SELECT str_to_date('no', '%Y') AS a", 1411, "no"),
    ],
)
def test_each_has_its_code_and_text(query: str, code: int, word: str, protocol: str, url: str) -> None:
    (text,) = warned(query, url, options={"protocol": protocol})
    assert str(code) in text
    assert word in text


def test_one_of_each_code(url: str) -> None:
    rows = " UNION ALL ".join(f"SELECT '{n}x' AS a, {n} AS n" for n in range(100))
    texts = warned(f"SELECT a + 1 AS a, n / 0 AS b FROM ({rows}) AS t", url)
    assert sorted(text.split("(warning ")[1] for text in texts) == ["1292)", "1365)"]


def test_of_every_frame_and_stream(url: str) -> None:
    for return_type in ("pandas", "polars", "numpy"):
        assert len(warned("SELECT 1 / 0 AS a", url, return_type=return_type)) == 1
    assert len(warned("SELECT ? / 0 AS a", url, params=[1])) == 1
    assert len(warned(["SELECT 1 / 0 AS a", "SELECT 2 / 0 AS a"], url)) == 1
    stream = longshore.read_sql("SELECT 1 / 0 AS a", url, return_type="arrow_stream")
    with pytest.warns(longshore.DataWarning, match="1365") as caught:
        assert [batch.num_rows for batch in stream] == [1]
    assert len(caught) == 1


def test_of_parts_once(url: str, tables: Tables, together: dict[str, Any]) -> None:
    tables("CREATE TABLE warned (id int PRIMARY KEY); INSERT INTO warned VALUES (1), (2), (3), (4)")
    query = "SELECT id, id / 0 AS a FROM warned"
    assert len(warned(query, url, partition_on="id", partition_num=2, options=together)) == 1


def test_of_a_procedure(url: str, server: Any) -> None:
    server.sql("CREATE PROCEDURE warned_p() SELECT 1 / 0 AS a")
    try:
        assert len(warned("CALL warned_p()", url)) == 1
    finally:
        server.sql("DROP PROCEDURE warned_p")


def test_a_connection_goes_on(url: str) -> None:
    with longshore.connect(url) as connection:
        assert len(warned("SELECT 1 / 0 AS a", connection)) == 1
        assert warned("SELECT 1 AS a", connection) == []
        longshore.read_sql("SELECT 1 / 0 AS a", connection, return_type="arrow_stream").close()
        assert warned("SELECT 1 AS a", connection) == []


@PROTOCOLS
def test_notes_and_deprecated_words_are_not_of_values(protocol: str, url: str) -> None:
    options = {"protocol": protocol}
    assert warned("EXPLAIN SELECT 1", url, options=options) == []
    assert warned("SELECT SQL_CALC_FOUND_ROWS 1 AS a", url, options=options) == []
    assert warned("SELECT CAST('a' AS CHAR CHARACTER SET utf8) AS a", url, options=options) == []


@pytest.mark.parametrize("is_cut", [False, True])
def test_a_whole_result_outlives_a_failure_to_ask(*, is_cut: bool, server: MySQLEndpoint) -> None:
    def carry(client: socket.socket) -> None:
        with socket.create_connection((LOOPBACK, server.port)) as upstream:
            threading.Thread(target=_carry_back, args=(upstream, client), daemon=True).start()
            while data := client.recv(65536):
                if is_cut and b"SHOW WARNINGS" in data:
                    client.shutdown(socket.SHUT_RDWR)
                    return
                upstream.sendall(data.replace(b"SHOW WARNINGS", b"SHOW WARNINGX"))

    with relay(carry) as port:
        connection = longshore.connect({"url": server.url(), "port": port, "ssl-mode": "DISABLED"}, autocommit=True)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            read = longshore.read_sql("SELECT 1 / 0 AS a", connection, return_type="arrow")
        assert read["a"].to_pylist() == [None]
        if is_cut:
            with pytest.raises(longshore.InterfaceError, match="the connection is closed"):
                longshore.read_sql("SELECT 2 AS a", connection)
        else:
            assert longshore.read_sql("SELECT 2 AS a", connection, return_type="arrow")["a"].to_pylist() == [2]
        connection.close()


def _carry_back(source: socket.socket, client: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            client.sendall(data)


def test_the_next_statement_is_told_of_the_read(url: str) -> None:
    with longshore.connect(url) as connection:
        for first, expected in (("1", []), ("1 / 0", ["1365"])):
            told = warned(f"SELECT {first} AS a UNION ALL SELECT 2 UNION ALL SELECT 3", connection)
            assert [code in text for code, text in zip(expected, told, strict=True)] == [True] * len(expected)
            read = longshore.read_sql("SELECT FOUND_ROWS() AS f, ROW_COUNT() AS r", connection, return_type="arrow")
            assert read.to_pylist() == [{"f": 3, "r": -1}]
