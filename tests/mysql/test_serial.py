"""Reads that must not be split, and what they say."""

from collections.abc import Callable
from typing import Any

import pytest

import longshore
from tests.mysql.comparing import ROWS, Options, in_parts, rows, serially
from tests.mysql.reading import table
from tests.servers import MySQLEndpoint

Tables = Callable[[str], None]


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT * FROM parted LIMIT 10", "LIMIT"),
        ("SELECT * FROM (SELECT * FROM parted LIMIT 10) AS s", "LIMIT"),
        ("SELECT id, rand() AS r FROM parted", "rand"),
        ("SELECT id, uuid() AS r FROM parted", "uuid"),
        ("SELECT id, now() AS n FROM parted", "now"),
        ("SELECT id, sysdate() AS n FROM parted", "sysdate"),
        ("SELECT id, current_timestamp AS n FROM parted", "current_timestamp"),
        ("SELECT id, curdate() AS n FROM parted", "curdate"),
        ("SELECT id FROM parted WHERE at < utc_timestamp()", "utc_timestamp"),
        ("SELECT id, unix_timestamp() AS n FROM parted", "unix_timestamp"),
        ("SELECT id, connection_id() AS n FROM parted", "connection_id"),
        ("SELECT id, last_insert_id() AS n FROM parted", "last_insert_id"),
        ("SELECT id, @v := id AS n FROM parted", "variable"),
        ("SELECT id, @v AS n FROM parted", "variable"),
        ("SELECT * FROM parted FOR UPDATE", "FOR UPDATE"),
        ("SELECT * FROM parted LOCK IN SHARE MODE", "FOR SHARE"),
        ("SELECT id, row_number() OVER (ORDER BY k) AS n FROM parted", "window"),
        ("SELECT id, get_lock('longshore', 0) AS n FROM parted", "get_lock"),
        ("SELECT id, sleep(0) AS n FROM parted", "sleep"),
    ],
)
@pytest.mark.parametrize("on", [None, "id"])
def test_serial_reasons(query: str, reason: str, on: str | None, filled: str, together: Options) -> None:
    with pytest.warns(longshore.SerialReadWarning) as caught:
        result = table(query, filled, partition_num=3, partition_on=on, options=together)
    assert reason.lower() in str(caught[0].message).lower()
    assert result.num_rows == (10 if "LIMIT" in query else ROWS)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM parted ORDER BY word DESC",
        "SELECT k, count(*) AS n FROM parted GROUP BY k",
        "SELECT count(*) AS n FROM parted",
        "SELECT p.id FROM parted AS p JOIN small USING (id)",
        "SELECT DISTINCT k FROM parted",
        "SELECT id FROM parted UNION SELECT id FROM small",
        "SELECT id FROM bare",
        "SELECT * FROM (SELECT id FROM parted) AS s",
        "SHOW TABLES",
    ],
)
def test_what_needs_a_column_is_serial_without_one(query: str, filled: str, together: Options) -> None:
    with pytest.warns(longshore.SerialReadWarning):
        result = table(query, filled, partition_num=3, options=together)
    assert rows(result) == rows(table(query, filled))


def test_a_function_of_the_users(server: MySQLEndpoint, filled: str, together: Options) -> None:
    server.sql("""SET GLOBAL log_bin_trust_function_creators = 1; DROP FUNCTION IF EXISTS rolled;
        CREATE FUNCTION rolled() RETURNS double NOT DETERMINISTIC NO SQL RETURN rand()""")
    query = "SELECT id FROM parted WHERE rolled() < 0.5"
    with pytest.warns(longshore.SerialReadWarning, match="rolled"):
        table(query, filled, partition_on="id", partition_num=2, options=together)
    server.sql("DROP FUNCTION rolled")


def test_a_view(tables: Tables, filled: str, together: Options) -> None:
    tables("CREATE VIEW simple AS SELECT id, word FROM parted WHERE id < 1000")
    for on in ("id", None):
        arguments: dict[str, Any] = {"partition_on": on, "partition_num": 2, "options": together}
        assert serially("is a view", "SELECT * FROM simple", filled, **arguments).num_rows == 999


@pytest.mark.filterwarnings("ignore:the server warns.*1260:longshore.DataWarning")
def test_settings_that_would_hold_for_each_part(filled: str, together: Options) -> None:
    query, arguments = "SELECT id FROM parted", {"partition_num": 2, "options": together}
    limited = serially("sql_select_limit", query, filled, pre_execution_query="SET sql_select_limit = 5", **arguments)
    assert limited.num_rows == 5
    query = "SELECT k, group_concat(word ORDER BY id) AS list FROM parted WHERE k {} 3 GROUP BY k"
    setting = "SET group_concat_max_len = 100"
    halves: Any = [query.format("<"), query.format(">=")]
    serial = [row for half in halves for row in rows(table(half, filled, pre_execution_query=setting))]
    cut = serially("group_concat_max_len", halves, filled, pre_execution_query=setting, options=together)
    assert sorted(rows(cut)) == sorted(serial)


def test_every_sql_mode(make_mysqld: Callable[..., MySQLEndpoint]) -> None:
    server = make_mysqld(config={"sql-mode": "ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT"})
    server.sql("""CREATE TABLE parted (id int PRIMARY KEY, k varchar(9));
        INSERT INTO parted VALUES (1, 'a'), (2, 'b'), (3, 'a'), (4, NULL), (5, 'x')""")
    url, lock = server.url(), {"lock": True}
    for query in (
        "SELECT k, id AS n FROM parted",
        "SELECT `k`, k || '-' AS q FROM parted AS `p` WHERE id < 5",
    ):
        in_parts(query, url, lock, partition_on="k", partition_num=2)
    for query, reason in (
        ('SELECT "k", "id" AS "n" FROM "parted"', "ANSI_QUOTES"),
        ('SELECT "k", "k" || \'"\' AS "q" FROM "parted" AS "p" WHERE "id" < 5', "ANSI_QUOTES"),
        ("SELECT k FROM parted WHERE k <> '\\'", "NO_BACKSLASH_ESCAPES"),
    ):
        result = serially(reason, query, url, partition_on="k", partition_num=2, options=lock)
        assert rows(result) == rows(table(query, url))


def test_without_a_common_snapshot_it_is_serial(filled: str, is_mariadb: bool) -> None:  # noqa: FBT001
    query = "SELECT * FROM parted"
    if is_mariadb:
        in_parts(query, filled, {}, partition_num=2)
        return
    result = serially("lock", query, filled, partition_num=2)
    assert result.num_rows == ROWS


def test_without_a_snapshot_when_asked(filled: str) -> None:
    in_parts("SELECT * FROM parted", filled, {"snapshot": False}, partition_num=3)


def test_without_a_binary_log(make_mysqld: Callable[..., MySQLEndpoint]) -> None:
    server = make_mysqld(config={"skip-log-bin": None})
    server.sql("CREATE TABLE parted (id int PRIMARY KEY); INSERT INTO parted VALUES (1), (2), (3), (4)")
    assert server.sql("SELECT @@log_bin") == [(0,)]
    assert serially("lock", "SELECT * FROM parted", server.url(), partition_num=2).num_rows == 4
    in_parts("SELECT * FROM parted", server.url(), {"lock": True}, partition_num=2)


def test_a_table_without_snapshots(tables: Tables, url: str, together: Options) -> None:
    tables("CREATE TABLE isam (id int PRIMARY KEY) ENGINE=MyISAM; INSERT INTO isam VALUES (1), (2), (3), (4), (5)")
    result = serially("MyISAM", "SELECT * FROM isam", url, partition_num=2, options=together)
    assert result.num_rows == 5


def test_a_lock_is_not_kept(server: MySQLEndpoint, filled: str) -> None:
    stream = longshore.read_sql(
        "SELECT * FROM parted",
        filled,
        return_type="arrow_stream",
        partition_num=2,
        batch_size=10,
        options={"lock": True},
    )
    next(iter(stream))
    # While the parts are read, others write.
    server.sql("CREATE TABLE written (i int); INSERT INTO written VALUES (1); DROP TABLE written")
    stream.close()


def test_a_lock_that_may_not_be_taken(server: MySQLEndpoint, filled: str, is_mariadb: bool) -> None:  # noqa: FBT001
    del filled
    server.sql("DROP USER IF EXISTS meek; CREATE USER meek; GRANT SELECT ON test.* TO meek")
    arguments: dict[str, Any] = {"partition_num": 2, "options": {"lock": True}}
    query, url = "SELECT * FROM parted", server.url(user="meek")
    # MariaDB has one snapshot without a lock.
    result = table(query, url, **arguments) if is_mariadb else serially("", query, url, **arguments)
    assert result.num_rows == ROWS
    server.sql("DROP USER meek")
