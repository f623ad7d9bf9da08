"""Queries that are prepared once and run again: their rows are those of the text as it is now."""

import datetime as dt
from collections.abc import Callable

import pytest

import longshore
from tests.servers import MySQLEndpoint

PREPARED = "SHOW SESSION STATUS LIKE 'Com_stmt_prepare'"


def test_a_query_is_prepared_once(url: str) -> None:
    with longshore.connect(url) as connection, connection.cursor() as cursor:

        def prepared() -> int:
            return int(connection.cursor().execute(PREPARED).fetchall()[0][1])

        before = prepared()
        for _ in range(5):
            for number in range(4):
                assert cursor.execute(f"SELECT {number} AS n").fetchall() == [(number,)]
            connection.commit()
        # The question itself is prepared, too.
        assert prepared() - before == 4 + 1
        for number in range(20):
            cursor.execute(f"SELECT {number} AS n").fetchall()
        (_, kept), *_ = cursor.execute("SHOW STATUS LIKE 'Prepared_stmt_count'").fetchall()
        assert int(kept) < 20


def test_what_changes_a_text_has_it_prepared_again(server: MySQLEndpoint, tables: Callable[[str], None]) -> None:
    tables("CREATE TABLE ships (a int, b int); INSERT INTO ships VALUES (1, 2)")
    with longshore.connect(server.url(), autocommit=True) as connection, connection.cursor() as cursor:

        def rows(query: str) -> object:
            return cursor.execute(query).fetchall()

        query, quoted = "SELECT * FROM ships", 'SELECT "a" FROM ships'
        assert (rows(query), rows(query), rows(quoted)) == ([(1, 2)], [(1, 2)], [("a",)])
        # Another session's.
        server.sql("ALTER TABLE ships DROP a, MODIFY b varchar(9), ADD c date DEFAULT '2020-01-02'")
        assert rows(query) == rows(query) == [("2", dt.date(2020, 1, 2))]
        connection.execute("CREATE TEMPORARY TABLE ships (a int)")
        assert (rows(query), rows(quoted)) == ([], [])
        connection.execute("INSERT INTO ships VALUES (7)")
        assert rows(quoted) == [("a",)]
        connection.execute("SET SESSION sql_mode = CONCAT(@@sql_mode, ',ANSI_QUOTES')")
        assert rows(quoted) == rows(quoted) == [(7,)]
        connection.execute("SET SESSION sql_mode = ''")
        # In another database, another table.
        server.sql("CREATE DATABASE harbour; CREATE TABLE harbour.ships (z int); INSERT INTO harbour.ships VALUES (8)")
        try:
            assert rows(query) == rows(query) == [(7,)]
            connection.use_schema("harbour")
            assert rows(query) == rows(query) == [(8,)]
            # Types of variables are not kept.
            cursor.execute("SET @it = 1")
            assert rows("SELECT @it AS it") == [(1,)]
            cursor.execute("SET @it = 'one'")
            assert rows("SELECT @it AS it") == [("one",)]
            server.sql("DROP TABLE harbour.ships")
            with pytest.raises(longshore.ProgrammingError, match="ships' doesn't exist"):
                rows(query)
        finally:
            server.sql("DROP DATABASE harbour")


def test_a_column_of_schema_that_is_new(server: MySQLEndpoint, tables: Callable[[str], None]) -> None:
    tables("CREATE TABLE ships (a int); INSERT INTO ships VALUES (1)")
    query = "SELECT * FROM ships"
    with longshore.connect(server.url(), autocommit=True) as connection:
        assert longshore.read_sql(query, connection, return_type="arrow").num_columns == 1
        server.sql("ALTER TABLE ships ADD b int DEFAULT 2")
        found = longshore.read_sql(query, connection, return_type="arrow", schema={"b": "string"})
        assert found.to_pylist() == [{"a": 1, "b": "2"}]
