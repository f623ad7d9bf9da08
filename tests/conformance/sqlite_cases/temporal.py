"""Dates and times, in each of the forms that SQLite's own functions take: texts, Unix seconds, Julian days."""

import datetime as dt

import pyarrow as pa

from tests.conformance.sqlite_cases.case import SQLiteCase, Wanted, Widened

US = pa.timestamp("us")
UTC = pa.timestamp("us", "UTC")


def _at(*parts: int) -> dt.datetime:
    return dt.datetime(*parts)  # type: ignore[arg-type]  # noqa: DTZ001  it has no time zone


DATES = SQLiteCase(
    type="DATE",
    arrow=pa.date32(),
    cells={
        "'1970-01-01'": dt.date(1970, 1, 1),
        "'0001-01-01'": dt.date(1, 1, 1),
        # A year that Python has not: days since 1970.
        "'0000-02-29'": -719469,
        "'2024-02-29'": dt.date(2024, 2, 29),
        "'2262-04-12'": dt.date(2262, 4, 12),
        "'9999-12-31'": dt.date(9999, 12, 31),
        # Unix seconds and a Julian day, both midnight.
        "86400": dt.date(1970, 1, 2),
        "2440588.5": dt.date(1970, 1, 2),
    },
    widened=(
        Widened(cells={"'2024-02-29'": _at(2024, 2, 29), "'2024-03-01 12:00'": _at(2024, 3, 1, 12)}, arrow=US),
        Widened(cells={"86401": _at(1970, 1, 2, 0, 0, 1)}, arrow=US),
        Widened(cells={"'2024-02-29'": "2024-02-29", "'2024-02-30'": "2024-02-30"}, arrow=pa.string()),
        Widened(cells={"'2024-02-29'": "2024-02-29", "'soon'": "soon", "1": "1"}, arrow=pa.string()),
        Widened(cells={"''": ""}, arrow=pa.string()),
    ),
    wanted=(
        Wanted(arrow=US, cells={"'2024-02-29'": _at(2024, 2, 29), "0": _at(1970, 1, 1)}, refused=("'soon'",)),
        Wanted(arrow=pa.date32(), cells={"86400": dt.date(1970, 1, 2)}, refused=("86401", "'2024-02-30'", "''")),
        Wanted(arrow=pa.string(), cells={"'2024-02-29'": "2024-02-29", "'2024-2-9'": "2024-2-9", "0": "0"}),
    ),
)

TIMESTAMPS = SQLiteCase(
    type="TIMESTAMP",
    arrow=US,
    cells={
        "'1970-01-01 00:00:00'": _at(1970, 1, 1),
        "'1969-12-31 23:59:59.999999'": _at(1969, 12, 31, 23, 59, 59, 999_999),
        "'2024-01-01T10:00'": _at(2024, 1, 1, 10),
        "'2024-01-01 10:00:00.5'": _at(2024, 1, 1, 10, 0, 0, 500_000),
        "'2024-01-01 10:00:00.123456000'": _at(2024, 1, 1, 10, 0, 0, 123_456),
        "'2024-02-29'": _at(2024, 2, 29),
        "'2262-04-12 00:00:00'": _at(2262, 4, 12),
        "'9999-12-31 23:59:59.999999'": _at(9999, 12, 31, 23, 59, 59, 999_999),
        # Unix seconds, also before 1970; and a Julian day.
        "0": _at(1970, 1, 1),
        "-1": _at(1969, 12, 31, 23, 59, 59),
        "2440587.5": _at(1970, 1, 1),
    },
    widened=(
        Widened(cells={"'2024-01-01 10:00:00Z'": _at(2024, 1, 1, 10)}, arrow=UTC),
        Widened(
            cells={"'2024-01-01 10:00:00+05:30'": _at(2024, 1, 1, 4, 30), "'2024-01-01 10:00Z'": _at(2024, 1, 1, 10)},
            arrow=UTC,
        ),
        Widened(
            cells={"'2024-01-01 10:00:00Z'": "2024-01-01 10:00:00Z", "'2024-01-01'": "2024-01-01"}, arrow=pa.string()
        ),
        Widened(cells={"'2024-01-01 10:00:00.1234567'": "2024-01-01 10:00:00.1234567"}, arrow=pa.string()),
        Widened(
            cells={"'2024-01-01 10:00:00.5'": "2024-01-01 10:00:00.5", "'no'": "no", "1.5": "1.5"}, arrow=pa.string()
        ),
        Widened(cells={"'10:00'": "10:00"}, arrow=pa.string()),
        # Milliseconds are beyond SQLite's own seconds.
        Widened(cells={"1700000000000": "1700000000000"}, arrow=pa.string()),
    ),
    wanted=(
        # Seconds since 1970.
        Wanted(
            arrow=pa.timestamp("s"), cells={"'2024-01-01T10:00'": 1_704_103_200}, refused=("'2024-01-01 10:00:00.5'",)
        ),
        Wanted(
            arrow=UTC, cells={"'2024-01-01 10:00'": _at(2024, 1, 1, 10), "'2024-01-01 10:00+01:00'": _at(2024, 1, 1, 9)}
        ),
        Wanted(arrow=US, cells={"'2024-01-01'": _at(2024, 1, 1)}, refused=("'2024-01-01 10:00Z'", "1700000000000")),
        Wanted(arrow=pa.int64(), cells={"1700000000000": 1_700_000_000_000}, refused=("'2024-01-01'",)),
    ),
)

INSTANTS = SQLiteCase(
    type="TIMESTAMPTZ",
    arrow=UTC,
    cells={
        # Without a zone it is UTC, as SQLite's own functions have it.
        "'2024-01-01 10:00'": _at(2024, 1, 1, 10),
        "'2024-01-01 10:00:00'": _at(2024, 1, 1, 10),
        "'2024-01-01 10:00:00Z'": _at(2024, 1, 1, 10),
        "'2024-01-01T10:00:00.000001+01:00'": _at(2024, 1, 1, 9, 0, 0, 1),
        "'2024-01-01 00:30:00-05:30'": _at(2024, 1, 1, 6),
        "0": _at(1970, 1, 1),
    },
    widened=(
        Widened(
            cells={
                "'2024-01-01 10:00Z'": "2024-01-01 10:00Z",
                "'2024-01-01 10:00+25:00'": "2024-01-01 10:00+25:00",
            },
            arrow=pa.string(),
        ),
    ),
)

TIMES = SQLiteCase(
    type="TIME",
    arrow=pa.time64("us"),
    cells={
        "'00:00'": dt.time(0),
        "'10:00:00'": dt.time(10),
        "'23:59:59.5'": dt.time(23, 59, 59, 500_000),
        "'23:59:59.999999'": dt.time(23, 59, 59, 999_999),
    },
    widened=(
        Widened(cells={"'10:00'": "10:00", "'24:00'": "24:00"}, arrow=pa.string()),
        Widened(cells={"'10:00Z'": "10:00Z"}, arrow=pa.string()),
        # SQLite's own function would take it for a Julian day.
        Widened(cells={"36000": "36000"}, arrow=pa.string()),
    ),
    wanted=(Wanted(arrow=pa.time64("ns"), cells={"'10:00'": 36_000 * 10**9}, refused=("'24:00'", "0")),),
)

CASES = (
    DATES,
    SQLiteCase(type="DATETIME", arrow=US, cells=TIMESTAMPS.cells),
    TIMESTAMPS,
    *(
        SQLiteCase(type=name, arrow=US, cells=TIMESTAMPS.cells, shown="")
        for name in ("TIMESTAMP(6)", "TIMESTAMP WITHOUT TIME ZONE", "datetime(3)")
    ),
    INSTANTS,
    *(
        SQLiteCase(type=name, arrow=UTC, cells=INSTANTS.cells, shown="")
        for name in ("TIMESTAMP WITH TIME ZONE", "DATETIMEOFFSET")
    ),
    TIMES,
)
