"""A table that is altered while a query waits for it."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import longshore

__all__ = ["Race", "outcome"]

_WAITING = {
    "postgresql": "SELECT count(*) AS n FROM pg_locks WHERE NOT granted AND relation = 'raced'::regclass",
    "mysql": """
        SELECT count(*) AS n FROM information_schema.processlist
        WHERE db = database() AND state LIKE 'Waiting for table%'
    """,
}
_ROWS = "INSERT INTO raced VALUES (0.1, 'a'), (0.5, 'b'), (0.1, 'c')"
#: The statement that makes 0.1 another number, in each SQL.
_NARROWER = {"postgresql": "ALTER TABLE raced ALTER d TYPE real", "mysql": "ALTER TABLE raced MODIFY d float"}


class Race:
    """A server with the table `raced`, of a double `d` and a text `s`."""

    def __init__(self, url: str, kind: str) -> None:
        """Keep where it is, and whose SQL it speaks."""
        self.url = url
        self.kind = kind
        self.narrower = _NARROWER[kind]

    @contextmanager
    def table(self) -> Iterator[None]:
        """Make the table, for as long."""
        with longshore.connect(self.url, autocommit=True) as owner:
            owner.execute("CREATE TABLE raced (d double precision, s varchar(5))")
            owner.execute(_ROWS)
            yield
            owner.execute("DROP TABLE raced")

    def lost(self, alter: str, run: Callable[[], Any]) -> Any:
        """Run while a statement alters the table: it waits after the catalogue's answer. Give what comes of it."""
        found: list[Any] = []
        runner = threading.Thread(target=lambda: found.append(outcome(run)))
        with self._altering(alter) as waiting:
            runner.start()
            self._until(waiting + 1)
        runner.join()
        return found[0]

    @contextmanager
    def _altering(self, alter: str) -> Iterator[int]:
        """Have the table altered at the end; give how many wait for it until then."""
        with longshore.connect(self.url) as holder:
            if self.kind == "postgresql":
                holder.execute(alter)
                yield 0
                return
            # A statement that defines commits at once here, so it is the one to wait, before the query.
            holder.execute("SELECT * FROM raced")
            definer = threading.Thread(target=self._run, args=(alter,))
            definer.start()
            self._until(1)
            yield 1
        definer.join()

    def _run(self, statement: str) -> None:
        with longshore.connect(self.url, autocommit=True) as connection:
            connection.execute(statement)

    def _until(self, waiting: int) -> None:
        query, end = _WAITING[self.kind], time.monotonic() + 30
        with longshore.connect(self.url, autocommit=True) as connection:
            while longshore.read_sql(query, connection, return_type="arrow")["n"][0].as_py() < waiting:
                assert time.monotonic() < end
                time.sleep(0.01)


def outcome(run: Callable[[], Any]) -> Any:
    """Give what is returned, or raised."""
    try:
        return run()
    except longshore.Error as error:
        return error
