"""SQLAlchemy's engines and connections: their URL where that says all of them, else the driver's connection."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import create_async_engine

import longshore
from longshore.sources.sqlalchemy import of_url
from tests.connections.conftest import BOATS
from tests.servers import Endpoint

pytestmark = pytest.mark.packages

SECRET = "s3cr3t"
NAMED = "SELECT current_setting('application_name') AS name"


def rows(conn: Any, query: Any = "SELECT berth, name FROM boats ORDER BY berth", **arguments: Any) -> Any:
    return longshore.read_sql(query, conn, return_type="arrow", **arguments).to_pylist()


@pytest.fixture
def url(postgres: Endpoint) -> Iterator[sa.URL]:
    """Give the URL of a database with a table."""
    longshore.write_sql(BOATS, "boats", postgres.url(), if_exists="replace")
    yield sa.make_url(postgres.url()).set(drivername="postgresql+psycopg")
    postgres.psql("DROP TABLE boats")


@pytest.mark.parametrize(
    ("url", "address"),
    [
        (f"postgresql+psycopg2://me:{SECRET}@h:1/d?sslmode=require", None),
        (f"postgresql+asyncpg://me:{SECRET}@h/d", None),
        (f"mysql+pymysql://me:{SECRET}@h/d?charset=utf8mb4", f"mysql+pymysql://me:{SECRET}@h/d"),
        ("sqlite:////srv/a b.db", {"scheme": "sqlite", "database": "/srv/a b.db"}),
        (f"postgresql+asyncpg://me:{SECRET}@h/d?prepared_statement_cache_size=0", "keys of the driver"),
        (f"postgresql+psycopg://me:{SECRET}@h/d?krbsrvname=x", "keys of the driver"),
        (f"postgresql+psycopg://me:{SECRET}@/d?host=a&host=b", "keys of the driver"),
        (f"mysql+pymysql://me:{SECRET}@h/d?read_timeout=5", "keys of the driver"),
        (f"postgresql+asyncpg://me:{SECRET}@/d", "no host"),
        ("postgresql+psycopg://h/d", "no username"),
        (f"mysql+pymysql://me:{SECRET}@h", "no database"),
        (f"postgresql+psycopg://me:{SECRET}@/d?host=h", None),
        ("sqlite://", "in memory"),
        ("sqlite:///a.db?timeout=3", "a query"),
        (f"mssql+pymssql://me:{SECRET}@h/d", "no URL"),
    ],
)
def test_which_urls_mean_the_same(url: str, address: Any) -> None:
    made = sa.make_url(url)
    found, reason = of_url(made, [made.database or ":memory:"])
    if isinstance(address, str) and "://" not in address:
        assert found is None
        assert address in reason
    elif isinstance(found, sa.URL):
        assert found.render_as_string(hide_password=False) == (address or url)
    else:
        assert found == address


def test_an_engine_is_its_url(url: sa.URL, targets: list[Any]) -> None:
    engine = sa.create_engine(url.update_query_dict({"application_name": "harbour"}))
    assert rows(engine) == BOATS.to_pylist()
    assert rows(engine, NAMED) == [{"name": "harbour"}]
    # ConnectorX's order.
    swapped: Any = (engine, "SELECT 1 AS n")
    assert longshore.read_sql(*swapped)["n"].tolist() == [1]
    assert longshore.write_sql(BOATS, "boats", engine, if_exists="append") == 2
    assert len(longshore.partition_sql("SELECT * FROM boats", engine, "berth", 2)) == 2
    assert longshore.schema("SELECT * FROM boats", engine).names == ["berth", "name"]
    with longshore.connect(engine) as own, longshore.Pool(engine, size=1) as shared:
        assert len(rows(own)) == len(rows(shared)) == 4
    assert longshore.sql("SELECT count(*) AS n FROM pg.boats", attach={"pg": engine})["n"].tolist() == [4]
    with engine.connect() as connection:
        assert len(rows(connection)) == 4
    assert len(targets) >= 9
    pool: Any = engine.pool
    assert pool.checkedin() == 1
    engine.dispose()


def test_a_transaction_of_a_connection_is_gone_through(url: sa.URL, targets: list[Any]) -> None:
    engine = sa.create_engine(url)
    with engine.connect() as connection:
        transaction = connection.begin()
        # SQLAlchemy has told of a transaction that the driver has not begun.
        assert longshore.write_sql(pa.table({"berth": [3]}), "boats", connection, if_exists="append") == 1
        connection.execute(sa.text("INSERT INTO boats VALUES (4, 'Dan')"))
        assert [row["berth"] for row in rows(connection)] == [1, 2, 3, 4]
        assert [row["berth"] for row in rows(engine)] == [1, 2]
        with pytest.raises(longshore.ProgrammingError):
            rows(connection, "SELECT nothing FROM boats")
        assert len(rows(connection)) == 4
        transaction.rollback()
        assert len(rows(connection)) == 2
    with pytest.raises(longshore.InterfaceError, match="closed"):
        rows(connection)
    engine.dispose()
    # By URL: the engine, and the connection after its transaction.
    assert len(targets) == 2


def test_what_changes_connections_is_gone_through(url: sa.URL, targets: list[Any]) -> None:
    arguments: dict[str, Any] = {"application_name": "argued"}
    argued = sa.create_engine(url, connect_args=arguments)
    text = url.set(drivername="postgresql").render_as_string(hide_password=False)
    made = sa.create_engine(url, creator=lambda: psycopg.connect(text, **arguments))
    heard = sa.create_engine(url)
    sa.event.listen(heard, "do_connect", lambda _dialect, _record, _args, keywords: keywords.update(arguments))
    for engine in (argued, made, heard):
        pool: Any = engine.pool
        assert rows(engine, NAMED) == [{"name": "argued"}]
        assert longshore.write_sql(BOATS, "boats", engine, if_exists="append") == 2
        with longshore.read_sql("SELECT * FROM boats", engine, return_type="arrow_stream") as stream:
            assert pool.checkedout() == 1
            next(iter(stream))
        assert pool.checkedout() == 0
        with pytest.raises(longshore.InterfaceError, match=r"engine\.connect\(\)"):
            longshore.sql("SELECT * FROM pg.boats", attach={"pg": engine})
        with engine.connect() as connection:
            assert len(longshore.sql("SELECT * FROM pg.boats", attach={"pg": connection})) == len(rows(engine))
        with pytest.raises(longshore.InterfaceError, match="a session of its own"):
            longshore.connect(engine)
        engine.dispose()
    assert targets == []


def test_sqlite_in_memory_and_in_a_file(tmp_path: Path, targets: list[Any]) -> None:
    memory = sa.create_engine("sqlite://")
    with memory.begin() as connection:
        connection.execute(sa.text("CREATE TABLE boats (berth INTEGER, name TEXT)"))
    assert longshore.write_sql(BOATS, "boats", memory, if_exists="append") == 2
    assert rows(memory) == BOATS.to_pylist()
    with memory.connect() as connection:
        transaction = connection.begin()
        assert longshore.write_sql(BOATS, "boats", connection, if_exists="append") == 2
        assert len(rows(connection)) == 4
        transaction.rollback()
        assert len(rows(connection)) == 2
    memory.dispose()
    assert targets == []
    file = sa.create_engine(f"sqlite:///{tmp_path / 'a.db'}")
    assert longshore.write_sql(BOATS, "boats", file) == 2
    assert rows(file) == BOATS.to_pylist()
    assert targets == [{"database": str(tmp_path / "a.db")}] * 2


def test_a_write_through_an_engine_is_committed(url: sa.URL, targets: list[Any]) -> None:
    text = url.set(drivername="postgresql").render_as_string(hide_password=False)
    for at, driver in enumerate(("psycopg", "psycopg2")):
        engine = sa.create_engine(url.set(drivername=f"postgresql+{driver}"))
        begun: list[object] = []
        # A statement of a listener's has begun a transaction before ours.
        sa.event.listen(engine, "engine_connect", lambda connection: connection.exec_driver_sql("SELECT 1").close())
        sa.event.listen(engine, "begin", begun.append)
        assert longshore.write_sql(BOATS, "boats", engine, if_exists="append") == 2
        assert len(rows(text)) == 4 + 3 * at
        with pytest.raises(longshore.DataError):
            longshore.write_sql(pa.table({"berth": [1, 2**40]}), "boats", engine, if_exists="append")
        insert = "INSERT INTO boats VALUES (9, NULL) RETURNING berth"
        if driver == "psycopg":
            assert rows(engine, insert) == [{"berth": 9}]
        else:
            assert rows(engine, "SELECT 1 AS n", pre_execution_query=insert) == [{"n": 1}]
        assert len(rows(text)) == 5 + 3 * at
        queries = ["SELECT 1 AS n", "SELECT 2 AS n"]
        with pytest.raises(longshore.NotSupportedError, match="a listener's statement"):
            rows(engine, queries)
        assert rows(engine, queries, options={"snapshot": False}) == [{"n": 1}, {"n": 2}]
        assert len(begun) == 6
        engine.dispose()
    assert targets == [text] * 4


def test_a_connection_without_a_transaction_begins_one_of_its_own(url: sa.URL, targets: list[Any]) -> None:
    heard = sa.create_engine(url, connect_args={"application_name": "argued"})
    begun: list[object] = []
    with heard.connect() as connection:
        sa.event.listen(connection, "begin", begun.append)
        assert longshore.write_sql(BOATS, "boats", connection, if_exists="append") == 2
        assert (connection.in_transaction(), len(begun)) == (True, 1)
        connection.rollback()
        assert len(rows(connection)) == 2
        connection.commit()
    alone = heard.execution_options(isolation_level="AUTOCOMMIT")
    with alone.connect() as connection:
        for conn in (alone, connection):
            with pytest.raises(longshore.InterfaceError, match="autocommit"):
                longshore.write_sql(BOATS, "boats", conn, if_exists="append")
    assert targets == []
    heard.dispose()


def test_a_commit_that_fails_is_an_error(url: sa.URL) -> None:
    engine = sa.create_engine(url, connect_args={"application_name": "argued"})
    longshore.read_sql(
        "SELECT 1 AS n",
        engine,
        pre_execution_query="ALTER TABLE boats ADD UNIQUE (berth) DEFERRABLE INITIALLY DEFERRED",
    )
    with pytest.raises(longshore.IntegrityError) as caught:
        longshore.write_sql(BOATS, "boats", engine, if_exists="append")
    assert caught.value.sqlstate == "23505"
    assert len(rows(engine)) == 2
    engine.dispose()


def test_how_a_connection_differs_is_not_lost_by_its_url(url: sa.URL, targets: list[Any]) -> None:
    engine = sa.create_engine(url)
    level = (
        "SELECT current_setting('transaction_isolation') AS level, current_setting('transaction_read_only') AS fixed"
    )
    options: dict[str, Any] = {"isolation_level": "SERIALIZABLE", "postgresql_readonly": True}
    with engine.connect().execution_options(**options) as connection:
        assert rows(connection, level) == [{"level": "serializable", "fixed": "on"}]
    serial = sa.create_engine(url, isolation_level="SERIALIZABLE")
    assert rows(serial, level) == [{"level": "serializable", "fixed": "off"}]
    serial.dispose()
    with engine.connect() as connection:
        heard: list[object] = []
        sa.event.listen(connection, "begin", heard.append)
        assert rows(connection, NAMED) == [{"name": ""}]
        assert len(heard) == 1
    assert targets == []
    with pytest.raises(longshore.InterfaceError, match="schema_translate_map"):
        rows(engine.execution_options(schema_translate_map={None: "other"}), NAMED)
    engine.dispose()


def test_one_connection_is_not_source_and_target(url: sa.URL) -> None:
    engine = sa.create_engine(url)
    one = sa.create_engine(url, poolclass=sa.StaticPool, connect_args={"application_name": "one"})
    with engine.begin() as connection:
        assert len(rows(connection)) == 2
        driver: Any = connection.connection.driver_connection
        for target in (connection, driver):
            with pytest.raises(longshore.InterfaceError, match="same connection"):
                longshore.copy(
                    "SELECT generate_series(1, 5000) AS berth", connection, "boats", target, if_exists="append"
                )
        assert len(rows(connection)) == 2
    with pytest.raises(longshore.InterfaceError, match="for us alone"):
        rows(one)
    engine.dispose()
    one.dispose()


def test_sqlite_through_an_engine(tmp_path: Path) -> None:
    memory = sa.create_engine("sqlite://")
    # The thread of an awaited verb would have a database of its own there.
    with pytest.raises(longshore.InterfaceError, match="each thread"):
        asyncio.run(longshore.write_sql_async(BOATS, "boats", memory))
    file = sa.create_engine(f"sqlite:///{tmp_path / 'a.db'}", connect_args={"timeout": 3})
    assert longshore.write_sql(BOATS, "boats", file) == 2
    assert rows(file, "INSERT INTO boats VALUES (3, NULL) RETURNING berth") == [{"berth": 3}]
    assert len(rows(str(tmp_path / "a.db"))) == 3
    sa.event.listen(file, "engine_connect", lambda connection: connection.exec_driver_sql("DELETE FROM boats"))
    with pytest.raises(longshore.InterfaceError, match="a transaction is open"):
        longshore.write_sql(BOATS, "boats", file, if_exists="append")
    assert len(rows(str(tmp_path / "a.db"))) == 3
    static = sa.create_engine("sqlite://", poolclass=sa.StaticPool)
    with static.begin() as connection:
        connection.execute(sa.text("CREATE TABLE boats (berth INTEGER, name TEXT)"))
        with pytest.raises(longshore.InterfaceError, match="for us alone"):
            longshore.write_sql(BOATS, "boats", static, if_exists="append")
        assert longshore.write_sql(BOATS, "boats", connection, if_exists="append") == 2
        with pytest.raises(longshore.InterfaceError, match="same connection"):
            longshore.copy("SELECT * FROM boats", connection, "others", static)
    with static.connect() as connection:
        assert rows(connection) == BOATS.to_pylist()
    static.dispose()
    alone = sa.create_engine("sqlite://", isolation_level="AUTOCOMMIT")
    with alone.connect() as connection, pytest.raises(longshore.InterfaceError, match="autocommit"):
        rows(connection, "SELECT 1 AS n")
    for engine in (memory, file, alone):
        engine.dispose()


def test_engines_for_asyncio(url: sa.URL) -> None:
    engine = create_async_engine(url)

    async def read() -> None:
        assert (await longshore.read_sql_async("SELECT 1 AS n", engine))["n"].tolist() == [1]
        async with engine.connect() as connection:
            assert rows(connection) == BOATS.to_pylist()
            await connection.execute(sa.text("SELECT 1"))
            with pytest.raises(longshore.InterfaceError, match="for asyncio"):
                rows(connection)
        await engine.dispose()

    asyncio.run(read())


def test_what_is_refused_says_so_without_a_secret(url: sa.URL) -> None:
    engine = sa.create_engine(f"mysql+pymysql://me:{SECRET}@127.0.0.1:1/d?read_timeout=5")
    closed = sa.create_engine(url)
    with closed.connect() as connection:
        pass
    refused: list[tuple[Any, str]] = [
        (engine, "keys of the driver"),
        (connection, "closed"),
        (sa.orm.Session(closed), r"session\.connection\(\)"),
    ]
    for conn, told in refused:
        with pytest.raises(longshore.InterfaceError, match=told) as caught:
            longshore.connect(conn)
        assert SECRET not in str(caught.value)
    closed.dispose()
