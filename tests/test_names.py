"""The names of a database: URLs of SQLAlchemy's, files, variables of the environment, and what is none of these."""

import contextlib
import sqlite3
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import duckdb
import pyarrow as pa
import pymysql
import pytest
import sqlalchemy

import longshore
from longshore.target import target
from tests.servers import Endpoint, MySQLEndpoint

SECRET = "rope@walk/%:+ é"


@pytest.fixture
def harbour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a SQLite file in the working directory."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "harbour.db"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE boats AS SELECT 7 AS berth")
        connection.commit()
    return path


def berths(conn: Any) -> list[int]:
    found: list[int] = longshore.read_sql("SELECT berth FROM boats", conn, return_type="arrow")["berth"].to_pylist()
    return found


def with_driver(url: str, scheme: str) -> str:
    return scheme + url[url.index("://") :]


@pytest.mark.parametrize("driver", ["psycopg2", "psycopg", "asyncpg", "pg8000"])
def test_urls_of_sqlalchemy_on_postgresql(postgres: Endpoint, driver: str) -> None:
    url = with_driver(postgres.url(), f"postgresql+{driver}")
    for conn in (url, url.replace("postgresql", "PostgreSQL"), {"url": url}):
        assert longshore.read_sql("SELECT 1 AS a", conn, return_type="arrow").to_pylist() == [{"a": 1}]
    with longshore.Pool(url, size=1) as pool:
        assert repr(pool) == "<Pool postgresql://*** 0 in use, 0 idle, at most 1>"


@pytest.mark.parametrize("scheme", ["mysql+pymysql", "mysql+mysqldb", "mariadb+mariadbconnector", "mariadb+asyncmy"])
def test_urls_of_sqlalchemy_on_mariadb(mariadb: MySQLEndpoint, scheme: str) -> None:
    url = with_driver(mariadb.url(), scheme)
    assert longshore.read_sql("SELECT 1 AS a", url, return_type="arrow").to_pylist() == [{"a": 1}]
    with pytest.raises(longshore.NotSupportedError, match="charset"):
        longshore.read_sql("SELECT 1", f"{url}{'&' if '?' in url else '?'}charset=latin1")


@pytest.mark.parametrize("form", ["sqlite+pysqlite:///harbour.db", "sqlite+aiosqlite:////{}", "sqlite:///harbour.db"])
def test_urls_of_sqlalchemy_on_sqlite(harbour: Path, form: str) -> None:
    url = form.format(str(harbour).removeprefix("/"))
    assert berths(url) == [7]
    assert sqlalchemy.create_engine(url.replace("aiosqlite", "pysqlite")).url.database is not None


def test_what_only_a_driver_knows_is_refused_by_name(harbour: Path) -> None:
    with pytest.raises(longshore.InterfaceError, match='unknown connection setting "check_same_thread"'):
        berths(f"sqlite+pysqlite:///{harbour}?check_same_thread=false")
    with pytest.raises(longshore.InterfaceError, match=r"start with firebird\+fdb://"):
        berths(f"firebird+fdb://me:{quote(SECRET, safe='')}@host/db")


def test_a_url_object_has_its_password(postgres: Endpoint) -> None:
    parts = sqlalchemy.engine.make_url(with_driver(postgres.url(), "postgresql+psycopg2"))
    assert longshore.read_sql("SELECT 1 AS a", parts, return_type="arrow").to_pylist() == [{"a": 1}]
    secret = sqlalchemy.URL.create("postgresql+psycopg2", "me", SECRET, "127.0.0.1", 1, "db", {"application_name": "x"})
    found = target(secret)
    assert found.url is not None
    assert found.url.startswith("postgresql://me:")
    assert repr(found) == "<Target postgresql://***>"
    # Decoded as the source does, it is the password again.
    assert sqlalchemy.engine.make_url(found.url).password == SECRET
    with pytest.raises(longshore.OperationalError) as caught:
        longshore.read_sql("SELECT 1", secret)
    shown = "".join(traceback.format_exception(caught.value))
    assert SECRET not in shown
    assert quote(SECRET, safe=" +") not in shown


FORMS: dict[str, Callable[[Path], Any]] = {
    "a name": lambda path: path.name,
    "a relative path": lambda path: f"./{path.name}",
    "an absolute path": str,
    "a Path": lambda path: path,
    "a relative Path": lambda path: Path(path.name),
    "sqlite:": lambda path: f"sqlite:{path.name}",
    "sqlite: with settings": lambda path: f"sqlite:{path}?mode=ro",
    "env:": lambda _: "env:HARBOUR",
    "$": lambda _: "$HARBOUR",
    "env: of a path": lambda _: "env:HARBOUR_FILE",
    "a dict with env:": lambda _: {"url": "env:HARBOUR", "busy_timeout": 1},
    "a dict with a Path": lambda path: {"url": path, "mode": "ro"},
    "a dict with SQLAlchemy's scheme": lambda path: {"scheme": "sqlite+pysqlite", "database": path},
    "a URL object": lambda path: sqlalchemy.URL.create("sqlite+pysqlite", database=str(path)),
}


@pytest.mark.parametrize("form", FORMS)
def test_names_of_a_file(harbour: Path, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    monkeypatch.setenv("HARBOUR", f"sqlite:///{harbour}")
    monkeypatch.setenv("HARBOUR_FILE", str(harbour))
    conn = FORMS[form](harbour)
    assert berths(conn) == [7]
    attached = longshore.sql("SELECT berth FROM d.boats", attach={"d": conn}, return_type="arrow")
    assert attached["berth"].to_pylist() == [7]
    with longshore.connect(conn) as connection, longshore.Pool(conn, size=1) as pool:
        assert berths(connection) == berths(pool) == [7]


@pytest.mark.parametrize("form", ["env:", "$", "a Path", "a URL object", "a dict with env:"])
def test_connectorx_order_where_nothing_else_can_be_meant(
    harbour: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    monkeypatch.setenv("HARBOUR", f"sqlite:///{harbour}")
    order: Any = (FORMS[form](harbour), "SELECT berth FROM boats")
    assert longshore.read_sql(*order)["berth"].tolist() == [7]


def test_a_file_of_any_name_is_told_by_its_first_bytes(harbour: Path) -> None:
    for name in ("localhost", "harbour", "a.duckdb"):
        (harbour.parent / name).write_bytes(harbour.read_bytes())
        assert berths(name) == [7]
    with duckdb.connect(harbour.parent / "b.db") as other:
        other.execute("CREATE TABLE boats AS SELECT 8 AS berth")
    assert berths("b.db") == [8]
    for name in ("new.duckdb", "new.ddb"):
        with pytest.raises(longshore.OperationalError, match="there is no file"):
            berths(name)
        assert longshore.write_sql(pa.table({"berth": [9]}), "boats", name) == 1
        assert berths(name) == [9]


@pytest.mark.parametrize("conn", ["harbour.db", Path("harbour.db")])
def test_to_look_at_a_file_drops_no_locks(harbour: Path, conn: Any) -> None:
    with contextlib.closing(sqlite3.connect(harbour, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert target(conn).keywords == {"database": "harbour.db"}
        # Another process finds the lock where it was.
        writing = f"import sqlite3; sqlite3.connect({str(harbour)!r}, timeout=0).execute('BEGIN IMMEDIATE')"
        done = subprocess.run([sys.executable, "-c", writing], capture_output=True, text=True, check=False)
        assert "database is locked" in done.stderr
        other.execute("COMMIT")


@pytest.mark.parametrize(
    "conn", ["new.db", "./new", "new.sqlite3", Path("new"), "sqlite:new", "sqlite+pysqlite:///new"]
)
def test_a_write_makes_a_new_file_and_a_read_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, conn: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(longshore.OperationalError, match="there is no file"):
        berths(conn)
    with pytest.raises(longshore.OperationalError, match="there is no file"):
        longshore.write_sql(pa.table({"berth": [7]}), "boats", conn, if_exists="append")
    assert list(tmp_path.iterdir()) == []
    assert longshore.write_sql(pa.table({"berth": [7]}), "boats", conn) == 1
    assert berths(conn) == [7]
    assert longshore.copy("SELECT * FROM boats", conn, "boats", "copied.db") == 1
    assert berths("copied.db") == [7]


def test_a_mode_that_is_given_is_kept(tmp_path: Path) -> None:
    with pytest.raises(longshore.OperationalError, match="there is no file"):
        longshore.write_sql(pa.table({"a": [1]}), "t", f"sqlite:///{tmp_path}/new.db?mode=rw")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("conn", ["sqlite://", "sqlite:///", "sqlite:///:memory:", ":memory:", {"scheme": "sqlite"}])
def test_a_write_into_memory_is_refused(conn: Any) -> None:
    data = pa.table({"a": [1, 2]})
    with pytest.raises(longshore.InterfaceError, match="would be gone") as caught:
        longshore.write_sql(data, "t", conn)
    assert caught.value.hint is not None
    assert "longshore.connect" in caught.value.hint
    with pytest.raises(longshore.InterfaceError, match="would be gone"):
        longshore.copy("SELECT 1 AS a", "sqlite://", "t", conn)
    # As the hint says.
    with longshore.connect(conn) as connection:
        assert longshore.write_sql(data, "t", connection) == 2
        assert longshore.read_sql("SELECT a FROM t", connection, return_type="arrow").equals(data)


@pytest.mark.parametrize(
    "conn",
    ["localhost", f"me:{SECRET}@host/x.db", f"host=h password={SECRET}", "localhost:5432", "", "a" * 5000, "\0.db"],
)
def test_what_names_nothing(conn: str) -> None:
    with pytest.raises(longshore.Error) as caught:
        berths(conn)
    assert caught.value.hint is not None or conn == "\0.db"
    assert SECRET not in repr(caught.value)


def test_a_variable_that_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOWHERE", raising=False)
    with pytest.raises(longshore.InterfaceError, match="no variable 'NOWHERE'"):
        berths("env:NOWHERE")
    monkeypatch.setenv("NOWHERE", f"me:{SECRET}@host")
    with pytest.raises(longshore.InterfaceError) as caught:
        berths("env:NOWHERE")
    assert SECRET not in repr(caught.value)


def test_connections_of_others_are_named_with_the_way_to_a_url() -> None:
    connection: Any = pymysql.Connection(host="127.0.0.1", password=SECRET, defer_connect=True)
    with pytest.raises(longshore.InterfaceError, match=r"not pymysql\.connections\.Connection") as caught:
        longshore.connect(connection)
    assert "give the URL" in str(caught.value)
    assert SECRET not in str(caught.value)


def test_text_clauses_are_queries(harbour: Path) -> None:
    everything = sqlalchemy.text("SELECT berth, ':kept' AS kept FROM boats WHERE berth >= :least")
    for query, params in (
        (everything, {"least": 7}),
        (everything.bindparams(least=7), None),
        (everything.bindparams(least=9), {"least": 7}),
        ([everything], {"least": 7}),
    ):
        found = longshore.read_sql(query, harbour, params=params, return_type="arrow")
        assert found.to_pylist() == [{"berth": 7, "kept": ":kept"}]
    assert longshore.copy(everything, harbour, "copied", harbour, params={"least": 7}) == 1
    with longshore.connect(harbour) as connection:
        assert connection.execute(sqlalchemy.text("UPDATE boats SET berth = :next"), {"next": 8}) == 1
    with pytest.raises(longshore.ProgrammingError, match="least"):
        longshore.read_sql(everything, harbour, params={"most": 7})
