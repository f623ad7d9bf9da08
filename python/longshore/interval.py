"""The value of an SQL interval."""

from dataclasses import dataclass


@dataclass(frozen=True, order=True, slots=True)
class Interval:
    """A span of time in three parts, none of which converts into another.

    A month has no fixed number of days, nor a day of hours, so each part is kept as the database gave it. Its text is
    that of PostgreSQL.

    >>> Interval(months=1, days=2, nanoseconds=3_000)
    Interval(months=1, days=2, nanoseconds=3000)
    >>> print(Interval(months=1, days=2, nanoseconds=3_000))
    1 mon 2 days 00:00:00.000003
    """

    # Not a tuple: pandas would show the three numbers without their names, and compare each with a row.
    months: int
    days: int
    nanoseconds: int

    def __str__(self) -> str:
        """Give the parts that are not zero, the last as hours, minutes and seconds."""
        counts = ((self.months, "mon"), (self.days, "day"))
        parts = [f"{count} {unit}{'' if count == 1 else 's'}" for count, unit in counts if count]
        if self.nanoseconds or not parts:
            seconds, fraction = divmod(abs(self.nanoseconds), 1_000_000_000)
            minutes, seconds = divmod(seconds, 60)
            time = f"{minutes // 60:02}:{minutes % 60:02}:{seconds:02}"
            digits = f".{fraction:09}".rstrip("0") if fraction else ""
            parts.append(f"{'-' if self.nanoseconds < 0 else ''}{time}{digits}")
        return " ".join(parts)
