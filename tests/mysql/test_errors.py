"""The parts of a failure: its class, its SQLSTATE and code, its place."""

from typing import Any

import pyarrow as pa
import pytest

import longshore
from tests.mysql.reading import numbers, table
from tests.servers import MySQLEndpoint


@pytest.mark.parametrize("protocol", ["binary", "text"])
@pytest.mark.parametrize(
    ("query", "kind", "sqlstate", "code"),
    [
        ("SELEC 1", longshore.ProgrammingError, "42000", 1064),
        ("SELECT * FROM nowhere", longshore.ProgrammingError, "42S02", 1146),
        ("SELECT * FROM nowhere.nowhere", longshore.ProgrammingError, None, None),
        ("SELECT nothing FROM (SELECT 1 AS one) AS t", longshore.ProgrammingError, "42S22", 1054),
        ("SELECT no_such_function(1)", longshore.ProgrammingError, "42000", 1305),
        ("SELECT (SELECT 1 UNION SELECT 2)", longshore.DataError, "21000", 1242),
        ("SELECT 9223372036854775807 + 1", longshore.DataError, "22003", 1690),
        ("SELECT exp(1000)", longshore.DataError, "22003", 1690),
    ],
)
def test_the_class_is_that_of_the_sqlstate(  # noqa: PLR0917  a table
    query: str, kind: type[longshore.Error], sqlstate: str | None, code: int | None, protocol: str, url: str
) -> None:
    with pytest.raises(longshore.DatabaseError) as caught:
        table(query, url, options={"protocol": protocol})
    assert type(caught.value) is kind
    if sqlstate:
        assert caught.value.sqlstate == sqlstate
        assert f"[SQLSTATE {sqlstate}]" in str(caught.value)
        assert str(code) in str(caught.value)


@pytest.mark.parametrize("protocol", ["binary", "text"])
@pytest.mark.parametrize("return_type", ["pandas", "arrow", "polars", "numpy"])
def test_an_error_in_the_middle_of_a_result(return_type: Any, protocol: str, url: str) -> None:
    # The rows before it have been sent already.
    query = f"""{numbers(20_000)}
        SELECT i, repeat('x', 100) AS t, (SELECT 1 UNION SELECT if(numbers.i = 15000, 2, 1)) AS s FROM numbers"""
    with pytest.raises(longshore.DatabaseError, match="1242"):
        longshore.read_sql(query, url, return_type=return_type, options={"protocol": protocol})


def test_an_error_in_the_middle_of_a_stream(url: str) -> None:
    query = f"""{numbers(20_000)}
        SELECT i, repeat('x', 100) AS t, (SELECT 1 UNION SELECT if(numbers.i = 15000, 2, 1)) AS s FROM numbers"""
    stream = longshore.read_sql(query, url, return_type="arrow_stream", batch_size=100)
    with pytest.raises((pa.ArrowException, OSError), match="1242"):
        pa.RecordBatchReader.from_stream(stream).read_all()


@pytest.mark.parametrize("return_type", ["pandas", "arrow", "polars", "numpy"])
@pytest.mark.parametrize("protocol", ["binary", "text"])
def test_a_values_place(return_type: Any, protocol: str, url: str) -> None:
    query = f"""{numbers(99_000)}
        SELECT 1 AS a, CAST(if(i = 70000, '2025-01-00', '2025-01-01') AS CHAR) AS b FROM numbers ORDER BY i"""
    with pytest.raises(longshore.DataError) as caught:
        longshore.read_sql(
            query, url, return_type=return_type, schema={"b": "date32[day]"}, options={"protocol": protocol}
        )
    assert (caught.value.column, caught.value.row) == ("b", 70_000)


def test_a_packet_that_is_too_large_for_the_server(server: MySQLEndpoint) -> None:
    ((limit,),) = server.sql("SELECT @@global.max_allowed_packet")
    server.sql("SET GLOBAL max_allowed_packet = 1048576")
    try:
        with pytest.raises(longshore.DatabaseError) as caught:
            table(f"SELECT '{'x' * 2_000_000}' AS t", server.url())
        assert "max_allowed_packet" in str(caught.value) + (caught.value.hint or "")
    finally:
        server.sql(f"SET GLOBAL max_allowed_packet = {limit}")


def test_no_local_file_is_read(url: str) -> None:
    with longshore.connect(url) as connection:
        connection.execute("CREATE TEMPORARY TABLE z (t text)")
        with pytest.raises(longshore.Error) as caught:
            connection.execute("LOAD DATA LOCAL INFILE '/etc/hostname' INTO TABLE z")
        assert caught.value.hint
