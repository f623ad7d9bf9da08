"""date. Zero dates have tests of their own: what becomes of them is decided by an option."""

import datetime as dt

import pyarrow as pa

from tests.conformance.mysql_cases.case import MySQLCase

CASES = (
    MySQLCase(
        type="date",
        arrow=pa.date32(),
        cells={
            "'1970-01-01'": dt.date(1970, 1, 1),
            "'0001-01-01'": dt.date(1, 1, 1),
            # A year zero has a first of January, which the Gregorian calendar counted back has too.
            "'0000-01-01'": -719_528,
            "'1000-01-01'": dt.date(1000, 1, 1),
            "'1900-02-28'": dt.date(1900, 2, 28),
            "'2000-02-29'": dt.date(2000, 2, 29),
            "'2262-04-12'": dt.date(2262, 4, 12),
            "'9999-12-31'": dt.date(9999, 12, 31),
        },
    ),
)
