"""A case of SQLite's, and its parts beyond any case: its columns hold whatever is put into them."""

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from tests.conformance.case import Case


@dataclass(frozen=True, kw_only=True)
class Widened:
    """A column with values that the declared type does not hold, and what the whole of it becomes."""

    cells: dict[str, Any]
    arrow: pa.DataType


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """A type for `schema=`: values that arrive as such, and values that are an error."""

    arrow: pa.DataType
    cells: dict[str, Any] = field(default_factory=dict)
    refused: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class SQLiteCase(Case):
    """One declared type, and what a column of it becomes; a `Misfit` cell is one that no type of the others holds."""

    #: The type of a column without values, where values tell another: what a stream has, which cannot look ahead.
    empty: pa.DataType | None = None
    widened: tuple[Widened, ...] = ()
    wanted: tuple[Wanted, ...] = ()
    #: Whether the table is STRICT, so that SQLite itself refuses what does not fit.
    strict: bool = False

    @property
    def declared(self) -> pa.DataType:
        """The type that is known before the first row."""
        return self.arrow if self.empty is None else self.empty
