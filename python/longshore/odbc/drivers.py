"""The ways in which drivers, and the databases behind them, differ: one value for each."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from longshore.odbc import manager
from longshore.odbc.manager import Connection
from longshore.odbc.mariadb import MARIADB, MariaDBLoader
from longshore.odbc.staging import sqlite_new_types
from longshore.sources.dialects import POSTGRESQL, Dialect
from longshore.sources.dialects import SQLITE as _SQLITE
from longshore.sources.loading import TableLoader

_NOT_WRITTEN = "this database has no dialect here, and may keep a part of a write that fails"


@dataclass(frozen=True, kw_only=True)
class Driver:
    """A driver, and the database behind it, as a session knows them."""

    # How it hands over values.

    #: Whether it hands over a value of a fetched block by itself.
    has_long_values: bool = False
    #: The caller's limit.
    max_text_size: int | None = None
    #: Types of this name are timestamps of UTC; those of these sizes are decimals without a declared scale.
    zoned: frozenset[str] = frozenset()
    undeclared: frozenset[int] = frozenset()
    #: Types that are read as texts, of which their own C type would lose something.
    texts: frozenset[str] = frozenset()
    #: Whether a column has values of any type, of which its own C type would make others.
    has_loose_types: bool = False
    #: Whether it rounds floats to 15 digits, and the caller has not said that this may be.
    rounds_floats: bool = False
    #: Whether it hands over texts as their bytes in UTF-8: of UTF-16, it cuts what follows a zero.
    has_utf8: bool = False
    #: Whether it fills dates that it cannot read with today's, and the timestamp that it makes of infinity.
    has_wrong_dates: bool = False
    infinity: int | None = None

    # How it runs statements.

    #: The statement that makes UTC the zone of a session.
    utc: str | None = None
    #: Whether it runs all statements of a text, or the first of them: they are told apart before.
    splits_scripts: bool = False
    #: Whether it takes statements in UTF-8: of UTF-16, it cuts characters beyond 16 bits.
    takes_utf8: bool = False
    #: Whether the database's places are $1, which the driver does not know.
    numbers_places: bool = False
    #: Whether it takes a text as a parameter with a zero in it, and does not cut it there.
    keeps_zeros: bool = False
    #: Whether it does with many sets of parameters what it does with each; MariaDB's leaves sets out.
    takes_sets: bool = False
    #: Whether it tells of parameters though it says that it cannot. MariaDB's, which says so, too, crashes.
    describes_parameters: bool = False
    #: Whether it calls a statement that the server has refused a success with a warning.
    hides_failures: bool = False
    #: The classes of SQLSTATE of statements that are undone alone: data, constraints, what is not SQL or not allowed.
    undone_alone: frozenset[str] = frozenset()
    #: Whether it begins a transaction by itself, for a cursor on the server, and leaves it open after an error.
    begins_alone: bool = False
    #: Whether it has the whole result once the statement has run, and frees it when it is told to cancel, even while
    #: another thread fetches: it is told so only while it runs a statement.
    fetches_whole: bool = False

    # How the database is written.

    #: Its SQL; None where it is only read, for this reason.
    dialect: Dialect | None = None
    not_written: str = _NOT_WRITTEN
    loader: type[TableLoader] = TableLoader
    #: Whether a new table ends a transaction.
    new_table_commits: bool = False


SQLITE = replace(_SQLITE, new_types=sqlite_new_types)
#: The last second of the year 9999, in microseconds.
_LAST = 253_402_300_799_000_000
_MYSQL = Driver(
    utc="SET time_zone = '+00:00'",
    zoned=frozenset({"timestamp"}),
    undone_alone=frozenset({"22", "23", "42"}),
    dialect=MARIADB,
    loader=MariaDBLoader,
    new_table_commits=True,
)
#: By the name of the database.
_DATABASES = {
    "PostgreSQL": Driver(
        utc="SET TIME ZONE 'UTC'",
        numbers_places=True,
        splits_scripts=True,
        takes_sets=True,
        begins_alone=True,
        describes_parameters=True,
        zoned=frozenset({"timestamptz"}),
        undeclared=frozenset({28}),
        texts=frozenset({"money"}),
        has_wrong_dates=True,
        infinity=_LAST,
        dialect=POSTGRESQL,
    ),
    "SQLite": Driver(
        splits_scripts=True,
        takes_sets=True,
        takes_utf8=True,
        has_loose_types=True,
        rounds_floats=True,
        dialect=SQLITE,
    ),
    "MariaDB": _MYSQL,
    "MySQL": _MYSQL,
    "Microsoft SQL Server": Driver(not_written=f"{_NOT_WRITTEN}: write to mssql://"),
    "Oracle": Driver(not_written=f"{_NOT_WRITTEN}: write to oracle://"),
}
#: MariaDB's driver, whichever database it leads to.
_MARIADB = "libmaodbc"
#: The settings that keep our promises, by the beginning of a driver's name. PostgreSQL's: rows by a cursor and not all
#: at once, booleans as such, errors that undo nothing more.
SETTINGS = {
    "psqlodbc": {
        "BoolsAsChar": "0",
        "UseDeclareFetch": "1",
        "Fetch": "2000",
        "Protocol": "7.4-0",
        "ByteaAsLongVarBinary": "1",
    },
    _MARIADB: {"FORWARDONLY": "1", "NO_CACHE": "1"},
}
#: The bits of a driver that hands over a value of a fetched block by itself, and of a column that is bound.
_LONG_VALUES = 4 | 8


def open_connection(settings: Mapping[str, str]) -> Connection:
    """Connect, with those of the driver's settings that are not given: which driver it is, a connection tells."""
    connection = Connection(_text(settings))
    name, given = connection.text(manager.DRIVER_NAME), {each.lower() for each in settings}
    own = next((own for start, own in SETTINGS.items() if name.startswith(start)), {})
    added = {name: value for name, value in own.items() if name.lower() not in given}
    if not added:
        return connection
    connection.close()
    return Connection(_text({**settings, **added}))


def _text(settings: Mapping[str, str]) -> str:
    return ";".join(f"{name}={value}" for name, value in settings.items())


def driver_of(connection: Connection, *, max_text_size: int | None, may_round: bool) -> Driver:
    """Ask a connection whose driver it has, and which database is behind it."""
    driver = _DATABASES.get(connection.text(manager.DBMS_NAME), Driver())
    is_mariadb = connection.text(manager.DRIVER_NAME).startswith(_MARIADB)
    return replace(
        driver,
        max_text_size=max_text_size,
        has_long_values=connection.number(manager.GETDATA_EXTENSIONS) & _LONG_VALUES == _LONG_VALUES,
        rounds_floats=driver.rounds_floats and not may_round,
        hides_failures=is_mariadb,
        has_utf8=is_mariadb,
        keeps_zeros=is_mariadb,
        fetches_whole=is_mariadb,
    )
