"""Times of day."""

import datetime as dt

import pyarrow as pa

from tests.conformance.case import Case, Misfit

CASES = (
    Case(
        type="time",
        arrow=pa.time64("us"),
        cells={
            "'00:00'": dt.time(0),
            "'07:30'": dt.time(7, 30),
            "'23:59:59.999999'": dt.time(23, 59, 59, 999_999),
            "'00:00:00.000001'": dt.time(0, 0, 0, 1),
        },
        misfits=(Misfit(sql="'24:00'", says="24:00 has no Arrow value", option="time_24"),),
    ),
    Case(
        type="timetz",
        arrow=pa.string(),
        cells={
            "'12:00:00+02'": "12:00:00+02",
            "'24:00:00-15:59:59'": "24:00:00-15:59:59",
            "'00:00:00.000001+00'": "00:00:00.000001+00",
        },
    ),
)
