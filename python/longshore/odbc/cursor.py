"""A statement as PEP 249's cursor, and what drivers need of its text."""

from collections.abc import Sequence
from typing import Any

from longshore import _core, errors
from longshore.odbc.columns import Rows
from longshore.odbc.drivers import Driver
from longshore.odbc.manager import Connection, Description, Statement
from longshore.odbc.parameters import bind, execute_all, rows_of
from longshore.sources.arrow import objects


def by_place(statement: str, params: Sequence[Any]) -> tuple[str, Sequence[Any]]:
    """Give a statement with PostgreSQL's ``$1`` as one with ``?``, and its parameters in that order."""
    found: list[Any] = []

    def place(text: str) -> str:
        number = text.removeprefix("$")
        if text == number or not number.isdecimal() or not 0 < int(number) <= len(params):
            return text
        found.append(params[int(number) - 1])
        return "?"

    pieces = _core.sql_places(statement, "postgresql")
    pieces[1::2] = map(place, pieces[1::2])
    return ("".join(pieces), found) if found else (statement, params)


class Cursor(Statement):
    """A statement, as the sessions of other drivers have PEP 249's cursor."""

    #: How many rows were changed; -1 where that is not known, or there are rows to fetch.
    rowcount = -1

    def __init__(self, connection: Connection, driver: Driver) -> None:
        """Open it."""
        super().__init__(connection, driver)
        self.description: list[Description] = []

    def prepare(self, text: str, params: int | None = None) -> None:
        """Have the driver look at a statement, which has so many parameters; raises ``ProgrammingError`` for others."""
        # PostgreSQL's driver goes on behind a comment, on the same line.
        super().prepare(f"{text}\n" if "--" in text else text)
        if params is not None and (places := self.places) != params:
            raise errors.ProgrammingError(f"the statement has {places} parameters, and params {params}")

    def execute(self, statement: str, params: Sequence[Any] | None = None) -> None:
        """Run a statement."""
        if not params:
            self.run(f"{statement}\n" if "--" in statement else statement)
        else:
            if self.driver.numbers_places:
                statement, params = by_place(statement, params)
            self.prepare(statement, len(params))
            bind(self, rows_of([params]), is_utc=bool(self.driver.zoned))
            self.run()
        self.describe()

    def executemany(self, statement: str, sets: Sequence[Sequence[Any]]) -> int:
        """Run a statement with each set of parameters; gives how many rows all have changed, or -1."""
        self.prepare(statement, len(sets[0]))
        return execute_all(self, rows_of(sets), is_utc=bool(self.driver.zoned))

    def describe(self) -> bool:
        """Look at what has run, or is prepared: whether it has columns."""
        self.description = self.columns()
        if not self.description:
            self.rowcount = self.changed_rows
        return bool(self.description)

    def rows(self, most: int) -> Rows:
        """Give the rows, at most so many in a batch."""
        return Rows(self, self.driver, most)

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Fetch all rows as objects."""
        return objects(self.rows(10_000).batches())

    def close(self) -> None:
        """End it."""
        self.free()
