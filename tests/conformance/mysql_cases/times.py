"""time: a span of up to 838 hours, with a sign."""

import datetime as dt

import pyarrow as pa

from tests.conformance.mysql_cases.case import MySQLCase

LONGEST = dt.timedelta(hours=838, minutes=59, seconds=59)
MICROSECOND = dt.timedelta(microseconds=1)

CASES = (
    MySQLCase(
        type="time",
        arrow=pa.duration("us"),
        cells={
            "'00:00:00'": dt.timedelta(0),
            "'-00:00:01'": dt.timedelta(seconds=-1),
            "'24:00:00'": dt.timedelta(hours=24),
            "'-24:00:01'": dt.timedelta(hours=-24, seconds=-1),
            "'838:59:59'": LONGEST,
            "'-838:59:59'": -LONGEST,
        },
    ),
    MySQLCase(
        type="time(6)",
        arrow=pa.duration("us"),
        cells={
            "'00:00:00'": dt.timedelta(0),
            "'-00:00:00.000001'": -MICROSECOND,
            "'12:34:56.789012'": dt.timedelta(hours=12, minutes=34, seconds=56, microseconds=789_012),
            "'-837:59:59.999999'": -dt.timedelta(hours=838) + MICROSECOND,
            "'838:59:59'": LONGEST,
        },
    ),
    MySQLCase(
        type="time(1)",
        arrow=pa.duration("us"),
        cells={"'-01:02:03.5'": -dt.timedelta(hours=1, minutes=2, seconds=3, milliseconds=500)},
        shown="",
    ),
)
