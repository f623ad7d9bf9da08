"""A case: a declared type, cells as SQL spells them, and the exact values that must arrive."""

from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

Need = Literal["citext", "hstore", "ltree", "postgis", "vector", "xml"]


@dataclass(frozen=True, kw_only=True)
class Misfit:
    """A cell that Arrow cannot hold: an error by default, and NULL where `option` says so."""

    sql: str
    says: str
    #: The key of `options` that turns it into NULL; None where nothing does.
    option: str | None = None


@dataclass(frozen=True, kw_only=True)
class Case:
    """One type and what it becomes.

    The keys of `cells` are SQL expressions, which are cast to the type; the values are what pyarrow shows: raw counts
    for dates and timestamps that Python's own classes cannot hold.
    """

    type: str
    arrow: pa.DataType
    cells: dict[str, Any]
    #: The name in the field's metadata, where it is not `type`.
    native: str | None = None
    #: Arrow's extension name.
    extension: str | None = None
    misfits: tuple[Misfit, ...] = ()
    needs: tuple[Need, ...] = ()
    #: The version of the server from which on the type is there.
    since: int = 0
    #: Statements before the table is made: types of the case's own, which go with the transaction.
    setup: tuple[str, ...] = ()
    #: A query that gives the cells in order, for types that no table can have.
    query: str | None = None
    #: The type's name in the generated reference; "" for a variant that it leaves out.
    shown: str | None = None

    @property
    def title(self) -> str:
        """The type's name in the generated reference."""
        return self.type if self.shown is None else self.shown
