"""Statements: errors by Trino's names, parameters, what a session keeps, and transactions."""

import datetime as dt
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

import longshore
from tests.servers import Trino


def test_an_error_has_the_class_of_its_name(trino: Trino) -> None:
    for query, error, sqlstate in (
        ("SELECT nothing", longshore.ProgrammingError, "42703"),
        ("SELECT * FROM tpch.tiny.nowhere", longshore.ProgrammingError, "42P01"),
        ("SELECT FROM", longshore.ProgrammingError, "42601"),
        ("SELECT 1 / (nationkey - nationkey) FROM tpch.tiny.nation", longshore.DataError, "22012"),
        ("SELECT CAST('x' AS integer)", longshore.DataError, "22018"),
        ("SELECT 1; SELECT 2", longshore.ProgrammingError, "42601"),
    ):
        with pytest.raises(error) as caught:
            longshore.read_sql(query, trino.url())
        assert caught.value.sqlstate == sqlstate


def test_an_error_after_the_first_rows(trino: Trino) -> None:
    query = "SELECT orderkey, 1 / (orderkey - 60000) AS n FROM tpch.tiny.lineitem"
    with pytest.raises(longshore.DataError, match="DIVISION_BY_ZERO"):
        longshore.read_sql(query, trino.url())


LAST = dt.datetime(9999, 12, 31, 23, 59, 59, 999_999)  # noqa: DTZ001  naive
VALUES: list[Any] = [
    *(1, -1, 2**31, -(2**63), 2**64, 1.5, float("inf"), 5e-324),
    *(Decimal("-0.50"), Decimal(10**37), "a'b?:x", "", b"\x00\xff", dt.date(1, 1, 1), dt.time(1, 2, 3, 4)),
    *(LAST, dt.datetime(2020, 1, 1, microsecond=5, tzinfo=dt.UTC), True, None),
    *(UUID(int=7), [1, None], ["a", None]),
]


def test_parameters_arrive_as_they_were(trino: Trino) -> None:
    with longshore.connect(trino.url(), autocommit=True) as connection:
        for value in VALUES:
            query = "SELECT :v AS v, ':v ? x' AS t -- :w ?"
            found: Any = longshore.read_sql(query, connection, params={"v": value}, return_type="arrow")
            assert found.to_pylist() == [{"v": value, "t": ":v ? x"}]
        found = longshore.read_sql("SELECT ? + ? AS n", connection, params=[1, 2])
        assert found["n"].tolist() == [3]
        assert longshore.schema("SELECT ? AS n", connection, params=[1]).names == ["n"]
        wrong: list[Any] = [[1], [1, 2, 3], {"a": 1}]
        for params in wrong:
            with pytest.raises(longshore.ProgrammingError):
                longshore.read_sql("SELECT ? + ?", connection, params=params)
        with pytest.raises(longshore.NotSupportedError, match="38"):
            longshore.read_sql("SELECT ?", connection, params=[10**39])


def test_a_session_keeps_what_is_set(trino: Trino) -> None:
    with longshore.connect(trino.url() + "?query_max_run_time=7m", autocommit=True) as connection:

        def told(name: str) -> str:
            rows: Any = longshore.read_sql(f"SHOW SESSION LIKE '{name}'", connection)
            return str(rows["Value"][0])

        assert told("query_max_run_time") == "7m"
        connection.execute_script("SET SESSION query_max_run_time = '8m'; USE tpch.tiny; -- ;\n")
        assert told("query_max_run_time") == "8m"
        assert longshore.read_sql("SELECT count(*) AS n FROM region", connection)["n"].tolist() == [5]
        connection.execute("RESET SESSION query_max_run_time")
        assert told("query_max_run_time") != "8m"
    with pytest.raises(longshore.ProgrammingError, match="no_such_property"):
        longshore.read_sql("SELECT 1", trino.url() + "?no_such_property=1")


def test_transactions_are_the_servers(trino: Trino) -> None:
    with longshore.connect(trino.url()) as connection:
        assert longshore.read_sql("SELECT 1 AS n", connection)["n"].tolist() == [1]
        assert connection.in_transaction
        with pytest.raises(longshore.NotSupportedError, match="autocommit"):
            connection.execute("CREATE TABLE memory.default.boats (n integer)")
        connection.rollback()
        assert longshore.read_sql("SELECT 1 AS n", connection)["n"].tolist() == [1]
        connection.commit()
        # The server aborts it with a query that is left.
        query = "SELECT orderkey FROM tpch.sf1000.lineitem"
        with longshore.read_sql(query, connection, return_type="arrow_stream", batch_size=1) as stream:
            next(stream)
        with pytest.raises(longshore.OperationalError, match="rolled back"):
            connection.commit()
        assert longshore.read_sql("SELECT 1 AS n", connection)["n"].tolist() == [1]


def test_a_secret_goes_over_no_plain_connection(trino: Trino) -> None:
    for url in (trino.url(password="s3cret"), trino.url() + "?access_token=s3cret"):
        with pytest.raises(longshore.InterfaceError, match="encryption") as caught:
            longshore.read_sql("SELECT 1", url)
        assert "s3cret" not in str(caught.value)
