"""The value of an SQL interval."""

from typing import NamedTuple


class Interval(NamedTuple):
    """A span of time in three parts, none of which converts into another.

    A month has no fixed number of days, nor a day of hours, so each part is kept as the database gave it.

    >>> Interval(months=1, days=2, nanoseconds=3_000)
    Interval(months=1, days=2, nanoseconds=3000)
    """

    months: int
    days: int
    nanoseconds: int
