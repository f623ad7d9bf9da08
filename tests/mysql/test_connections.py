"""Connections, transactions and pools."""

from collections.abc import Callable

import pyarrow as pa
import pytest

import longshore
from tests.mysql.reading import column, connections, numbers, table, value, wait
from tests.servers import Mysqld, MySQLEndpoint

Tables = Callable[[str], None]
COUNT = "SELECT count(*) AS n FROM t"


@pytest.fixture
def here(url: str, tables: Tables) -> str:
    """Give the URL of a server with an empty table `t`."""
    tables("CREATE TABLE t (i int PRIMARY KEY, word text)")
    return url


def test_autocommit_and_by_hand(here: str) -> None:
    with longshore.connect(here, autocommit=True) as connection:
        connection.execute("INSERT INTO t VALUES (1, 'a')")
        assert connection.in_transaction is False
        connection.execute("START TRANSACTION")
        assert connection.in_transaction is True
        connection.execute("INSERT INTO t VALUES (2, 'b')")
        connection.execute("SAVEPOINT s")
        connection.execute("INSERT INTO t VALUES (3, 'c')")
        connection.execute("ROLLBACK TO SAVEPOINT s")
        connection.execute("COMMIT")
        assert connection.in_transaction is False
    assert value(COUNT, here) == 2


def test_with_rolls_back_after_an_exception(here: str) -> None:
    with pytest.raises(KeyError), longshore.connect(here) as connection:  # noqa: PT012
        connection.execute("INSERT INTO t VALUES (1, 'a')")
        raise KeyError
    assert value(COUNT, here) == 0
    with longshore.connect(here) as connection:
        connection.execute("INSERT INTO t VALUES (1, 'a')")
    assert value(COUNT, here) == 1


def test_a_failed_statement_leaves_the_connection(here: str) -> None:
    with longshore.connect(here) as connection:
        connection.execute("INSERT INTO t VALUES (1, 'a')")
        with pytest.raises(longshore.IntegrityError, match="1062") as caught:
            connection.execute("INSERT INTO t VALUES (1, 'b')")
        assert caught.value.sqlstate == "23000"
        # The server has undone that statement alone, and the transaction goes on.
        assert column("SELECT word FROM t", connection) == ["a"]
        connection.commit()
    assert value(COUNT, here) == 1


def test_temporary_tables_and_settings(here: str) -> None:
    with longshore.connect(here) as connection:
        connection.execute("CREATE TEMPORARY TABLE z AS SELECT 5 AS five")
        connection.execute("SET @seven = 7")
        (row,) = table("SELECT five, @seven AS seven FROM z", connection).to_pylist()
    assert row == {"five": 5, "seven": 7}


def test_a_pool_gives_sessions_like_new(here: str) -> None:
    with longshore.Pool(here, size=1) as pool:
        before = [
            "SET @seven = 7",
            "CREATE TEMPORARY TABLE z (i int)",
            "SET sql_mode = 'ANSI'",
            "SET time_zone = '+02:00'",
        ]
        first = value("SELECT connection_id() AS i", pool, pre_execution_query=before)
        query = "SELECT connection_id() AS i, @seven AS seven, @@time_zone AS zone, @@sql_mode AS mode"
        (row,) = table(query, pool).to_pylist()
        assert (row["i"], row["seven"], row["zone"]) == (first, None, "+00:00")
        assert "ANSI" not in row["mode"]
        with pytest.raises(longshore.ProgrammingError, match="1146"):
            table("SELECT * FROM z", pool)
        assert value("SELECT 'größe' AS g", pool) == "größe"


def test_a_pool_replaces_what_has_died(here: str, server: MySQLEndpoint) -> None:
    with longshore.Pool(here, size=1) as pool:
        number = value("SELECT connection_id() AS i", pool)
        server.sql(f"KILL {number}")
        wait(lambda: not server.sql(f"SELECT 1 FROM information_schema.processlist WHERE id = {number}"))
        assert value("SELECT connection_id() AS i", pool) != number


def test_a_connection_that_is_killed(here: str, server: MySQLEndpoint) -> None:
    connection = longshore.connect(here)
    number = value("SELECT connection_id() AS i", connection)
    server.sql(f"KILL {number}")
    with pytest.raises(longshore.OperationalError) as caught:
        table("SELECT 1", connection)
    assert caught.value.hint
    assert connection.closed
    connection.close()


def test_a_stream_and_then_the_next(here: str) -> None:
    with longshore.connect(here) as connection:
        query = f"{numbers(200_000)} SELECT i, repeat('x', 100) AS t FROM numbers"
        stream = longshore.read_sql(query, connection, return_type="arrow_stream", batch_size=1000)
        next(iter(stream))
        with pytest.raises(longshore.InterfaceError):
            table("SELECT 1", connection)
        stream.close()
        assert value("SELECT 42 AS n", connection) == 42


def test_calls(here: str, server: MySQLEndpoint) -> None:
    server.sql("DROP PROCEDURE IF EXISTS one_result; CREATE PROCEDURE one_result(n int) SELECT n AS n, 'x' AS x")
    server.sql("DROP PROCEDURE IF EXISTS two_results; CREATE PROCEDURE two_results() BEGIN SELECT 1; SELECT 2; END")
    server.sql(
        "DROP PROCEDURE IF EXISTS fails; CREATE PROCEDURE fails() BEGIN SELECT 1 AS n; SIGNAL SQLSTATE '45000'; END"
    )
    with longshore.connect(here) as connection:
        assert table("CALL one_result(7)", connection).to_pylist() == [{"n": 7, "x": "x"}]
        assert table("CALL one_result(?)", connection, params=[8]).to_pylist() == [{"n": 8, "x": "x"}]
        # A second result would be lost without a word.
        with pytest.raises(longshore.Error):
            table("CALL two_results()", connection)
        with pytest.raises(longshore.DatabaseError, match="45000"):
            table("CALL fails()", connection)
        assert value("SELECT 42 AS n", connection) == 42
    for name in ("one_result", "two_results", "fails"):
        server.sql(f"DROP PROCEDURE {name}")


@pytest.mark.parametrize(
    "query",
    ["SHOW DATABASES", "SHOW CREATE TABLE t", "EXPLAIN SELECT * FROM t", "DESCRIBE t", "SHOW VARIABLES", "SHOW GRANTS",
     "CHECK TABLE t", "ANALYZE TABLE t", "SHOW WARNINGS", "SHOW PROCESSLIST"],
)  # fmt: skip
@pytest.mark.parametrize("protocol", ["binary", "text"])
def test_statements_that_are_no_queries(query: str, protocol: str, here: str) -> None:
    result = table(query, here, options={"protocol": protocol})
    assert result.num_columns >= 1


def test_statements_without_a_result(here: str) -> None:
    with longshore.connect(here) as connection:
        for query in ("INSERT INTO t VALUES (1, 'a')", "SET @a = 1", "DO 1"):
            with pytest.raises(longshore.Error):
                table(query, connection)
        assert connection.execute("INSERT INTO t VALUES (5, 'e')") == 1
        assert connection.execute("SELECT * FROM t WHERE i = 5") in {1, None}
        connection.rollback()


def test_a_server_that_ends(make_mysqld: Callable[..., Mysqld]) -> None:
    server = make_mysqld()
    query = f"{numbers(900_000)} SELECT i, repeat('x', 500) AS t FROM numbers"
    stream = longshore.read_sql(query, server.url(), return_type="arrow_stream", batch_size=1000)
    reader = pa.RecordBatchReader.from_stream(stream)
    reader.read_next_batch()
    connection = longshore.connect(server.url())
    server.kill()
    with pytest.raises((pa.ArrowException, OSError)):
        for _ in reader:
            pass
    with pytest.raises(longshore.OperationalError):
        table("SELECT 1", connection)
    assert connection.closed
    connection.close()
    server.start()
    assert value("SELECT 1 AS n", server.url()) == 1


def test_nothing_is_left_behind(server: MySQLEndpoint) -> None:
    server.sql("DROP USER IF EXISTS counted; CREATE USER counted; GRANT SELECT ON test.* TO counted")
    url = server.url(user="counted")
    for _ in range(20):
        assert value("SELECT 1", url) == 1
    with pytest.raises(longshore.ProgrammingError):
        table("SELECT nothing", url)
    longshore.connect(url).close()
    wait(lambda: connections(server, "counted") == 0)
    server.sql("DROP USER counted")
