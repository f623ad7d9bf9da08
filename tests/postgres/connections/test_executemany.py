"""`executemany` in PostgreSQL: whatever the table, the outcome is that of one INSERT after the other."""

import datetime as dt
import uuid
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

import longshore

#: Tables whose outcome would be another by one INSERT of all rows, and some where it is the same.
TABLES = {
    "plain": "CREATE TABLE t (a int, b text)",
    "a column of its own": "CREATE TABLE t (a int, b text, n serial, c int DEFAULT 7)",
    "identity": "CREATE TABLE t (a int, b text, n int GENERATED ALWAYS AS IDENTITY (START 5))",
    "generated": "CREATE TABLE t (a int, b text, n int GENERATED ALWAYS AS (a * 2) STORED)",
    "check": "CREATE TABLE t (a int CHECK (a < 90), b text)",
    "unique": "CREATE TABLE t (a int UNIQUE, b text)",
    "narrow": "CREATE TABLE t (a smallint, b varchar(4))",
    "padded": "CREATE TABLE t (a numeric(5, 1), b char(6))",
    "partitions": "CREATE TABLE t (a int, b text) PARTITION BY RANGE (a); "
    "CREATE TABLE t_low PARTITION OF t FOR VALUES FROM (MINVALUE) TO (20); "
    "CREATE TABLE t_high PARTITION OF t FOR VALUES FROM (20) TO (MAXVALUE)",
    "domain": "CREATE DOMAIN d AS int CHECK (VALUE < 90); CREATE TABLE t (a d, b text)",
    "view": "CREATE TABLE u (a int, b text); CREATE VIEW t AS SELECT * FROM u WHERE a < 50",
    "rule": "CREATE TABLE log (n bigint); CREATE TABLE t (a int, b text); "
    "CREATE RULE r AS ON INSERT TO t DO ALSO INSERT INTO log SELECT count(*) FROM t",
    "rule instead": "CREATE TABLE t (a int, b text); "
    "CREATE RULE r AS ON INSERT TO t WHERE new.a > 10 DO INSTEAD NOTHING",
    "statement trigger": "CREATE TABLE log (n bigint); CREATE TABLE t (a int, b text); "
    "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS "
    "$$ BEGIN INSERT INTO log SELECT count(*) FROM t; RETURN NULL; END $$; "
    "CREATE TRIGGER g AFTER INSERT ON t FOR EACH STATEMENT EXECUTE FUNCTION f()",
    "row trigger": "CREATE TABLE t (a int, b text); CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS "
    "$$ BEGIN new.a := (SELECT count(*) FROM t); RETURN new; END $$; "
    "CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION f()",
    "default of rows before": "CREATE TABLE t (a int, b text, n bigint); "
    "CREATE FUNCTION f() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM t'; "
    "ALTER TABLE t ALTER n SET DEFAULT f()",
    "check of rows before": "CREATE TABLE t (a int, b text); "
    "CREATE FUNCTION f() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM t'; "
    "ALTER TABLE t ADD CHECK (f() < 20)",
    "domain with a default of rows before": "CREATE TABLE t (a int, b text); "
    "CREATE FUNCTION f() RETURNS int LANGUAGE sql STABLE AS 'SELECT count(*)::int FROM t'; "
    "CREATE DOMAIN d AS int DEFAULT f(); ALTER TABLE t ADD n d",
    "domain within a composite": "CREATE TABLE t (a int, b text); "
    "CREATE FUNCTION f(int) RETURNS bool LANGUAGE sql STABLE AS 'SELECT count(*) < 20 FROM t'; "
    "CREATE DOMAIN d AS int CHECK (f(VALUE)); CREATE TYPE c AS (v d); ALTER TABLE t ADD n c DEFAULT ROW(1)",
    "when the statement began": "CREATE TABLE t (a int, b text, n bool); ALTER TABLE t ALTER n SET DEFAULT "
    "statement_timestamp() = transaction_timestamp()",
    "foreign key to itself": "CREATE TABLE t (a int PRIMARY KEY, b text, p int GENERATED ALWAYS AS (99 - a) STORED); "
    "ALTER TABLE t ADD FOREIGN KEY (p) REFERENCES t",
    "policy": "CREATE TABLE t (a int, b text); ALTER TABLE t ENABLE ROW LEVEL SECURITY; "
    "ALTER TABLE t FORCE ROW LEVEL SECURITY; CREATE POLICY p ON t USING (true) WITH CHECK (a < 90)",
}
ROWS = [(n, None if n % 9 == 0 else f"{n}") for n in range(0, 100, 3)]
INSERT = "INSERT INTO t (a, b) VALUES ($1, $2)"


@pytest.fixture
def connection(url: str) -> Iterator[longshore.Connection]:
    """Give a connection whose tables go with the test."""
    with longshore.connect(url) as connection:
        name = f"many_{uuid.uuid4().hex[:8]}"
        connection.execute(f"CREATE SCHEMA {name}")
        connection.execute(f"SET LOCAL search_path = {name}")
        yield connection
        connection.rollback()


def outcome(connection: longshore.Connection, table: str, *, at_once: bool) -> Any:
    """Return what the INSERTs do: the rows of all tables, or the error."""
    with connection.cursor() as cursor:
        connection.execute("SAVEPOINT before")
        connection.execute_script(table)
        try:
            if at_once:
                count = cursor.executemany(INSERT, ROWS).rowcount
            else:
                count = sum(cursor.execute(INSERT, row).rowcount for row in ROWS)
            found = [cursor.execute("TABLE t").fetchall(), count]
            if " log " in table:
                found.append(cursor.execute("TABLE log").fetchall())
        except longshore.DatabaseError as error:
            found = [type(error), error.sqlstate]
        connection.execute("ROLLBACK TO before")
    return found


@pytest.mark.parametrize("name", TABLES)
def test_the_outcome_is_that_of_single_inserts(connection: longshore.Connection, name: str) -> None:
    found = outcome(connection, TABLES[name], at_once=True)
    assert found == outcome(connection, TABLES[name], at_once=False)


def test_values_are_those_of_single_inserts(connection: longshore.Connection) -> None:
    connection.execute(
        "CREATE TABLE t (i int8, f float8, n numeric, t text, b bytea, d date, z timestamptz, u uuid, j jsonb, o bool, "
        "v interval, l int[])"
    )
    row = (
        *(-(2**63), -0.1, Decimal("1.50"), 'a "quoted\\" {text}, NULL', b'\x00"\\', dt.date(1, 1, 1)),
        *(
            dt.datetime(2020, 1, 1, tzinfo=dt.UTC),
            uuid.UUID(int=7),
            {"a": ['"', None]},
            True,
            dt.timedelta(1),
            [1, None],
        ),
    )
    rows = [row, (None,) * 12, (0, float("nan"), Decimal("NaN"), "NULL", b"", None, None, None, "[]", False, None, [])]
    places = ", ".join(f"${n}" for n in range(1, 13))
    with connection.cursor() as cursor:
        # With a column of arrays they go one by one, without it by arrays.
        assert cursor.executemany(f"INSERT INTO t VALUES ({places})", rows * 10).rowcount == 30
        one_by_one = cursor.execute("SELECT t::text FROM t").fetchall()
        cursor.execute("ALTER TABLE t DROP l")
        cursor.execute("TRUNCATE t")
        places = ", ".join(f"${n}" for n in range(1, 12))
        sets = [each[:-1] for each in rows * 10]
        assert cursor.executemany(f"INSERT INTO t VALUES ({places})", sets).rowcount == 30
        by_arrays = cursor.execute("SELECT t::text FROM t").fetchall()
        cursor.execute("TRUNCATE t")
        for each in sets:
            cursor.execute(f"INSERT INTO t VALUES ({places})", each)
        assert by_arrays == cursor.execute("SELECT t::text FROM t").fetchall()
        assert len(one_by_one) == len(by_arrays) == 30


def test_a_value_that_does_not_fit_names_its_parameter(connection: longshore.Connection) -> None:
    connection.execute("CREATE TABLE t (a timestamptz, b text)")
    naive = dt.datetime(2020, 1, 1)  # noqa: DTZ001  on purpose
    with (
        pytest.raises(longshore.DataError, match=r"parameter \$1: the value does not fit timestamptz"),
        connection.cursor() as cursor,
    ):
        cursor.executemany(INSERT, [(None, "a")] * 30 + [(naive, "b")])
    # Nothing was sent: the transaction goes on.
    assert connection.cursor().execute("TABLE t").fetchall() == []
