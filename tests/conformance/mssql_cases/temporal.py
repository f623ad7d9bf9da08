"""Dates and times, with as many digits as each type has."""

from tests.conformance.mssql_cases.case import MSSQLCase
from tests.tds.types import DATE, datetime2, datetimeoffset, fixed, simple, time

#: A unit of `datetime` is a 300th of a second, which SQL Server shows as .000, .003 or .007.
_DATETIMES = (
    "1753-01-01 00:00:00.000",
    "1899-12-31 23:59:59.997",
    "1900-01-01 00:00:00.003",
    "1999-12-31 23:59:59.997",
    "2024-02-29 12:34:56.007",
    "2024-02-29 12:34:56.790",
    "9999-12-31 23:59:59.997",
)
_SMALL_DATETIMES = ("1900-01-01 00:00:00", "2024-02-29 12:34:00", "2079-06-06 23:59:00")
_CLOCKS = ("00:00:00.0000001", "12:34:56.1234567", "23:59:59.9999999")
_DAYS = ("0001-01-01", "1582-10-15", "1969-12-31", "2000-02-29", "9999-12-31")


def _with_digits(clock: str, scale: int) -> str:
    return clock[: 9 + scale] if scale else clock[:8]


_TIMES = {scale: tuple(_with_digits(clock, scale) for clock in _CLOCKS) for scale in range(8)}
_STAMPS = {scale: tuple(f"{day} {clock}" for day in _DAYS for clock in _TIMES[scale]) for scale in range(8)}
_OFFSETS = ("+00:00", "+05:30", "-14:00", "+14:00", "-00:01")
#: Whatever the offset, they stay within the calendar, and out of the days that Java's has not.
_INNER = {
    scale: tuple(f"{day} {clock}" for day in ("1600-02-29", "1969-12-31", "2000-02-29") for clock in _TIMES[scale])
    for scale in (0, 3, 6, 7)
}

CASES = (
    MSSQLCase(type=DATE, values=_DAYS),
    *(MSSQLCase(type=time(scale), values=values) for scale, values in _TIMES.items()),
    *(MSSQLCase(type=datetime2(scale), values=values) for scale, values in _STAMPS.items()),
    *(
        MSSQLCase(
            type=datetimeoffset(scale),
            values=(
                *(f"{stamp} {offset}" for stamp in stamps for offset in _OFFSETS),
                f"0001-01-01 {_TIMES[scale][0]} +00:00",
                f"9999-12-31 {_TIMES[scale][-1]} +00:00",
            ),
        )
        for scale, stamps in _INNER.items()
    ),
    MSSQLCase(type=simple("datetime"), values=_DATETIMES),
    MSSQLCase(type=fixed("datetime"), values=_DATETIMES, note="NOT NULL"),
    MSSQLCase(type=simple("smalldatetime"), values=_SMALL_DATETIMES),
    MSSQLCase(type=fixed("smalldatetime"), values=_SMALL_DATETIMES, note="NOT NULL"),
)
