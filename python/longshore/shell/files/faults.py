"""Values that a format cannot say: found in a column of a batch, told with their place in the whole."""

import contextlib
from collections.abc import Iterator

from longshore.errors import DataError

__all__ = ["FaultError", "placed"]


class FaultError(Exception):
    """A value that has no form, by its index in the array."""

    def __init__(self, index: int, problem: str, hint: str) -> None:
        """Keep where, what, and what to do."""
        super().__init__(problem)
        self.index = index
        self.problem = problem
        self.hint = hint


@contextlib.contextmanager
def placed(column: str, first: int) -> Iterator[None]:
    """Make a ``DataError`` of a fault in a batch whose first row has the number ``first``."""
    try:
        yield
    except FaultError as fault:
        row = first + fault.index
        message = f'column "{column}", row {row}: {fault.problem}\nHint: {fault.hint}'
        raise DataError(message, column=column, row=row, hint=fault.hint) from fault
