"""A case of MySQL's, and its parts beyond any case."""

from dataclasses import dataclass
from typing import Literal

from tests.conformance.case import Case

Server = Literal["MariaDB", "MySQL"]


@dataclass(frozen=True, kw_only=True)
class MySQLCase(Case):
    """One type of MySQL and MariaDB, and what it becomes; the cells are inserted into a column of the type."""

    #: The only server that has the type.
    only: Server | None = None
    #: Whether the server rounds the values where it sends them as text.
    rounded_in_text: bool = False
