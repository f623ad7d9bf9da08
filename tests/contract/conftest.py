"""A database of every source, and tables that go with their test."""

import contextlib
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

import longshore
from tests.quirks import SOURCES, Quirks


@dataclass(frozen=True)
class Database:
    """A place for tables, and the quirks of the source that has it."""

    quirks: Quirks
    url: str

    @property
    def source(self) -> str:
        """The source's name."""
        return self.quirks.source

    def execute(self, *statements: str) -> None:
        """Run statements, each a transaction of its own."""
        with longshore.connect(self.url, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)

    def rows(self, query: str | list[str], conn: Any = None, **arguments: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a query, or of a table by the order of its first column."""
        if isinstance(query, str) and " " not in query:
            query = f"SELECT * FROM {query} ORDER BY 1"
        table: Any = longshore.read_sql(query, conn or self.url, return_type="arrow", **arguments)
        return list(zip(*(column.to_pylist() for column in table.columns), strict=True))

    def series(self, rows: int, columns: str = "i") -> str:
        """Return a query of so many rows, with expressions over `i`, which counts them from 1."""
        return f"{self.quirks.series.format(rows=rows)} SELECT {columns} FROM series"

    def tables(self) -> set[str]:
        """Return the names of all tables."""
        return {name for (name,) in self.rows(self.quirks.tables)}

    def running(self, marker: str) -> bool:
        """Tell whether a statement with this text runs: on the server, or in this process on the database's file."""
        if self.quirks.running is not None:
            return self.rows(self.quirks.running.format(marker=marker)) != [(0,)]
        return self.is_in_use()

    def is_in_use(self) -> bool:
        """Tell whether a session is open: on the server, or in this process on the database's file."""
        if self.quirks.sessions is not None:
            return self.rows(self.quirks.sessions) != [(0,)]
        # Of this process or one of its own; a journal or a log next to the file is in use, too.
        file = Path(self.url.partition(":///")[2])
        found = []
        for process in (psutil.Process(), *psutil.Process().children(recursive=True)):
            for descriptor in Path(f"/proc/{process.pid}/fd").glob("*"):
                with contextlib.suppress(OSError):
                    found.append(descriptor.readlink())
        return file in found or [*file.parent.iterdir()] != [file]

    def marked(self, kind: str, marker: str) -> str:
        """Return a statement that lasts, "computing" or "streaming", with a comment that finds it."""
        return f"{getattr(self.quirks, kind)} /* {marker} */"

    def column(self, name: str, shared: str, more: str = "") -> str:
        """Return the definition of a column that holds a shared type."""
        return f"{self.quirks.name(name)} {self.quirks.types[shared].native} {more}"

    @contextlib.contextmanager
    def can(self, what: str) -> Iterator[None]:
        """Run the block, which ends with the quirk's error where the source cannot do this."""
        refusal = self.quirks.cannot.get(what)
        if refusal is None:
            yield
            return
        with pytest.raises(refusal.error, match=refusal.reason):
            yield


def wait(condition: Callable[[], bool], seconds: float = 10) -> None:
    """Wait until the condition is true."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come true"
        time.sleep(0.01)


@pytest.fixture(scope="session", params=SOURCES, ids=str)
def database(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """Give an empty database of each source in turn."""
    quirks: Quirks = request.param
    with quirks.place(request, tmp_path_factory.mktemp("contract")) as url:
        yield Database(quirks, url)


@pytest.fixture(scope="session", params=SOURCES, ids=lambda quirks: f"to_{quirks}")
def target(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """Give an empty database of each source in turn, for what comes from another."""
    quirks: Quirks = request.param
    with quirks.place(request, tmp_path_factory.mktemp("target")) as url:
        yield Database(quirks, url)


@pytest.fixture
def table(database: Database) -> Iterator[str]:
    """Give a name that no table has; the one that gets it goes with the test."""
    name = f"t_{uuid.uuid4().hex[:8]}"
    yield name
    database.execute(f"DROP TABLE IF EXISTS {name}")


@pytest.fixture
def leaves_nothing(database: Database, table: str) -> Iterator[None]:
    """See that after the test there are no sessions, and no tables but its own."""
    before = database.tables()
    yield
    wait(lambda: not database.is_in_use())
    assert database.tables() - {table} == before
