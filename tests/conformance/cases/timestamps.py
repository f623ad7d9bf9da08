"""Timestamps: a naive one is the clock on the wall, an instant is a timestamp whatever the session's time zone."""

import datetime as dt

import pyarrow as pa

from tests.conformance.case import Case, Misfit

LAST = 9_224_318_015_999_999_999 - 946_684_800_000_000
#: The last microsecond of the year 294246, and what Arrow's 64 bits hold after it.
ARROW_LAST = 2**63 - 1
MISFITS = (
    Misfit(sql="'infinity'", says="infinity has no Arrow value", option="infinity"),
    Misfit(sql="'-infinity'", says="infinity has no Arrow value", option="infinity"),
    # PostgreSQL counts from 2000, Arrow from 1970: its last thirty years are beyond Arrow's 64 bits.
    Misfit(sql="'294276-12-31 23:59:59.999999'", says="beyond what Arrow's type holds", option="infinity"),
)

CASES = (
    Case(
        type="timestamp",
        arrow=pa.timestamp("us"),
        cells={
            "'1970-01-01'": 0,
            "'1969-12-31 23:59:59.999999'": -1,
            "'9999-12-31 23:59:59.999999'": dt.datetime(9999, 12, 31, 23, 59, 59, 999_999),  # noqa: DTZ001  naive it is
            "'2262-04-12'": dt.datetime(2262, 4, 12),  # noqa: DTZ001
            "'1677-09-21 00:12:43.145224'": dt.datetime(1677, 9, 21, 0, 12, 43, 145_224),  # noqa: DTZ001
            "'4714-11-24 00:00:00 BC'": -210_866_803_200_000_000,
            # A gap in the session's time zone is none in a naive timestamp.
            "'2024-03-31 02:30'": dt.datetime(2024, 3, 31, 2, 30),  # noqa: DTZ001
            "'294247-01-10 04:00:54.775807'": ARROW_LAST,
        },
        misfits=(
            *MISFITS,
            Misfit(sql="'294247-01-10 04:00:54.775808'", says="beyond what Arrow's type holds", option="infinity"),
        ),
    ),
    Case(
        type="timestamptz",
        arrow=pa.timestamp("us", tz="UTC"),
        cells={
            "'1970-01-01 00:00:00+00'": 0,
            "'2024-03-31 02:30:00+02'": dt.datetime(2024, 3, 31, 0, 30, tzinfo=dt.UTC),
            "'9999-12-31 23:59:59.999999+00'": dt.datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=dt.UTC),
            # Amsterdam was 19 minutes and 32 seconds east of Greenwich; the server shows such an offset in full.
            "'1900-01-01 00:00:00+00'": dt.datetime(1900, 1, 1, tzinfo=dt.UTC),
            "'4714-11-24 00:00:00+00 BC'": -210_866_803_200_000_000,
        },
        misfits=MISFITS,
    ),
)
