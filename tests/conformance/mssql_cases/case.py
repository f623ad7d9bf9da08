"""A case of SQL Server's: a type as the wire declares it, and values that clients must show as they were."""

from dataclasses import dataclass
from typing import Any

from tests.tds.types import Type


@dataclass(frozen=True, kw_only=True)
class MSSQLCase:
    """One type; the values are those of `tests.tds.types`: a date or a time is its text, with all its digits."""

    type: Type
    values: tuple[Any, ...]
    #: The difference from other cases of a type of the same name: a collation, or that it cannot be NULL.
    note: str = ""

    @property
    def nullable(self) -> bool:
        """Whether a column of the type may hold NULL."""
        return self.type.length != "none"

    @property
    def name(self) -> str:
        """The case's name in tests."""
        return f"{self.type.name} {self.note}".strip()
