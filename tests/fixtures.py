"""The servers, as fixtures. One that is missing skips its tests, save in CI, where it fails them."""

import atexit
import contextlib
import gc
import os
import signal
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, TypeVar

import pytest
import trustme
from _pytest.runner import runtestprotocol

from tests.certificates import Certificates
from tests.conformance.case import Case
from tests.conformance.postgresql import Places
from tests.cutter import Cutter
from tests.long import IS_LONG
from tests.pairwise import pairwise
from tests.servers import (
    H2,
    MSSQL,
    ClickHouse,
    Endpoint,
    GoFlight,
    Missing,
    MySQLEndpoint,
    PgBouncer,
    PostgreSQL,
    QuestDB,
    Trino,
    mariadb,
    mysql,
    postgresql,
)

S = TypeVar("S")
_TRINO = pytest.StashKey[Trino]()
Place = Callable[[Case], str]

# A shell that starts the tests in the background has them ignore Ctrl-C, and nohup SIGHUP; and so would
# every process that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give the scheduler of `--dist=loadfile`."""
    if config.option.dist != "loadfile":
        return None
    from tests.scheduler import Scheduler

    return Scheduler(config, log)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the files without a lane's marker: all of them take a worker ten seconds."""
    marker = config.option.markexpr.removesuffix(" and not once")
    is_left_out = (
        marker.isidentifier()
        and collection_path.name.startswith("test_")
        and f"pytest.mark.{marker}" not in collection_path.read_text()
    )
    return is_left_out or None


@contextlib.contextmanager
def require(make: Callable[[], AbstractContextManager[S]]) -> Iterator[S]:
    """Start a server; where it cannot be had, skip the test, or in CI fail it."""
    with contextlib.ExitStack() as stack:
        try:
            server = stack.enter_context(make())
        except Missing as missing:
            if os.environ.get("CI") == "true":
                pytest.fail(str(missing))
            pytest.skip(str(missing))
        yield server


@pytest.fixture(scope="session")
def postgres() -> Iterator[Endpoint]:
    """Give the PostgreSQL that all tests share: do not stop it, and leave no table behind."""
    with require(postgresql) as server:
        yield server
        left = server.psql("SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace")
        assert not left.split(), f"tests left these behind: {left.split()}"


@pytest.fixture(scope="module")
def place(postgres: Endpoint) -> Iterator[Place]:
    """Give the URL of a server that has what a case needs: the shared one, or one that is started for it."""
    with contextlib.ExitStack() as stack:

        def start(needs: tuple[str, ...]) -> Endpoint:
            return stack.enter_context(require(lambda: PostgreSQL(needs=needs)))

        places = Places(postgres, start)

        yield places.find


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the cases whose type is newer than the PostgreSQL that was asked for, and the long run's."""
    version = float(os.environ.get("LONGSHORE_POSTGRESQL_VERSION") or "inf")
    known = [item for item in items if _since(item) <= version]
    kept = known if IS_LONG else pairwise(known, runs_again=bool(config.option.markexpr))
    if len(kept) < len(items):
        chosen = set(kept)
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = kept


def pytest_configure(config: pytest.Config) -> None:
    """Have a lane that runs tests again draw a fifth of the random values."""
    if config.option.markexpr:
        from hypothesis import settings

        settings.register_profile("again", max_examples=20)
        settings.load_profile("again")


def pytest_sessionstart() -> None:
    """Collect no garbage while a million objects are made that stay."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Leave what was imported and collected to no further collection of garbage."""
    gc.freeze()
    gc.enable()
    # Libraries look at their exit for what is left; pytest looks before it, five times.
    atexit.register(gc.unfreeze)


def _since(item: pytest.Item) -> int:
    callspec = getattr(item, "callspec", None)
    case = callspec.params.get("case") if callspec else None
    return case.since if isinstance(case, Case) else 0


@pytest.fixture(scope="session", name="mariadb")
def _mariadb() -> Iterator[MySQLEndpoint]:
    """Give the MariaDB that all tests share: do not stop it, and leave no table behind."""
    with require(mariadb) as server:
        yield server


@pytest.fixture(scope="session", name="mysql")
def _mysql() -> Iterator[MySQLEndpoint]:
    """Give the MySQL that all tests share: do not stop it, and leave no table behind."""
    with require(mysql) as server:
        yield server


@pytest.fixture(scope="session")
def clickhouse() -> Iterator[ClickHouse]:
    """Give the stand-in for ClickHouse that all tests share: leave no table behind."""
    with require(ClickHouse) as server:
        yield server


@pytest.fixture(scope="session")
def trino(request: pytest.FixtureRequest) -> Iterator[Trino]:
    """Give the Trino that all tests share: leave no table behind."""
    with require(Trino) as server:
        request.config.stash[_TRINO] = server
        yield server


def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Have a worker tell what a test's call came to, and of its set-up and its end what failed or took a second."""
    if not hasattr(item.config, "workerinput"):
        return None
    for report in runtestprotocol(item, nextitem=nextitem, log=False):
        if report.when == "call" or not report.passed or report.duration > 1:
            item.ihook.pytest_runtest_logreport(report=report)
    return True


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Stop Trino after the last of its tests, which one process has: it computes while no one asks."""
    server = item.config.stash.get(_TRINO, None)
    if server is None or nextitem is None or not hasattr(item.config, "workerinput"):
        return
    from tests.scheduler import is_dear

    if is_dear(item.nodeid) and not is_dear(nextitem.nodeid):
        server.close()


@pytest.fixture(scope="session")
def tds() -> Iterator[MSSQL]:
    """Give the server that speaks TDS, which all tests share."""
    with require(MSSQL) as server:
        yield server


@pytest.fixture
def mssql(tds: MSSQL) -> MSSQL:
    """Give the server that speaks TDS, with nothing to answer and nothing heard."""
    tds.clear()
    return tds


@pytest.fixture(scope="session")
def go_flight() -> Iterator[GoFlight]:
    """Give Apache's Flight SQL server over SQLite that all tests share: leave no row behind."""
    with require(GoFlight) as server:
        yield server


@pytest.fixture(scope="session")
def url(postgres: Endpoint) -> str:
    """Give the shared PostgreSQL's URL."""
    return postgres.url()


@pytest.fixture
def harbour(postgres: Endpoint) -> Iterator[str]:
    """Give the name of an empty schema of the shared PostgreSQL, which goes with all that is in it."""
    name = f"harbour_{uuid.uuid4().hex[:8]}"
    postgres.psql(f"CREATE SCHEMA {name}")
    yield name
    postgres.psql(f"DROP SCHEMA {name} CASCADE")


@pytest.fixture(scope="session")
def guide(postgres: Endpoint) -> Iterator[str]:
    """Give the URL of a database for the documentation, whose tables are called as those of tests are."""
    name = f"guide_{os.getpid()}"
    postgres.psql(f"CREATE DATABASE {name}")
    yield postgres.url(database=name)
    postgres.psql(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(autouse=True)
def _names_in_doctests(request: pytest.FixtureRequest) -> None:
    """Give doctests `url`: one of PostgreSQL, on the page of another source that one's."""
    if isinstance(request.node, pytest.DoctestItem):
        page = request.node.path.name
        own = {"clickhouse.md": "clickhouse", "flight.md": "go_flight", "trino.md": "trino"}.get(page)
        url = request.getfixturevalue(own).url() if own else request.getfixturevalue("guide")
        names = request.getfixturevalue("doctest_namespace")
        names["url"] = url
        if page == "odbc.md":
            from tests.quirks.odbc import through

            names["odbc"] = through(url)


@pytest.fixture
def make_server() -> Iterator[Callable[..., PostgreSQL]]:
    """Give a function that starts a PostgreSQL for this test alone, with the arguments of `PostgreSQL`."""
    with contextlib.ExitStack() as stack:

        def make(**options: object) -> PostgreSQL:
            return stack.enter_context(require(lambda: PostgreSQL(**options)))  # type: ignore[arg-type]

        yield make


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """Give an authority with a certificate for 127.0.0.1 and localhost, and one for a client named postgres."""
    return Certificates.make(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="session")
def rsa_certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """Give the like with RSA keys, for a client named root: MySQL's OpenSSL of 2019 offers no curve to others."""
    directory = tmp_path_factory.mktemp("rsa")
    return Certificates.make(directory, user="root", key_type=trustme.KeyType.RSA)


@pytest.fixture
def cutter(postgres: Endpoint) -> Iterator[Cutter]:
    """Give a network to the shared PostgreSQL that fails where it is told to."""
    upstream = postgres.socket_path if isinstance(postgres, PostgreSQL) else (postgres.host, postgres.port)
    with Cutter(upstream) as cutter:
        yield cutter


@pytest.fixture(scope="session")
def pgbouncer(postgres: Endpoint) -> Iterator[PgBouncer]:
    """Give a PgBouncer in transaction mode in front of the shared PostgreSQL."""
    with require(lambda: PgBouncer(postgres)) as server:
        yield server


# A Java server works even where nothing is asked of it: it goes with its module.
@pytest.fixture(scope="module")
def questdb() -> Iterator[QuestDB]:
    """Give a QuestDB."""
    with require(QuestDB) as server:
        yield server


@pytest.fixture(scope="module")
def h2() -> Iterator[H2]:
    """Give an H2."""
    with require(H2) as server:
        yield server
