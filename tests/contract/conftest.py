"""A database of every source, and tables that go with their test."""

import contextlib
import os
import threading
import time
import uuid
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import longshore
from tests.long import IS_LONG
from tests.quirks import SOURCES, Quirks


@dataclass(eq=False)
class Database:
    """A place for tables, and the quirks of the source that has it."""

    quirks: Quirks
    url: str
    #: The session that looks after the database; while it is open, a file is in use.
    _kept: longshore.Connection | None = None
    #: The tables that the last test has left, which were there before it; None once a statement has run since.
    left: set[str] | None = None

    def __repr__(self) -> str:
        """Name the source in a failed test's report."""
        return f"<Database {self.quirks}>"

    @property
    def source(self) -> str:
        """The source's name."""
        return self.quirks.source

    @property
    def control(self) -> longshore.Connection:
        """A session that makes, sees and drops what a test needs: to open one takes longer than most of that."""
        if self._kept is None or self._kept.closed or not self.quirks.reads_what_is_replaced:
            self.close()
            self._kept = longshore.connect(self.url, autocommit=True)
        return self._kept

    def close(self) -> None:
        """End that session, until it is needed again."""
        if self._kept is not None:
            self._kept.close()

    def execute(self, *statements: str) -> None:
        """Run statements, each a transaction of its own."""
        self.left = None
        for statement in statements:
            self.control.execute(statement)

    def rows(self, query: str | list[str], conn: Any = None, **arguments: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a query over a session of its own, or of a table by the order of its first column."""
        if isinstance(query, str) and " " not in query:
            query = f"SELECT * FROM {query} ORDER BY 1"
            conn = conn or self.control
        table: Any = longshore.read_sql(query, conn or self.url, return_type="arrow", **arguments)
        return list(zip(*map(self._cells, table.schema, table.columns), strict=True))

    def _cells(self, field: Any, column: Any) -> list[Any]:
        """Return a column's values, and numbers for texts of numbers."""
        is_text = (field.metadata or {}).get(b"native_type", b"").decode() == self.quirks.numbers_as_text != ""
        return [Decimal(text) if is_text and text else text for text in column.to_pylist()]

    def series(self, rows: int, columns: str = "i") -> str:
        """Return a query of so many rows, with expressions over `i`, which counts them from 1."""
        return f"{self.quirks.series.format(rows=rows)} SELECT {columns} FROM series"

    def tables(self) -> set[str]:
        """Return the names of all tables."""
        return {name for (name,) in self.rows(self.quirks.tables, self.control)}

    def sweep(self, table: str) -> set[str]:
        """Drop the table if it is there, and return the names of all others."""
        found = self.tables()
        if table in found:
            self.execute(f"DROP TABLE {table}")
        self.left = found - {table}
        return self.left

    def running(self, marker: str) -> bool:
        """Tell whether a statement with this text runs: on the server, or in this process on the database's file."""
        if callable(self.quirks.running):
            return self.quirks.running(self.url, marker)
        if self.quirks.running is not None:
            return self.rows(self.quirks.running.format(marker=marker), self.control) != [(0,)]
        return self.is_in_use()

    def is_in_use(self) -> bool:
        """Tell whether a session is open: on the server, or in this process on the database's file."""
        if callable(self.quirks.sessions):
            is_kept = self._kept is not None and not self._kept.closed
            return self.quirks.sessions(self.url) > is_kept
        if callable(self.quirks.running):
            return self.quirks.running(self.url, "")
        if self.quirks.sessions is not None:
            return self.rows(self.quirks.sessions, self.control) != [(0,)]
        self.close()
        # Of this process or one of its own; a journal or a log next to the file is in use, too.
        file = Path(self.url.partition(":///")[2].rstrip("}"))
        found = []
        for process in _with_descendants(os.getpid()):
            # One may end, or be closed, meanwhile. Each test looks at hundreds: pathlib takes twice as long.
            with contextlib.suppress(OSError):
                for descriptor in os.listdir(f"/proc/{process}/fd"):  # noqa: PTH208
                    with contextlib.suppress(OSError):
                        found.append(os.readlink(f"/proc/{process}/fd/{descriptor}"))  # noqa: PTH115
        # The place may be a directory.
        is_open = any(each == str(file) or each.startswith(f"{file}/") for each in found)
        return is_open or [*file.parent.iterdir()] != [file]

    def marked(self, kind: str, marker: str) -> str:
        """Return a statement that lasts, "computing" or "streaming", with a comment that finds it."""
        return f"{getattr(self.quirks, kind)} /* {marker} */"

    def column(self, name: str, shared: str, more: str = "") -> str:
        """Return the definition of a column that holds a shared type."""
        return f"{self.quirks.name(name)} {self.quirks.types[shared].native} {more}"

    @contextlib.contextmanager
    def can(self, *whats: str) -> Iterator[None]:
        """Run the block, which ends with the quirk's error where the source cannot do one of these."""
        refusal = next((self.quirks.cannot[what] for what in whats if what in self.quirks.cannot), None)
        if refusal is None:
            yield
            return
        with pytest.raises(refusal.error, match=refusal.reason):
            yield

    def refuses_a_key(self) -> AbstractContextManager[pytest.ExceptionInfo[longshore.IntegrityError] | None]:
        """Run the block, which ends with an IntegrityError where keys are enforced."""
        return pytest.raises(longshore.IntegrityError) if self.quirks.enforces_keys else contextlib.nullcontext()


def _with_descendants(process: int) -> Iterator[int]:
    """Yield the numbers of a process and of all that it has begun; to look at every process takes five milliseconds."""
    yield process
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{process}/task"):  # noqa: PTH208
            with contextlib.suppress(OSError):
                for child in Path(f"/proc/{process}/task/{thread}/children").read_text().split():
                    yield from _with_descendants(int(child))


def wait(condition: Callable[[], bool], seconds: float = 10) -> None:
    """Wait until the condition is true, and ask less and less often: to ask takes a server some milliseconds."""
    deadline, pause = time.monotonic() + seconds, 0.005
    while not condition():
        assert time.monotonic() < deadline, "it did not come true"
        time.sleep(pause)
        pause = min(pause * 1.5, 0.1)


def stop(thread: threading.Thread, cancel: Callable[[], None], seconds: float = 5) -> None:
    """Cancel until the thread ends: what runs in this process does not tell when it has begun."""
    deadline = time.monotonic() + seconds
    while thread.is_alive() and time.monotonic() < deadline:
        cancel()
        thread.join(0.1)
    assert not thread.is_alive(), "it was not stopped"


def opened(database: Database) -> Iterator[Database]:
    """Give a database, and end the session that looks after it."""
    try:
        yield database
    finally:
        database.close()


#: The sources of what runs with other packages as well: frames do not ask where their rows come from or go to, so that
#: one of ours stands for all, and one that is a package.
_ELSEWHERE = {"sqlite", "duckdb"}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give each test the sources that run its module; where a lane runs it again, those that the lane may change."""
    names = {metafunc.module.__name__.rpartition(".")[2], metafunc.function.__name__}
    sources = [quirks for quirks in SOURCES if not names & quirks.not_run(is_long=IS_LONG)]
    if metafunc.config.option.markexpr:
        sources = [quirks for quirks in sources if quirks.source in _ELSEWHERE]
    if {"database", "target"} <= {*metafunc.fixturenames}:
        pairs = pairs_of(sources, is_of_types="held" in metafunc.fixturenames)
        ids = [f"{source}-to_{target}" for source, target in pairs]
        metafunc.parametrize(("database", "target"), pairs, indirect=True, scope="session", ids=ids)
        return
    for name, prefix in (("database", ""), ("target", "to_")):
        if name in metafunc.fixturenames:
            ids = [f"{prefix}{quirks}" for quirks in sources]
            metafunc.parametrize(name, sources, indirect=True, scope="session", ids=ids)


def pairs_of(sources: list[Quirks], *, is_of_types: bool) -> list[tuple[Quirks, Quirks]]:
    """Return sources and targets: a ring, and where it is of types, into each target those that bring all there are.

    The long run has each with each.
    """
    if IS_LONG:
        return [*product(sources, sources)]
    ring = list(zip(sources, [*sources[1:], *sources[:1]], strict=True))
    if not is_of_types:
        return ring

    def types(source: Quirks) -> set[tuple[str, str]]:
        return {(name, str(kind.arrow)) for name, kind in source.types.items()}

    pairs = []
    for before, target in ring:
        chosen, left = [before], set().union(*map(types, sources)) - types(before)
        while left:
            best = max(sources, key=lambda source: len(types(source) & left))
            chosen.append(best)
            left -= types(best)
        pairs += [(source, target) for source in chosen]
    return pairs


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Run a test, which ends with the quirk's error where the source cannot do what all of it is about."""
    database = pyfuncitem.funcargs.get("database")
    if not isinstance(database, Database):
        return (yield)
    module = pyfuncitem.module.__name__.rpartition(".")[2]
    with database.can(pyfuncitem.originalname, f"{module}.{pyfuncitem.originalname}"):
        yield
    return True


@pytest.fixture(scope="session")
def database(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """Give an empty database of each source in turn."""
    quirks: Quirks = request.param
    with quirks.place(request, tmp_path_factory.mktemp("contract")) as url:
        yield from opened(Database(quirks, url))


@pytest.fixture(scope="session")
def target(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """Give an empty database of each source in turn, for what comes from another."""
    quirks: Quirks = request.param
    with quirks.place(request, tmp_path_factory.mktemp("target")) as url:
        yield from opened(Database(quirks, url))


@pytest.fixture
def table(database: Database, request: pytest.FixtureRequest) -> Iterator[str]:
    """Give a name that no table has; the one that gets it goes with the test."""
    name = f"t_{uuid.uuid4().hex[:8]}"
    if "leaves_nothing" not in request.fixturenames:
        yield name
        database.execute(f"DROP TABLE IF EXISTS {name}")
        return
    # To ask takes some sources longer than most tests.
    before = database.tables() if database.left is None else database.left
    yield name
    # A server keeps a result for three seconds for those whom a client that is gone may have given the tickets.
    wait(lambda: not database.is_in_use())
    assert database.sweep(name) == before


@pytest.fixture
def leaves_nothing(table: str) -> str:
    """See that after the test there are no sessions, and no tables but its own: `table` does."""
    return table
