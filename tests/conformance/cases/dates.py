"""date, from the first to the last."""

import datetime as dt

import pyarrow as pa

from tests.conformance.case import Case, Misfit

DATES = {
    "'1970-01-01'": 0,
    "'0001-01-01'": dt.date(1, 1, 1),
    "'0001-12-31 BC'": -719_163,
    "'4714-11-24 BC'": -2_440_588,
    "'1900-02-28'": dt.date(1900, 2, 28),
    "'2262-04-12'": dt.date(2262, 4, 12),
    "'9999-12-31'": dt.date(9999, 12, 31),
    "'5874897-12-31'": 2_145_042_905,
}

CASES = (
    Case(
        type="date",
        arrow=pa.date32(),
        cells=DATES,
        misfits=(
            Misfit(sql="'infinity'", says="infinity has no Arrow value", option="infinity"),
            Misfit(sql="'-infinity'", says="infinity has no Arrow value", option="infinity"),
        ),
    ),
)
