"""Types that no table has declared: those that the server gives to expressions."""

import datetime as dt
from decimal import Decimal

import pyarrow as pa

from tests.conformance.mysql_cases.case import MySQLCase

LEAP = dt.datetime(2024, 2, 29, 1, 2, 3, 500_000)  # noqa: DTZ001  a datetime has no time zone


def _case(name: str, sql: str, value: object, arrow: pa.DataType, native: str | None = None) -> MySQLCase:
    return MySQLCase(type=name, native=native, arrow=arrow, cells={sql: value}, query=f"SELECT {sql}", shown="")


CASES = (
    _case("bigint", "CAST(-9223372036854775807 - 1 AS SIGNED)", -(2**63), pa.int64()),
    _case("bigint unsigned", "18446744073709551615", 2**64 - 1, pa.uint64()),
    _case("decimal", "CAST(1.5 AS DECIMAL(5,2))", Decimal("1.50"), pa.decimal128(5, 2), "decimal(5,2)"),
    # The server computes with more digits than it declares.
    _case(
        "decimal wide",
        "CAST(-0.5 AS DECIMAL(65,30))",
        Decimal("-0.5" + "0" * 29),
        pa.decimal256(76, 30),
        "decimal(65,30)",
    ),
    _case("double", "1e0 / 3", 1 / 3, pa.float64()),
    _case("date", "DATE '2024-02-29'", dt.date(2024, 2, 29), pa.date32()),
    _case("datetime", "TIMESTAMP '2024-02-29 01:02:03.5'", LEAP, pa.timestamp("us")),
    _case("time", "TIME '-838:59:59'", -dt.timedelta(hours=838, minutes=59, seconds=59), pa.duration("us")),
    _case("text", "concat('a', 'ä')", "aä", pa.string(), "varchar(2)"),
    _case("bytes", "unhex('00ff')", b"\x00\xff", pa.binary(), "varbinary(2)"),
)
