"""What the sessions of drivers share: the state of the transaction, and failures."""

import contextlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Literal

from longshore.errors import Error, OperationalError


class DriverSession:
    """One connection of a driver, which says how its errors are translated and how a transaction begins and ends."""

    transaction: Literal["none", "open", "failed"] = "none"

    def translated(self) -> AbstractContextManager[None]:
        """Raise Longshore's exceptions for the driver's."""
        raise NotImplementedError

    def _begin(self) -> None:
        raise NotImplementedError

    def _end(self, how: Literal["commit", "rollback"]) -> None:
        raise NotImplementedError

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Call the driver."""
        try:
            with self.translated():
                yield
        except Error:
            self.fail()
            raise

    def fail(self) -> None:
        """Note that a statement has failed: its transaction can only be undone."""
        self.transaction = "failed" if self.transaction == "open" else self.transaction

    def begin(self) -> None:
        """Begin a transaction."""
        with self.running():
            self._begin()
        self.transaction = "open"

    def commit(self) -> None:
        """End it; one in which a statement has failed is undone."""
        failed = self.transaction == "failed"
        with self.running():
            self._end("rollback" if failed else "commit")
        self.transaction = "none"
        if failed:
            message = "a statement of the transaction has failed: it was rolled back"
            raise OperationalError(message)

    def rollback(self) -> None:
        """Undo it."""
        with self.running():
            self._end("rollback")
        self.transaction = "none"
