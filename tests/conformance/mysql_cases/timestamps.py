"""datetime is naive; timestamp is an instant."""

import datetime as dt

import pyarrow as pa

from tests.conformance.mysql_cases.case import MySQLCase

UTC = dt.UTC


def _naive(*parts: int) -> dt.datetime:
    return dt.datetime(*parts)  # type: ignore[arg-type]  # noqa: DTZ001  it has no time zone


CASES = (
    MySQLCase(
        type="datetime",
        arrow=pa.timestamp("us"),
        cells={
            "'1970-01-01 00:00:00'": _naive(1970, 1, 1),
            "'0001-01-01 00:00:00'": _naive(1, 1, 1),
            "'1000-01-01 12:34:56'": _naive(1000, 1, 1, 12, 34, 56),
            "'2262-04-12 00:00:00'": _naive(2262, 4, 12),
            "'9999-12-31 23:59:59'": _naive(9999, 12, 31, 23, 59, 59),
        },
    ),
    MySQLCase(
        type="datetime(6)",
        arrow=pa.timestamp("us"),
        cells={
            "'1969-12-31 23:59:59.999999'": _naive(1969, 12, 31, 23, 59, 59, 999_999),
            "'2024-02-29 00:00:00.000001'": _naive(2024, 2, 29, 0, 0, 0, 1),
            "'2024-02-29 00:00:00'": _naive(2024, 2, 29),
            "'9999-12-31 23:59:59.999999'": _naive(9999, 12, 31, 23, 59, 59, 999_999),
        },
    ),
    MySQLCase(
        type="datetime(3)",
        arrow=pa.timestamp("us"),
        cells={"'2024-02-29 01:02:03.004'": _naive(2024, 2, 29, 1, 2, 3, 4000)},
        shown="",
    ),
    MySQLCase(
        type="timestamp",
        arrow=pa.timestamp("us", "UTC"),
        cells={
            "'1970-01-01 00:00:01'": dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC),
            # In many places a clock showed this twice, or not at all.
            "'2024-03-31 02:30:00'": dt.datetime(2024, 3, 31, 2, 30, tzinfo=UTC),
            "'2024-10-27 02:30:00'": dt.datetime(2024, 10, 27, 2, 30, tzinfo=UTC),
            "'2038-01-19 03:14:07'": dt.datetime(2038, 1, 19, 3, 14, 7, tzinfo=UTC),
        },
    ),
    MySQLCase(
        type="timestamp(6)",
        arrow=pa.timestamp("us", "UTC"),
        cells={
            "'1970-01-01 00:00:01.000001'": dt.datetime(1970, 1, 1, 0, 0, 1, 1, tzinfo=UTC),
            "'2024-02-29 23:59:59.999999'": dt.datetime(2024, 2, 29, 23, 59, 59, 999_999, tzinfo=UTC),
        },
    ),
)
