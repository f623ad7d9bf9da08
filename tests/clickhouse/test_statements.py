"""Statements: errors of the server, parameters of its own form, sessions, and what is not undone."""

import datetime as dt
from typing import TYPE_CHECKING, Any

import pytest

import longshore
from tests.servers import ClickHouse

if TYPE_CHECKING:
    from collections.abc import Callable


def test_an_error_has_the_class_of_its_number(place: str) -> None:
    for query, error, text in (
        ("SELECT nothing", longshore.ProgrammingError, "UNKNOWN_IDENTIFIER"),
        ("SELECT * FROM nowhere", longshore.ProgrammingError, "UNKNOWN_TABLE"),
        ("SELECT toInt8('x')", longshore.DataError, "CANNOT_PARSE_TEXT"),
        ("SELECT 1 SETTINGS max_execution_tyme = 1", longshore.ProgrammingError, "UNKNOWN_SETTING"),
        ("SELECT throwIf(number = 3000000, 'the sea') FROM numbers(4000000)", longshore.DataError, "the sea"),
    ):
        with pytest.raises(error, match=text):
            longshore.read_sql(query, place)


def test_a_result_in_another_format_is_refused(place: str) -> None:
    with pytest.raises(longshore.Error, match="FORMAT"):
        longshore.read_sql("SELECT 1 FORMAT CSV", place)


def test_the_password_is_the_servers_to_refuse(clickhouse: ClickHouse) -> None:
    with pytest.raises(longshore.OperationalError, match="Authentication failed") as caught:
        longshore.read_sql("SELECT 1", clickhouse.url(password="wr0ng"))
    assert "wr0ng" not in str(caught.value)


def test_settings_are_the_servers(place: str) -> None:
    assert longshore.read_sql("SELECT getSetting('max_threads') AS n", f"{place}?max_threads=3")["n"].tolist() == [3]
    with pytest.raises(longshore.ProgrammingError, match="max_treads"):
        longshore.read_sql("SELECT 1", f"{place}?max_treads=3")
    with pytest.raises(longshore.InterfaceError, match="secure is true or false"):
        longshore.read_sql("SELECT 1", f"{place}?secure=maybe")


def test_parameters_of_both_forms(place: str) -> None:
    query = "SELECT\u00a0{n:UInt8} +\u3000:m AS n, ':m $1 {n:UInt8}' AS t, 1::Int8 AS c, [:m, 2] AS l -- :q"
    found = longshore.read_sql(query, place, params={"n": 3, "m": 4}, return_type="arrow").to_pylist()
    assert found == [{"n": 7, "t": ":m $1 {n:UInt8}", "c": 1, "l": [4, 2]}]
    values = [
        2**200,
        [1, None, 3],
        ["a'b\\", None],
        dt.datetime(2020, 1, 1, 0, 0, 0, 5, tzinfo=dt.UTC),
        float("inf"),
        [],
    ]
    for value in values:
        found = longshore.read_sql("SELECT $1 AS v", place, params=[value], return_type="arrow")["v"].to_pylist()
        assert found == [value]
    for value in (dt.datetime(2020, 1, 1), dt.timedelta(1), [1, "a"], 2**300):  # noqa: DTZ001  naive
        with pytest.raises((longshore.Error, TypeError, ValueError)):
            longshore.read_sql("SELECT $1 AS v", place, params=[value])


@pytest.mark.parametrize("session", ["true", "false"])
def test_a_session_keeps_what_is_set(place: str, session: str) -> None:
    with longshore.connect(f"{place}?session={session}", autocommit=True) as connection:
        connection.execute("CREATE TEMPORARY TABLE own (n Int8)")
        query: Any = "SELECT count() AS n FROM own"
        if session == "true":
            assert longshore.read_sql(query, connection)["n"].tolist() == [0]
            connection.execute_script("INSERT INTO own VALUES (1); SET max_threads = 7; -- ;\n")
            assert longshore.read_sql("SELECT getSetting('max_threads') AS n", connection)["n"].tolist() == [7]
        else:
            with pytest.raises(longshore.ProgrammingError, match="UNKNOWN_TABLE"):
                longshore.read_sql(query, connection)
            with pytest.raises(longshore.NotSupportedError, match="session"):
                longshore.write_sql({"n": [1]}, "boats", connection)


def test_writing_needs_autocommit(place: str) -> None:
    with longshore.connect(place) as connection:
        assert longshore.read_sql("SELECT 1 AS n", connection)["n"].tolist() == [1]
        writes: list[Callable[[], Any]] = [
            lambda: connection.execute("CREATE TABLE boats (n Int8)"),
            lambda: longshore.write_sql({"n": [1]}, "boats", connection),
            lambda: connection.cursor().executemany("INSERT INTO boats VALUES (?)", [(1,)]),
        ]
        for write in writes:
            with pytest.raises(longshore.NotSupportedError, match="no transactions") as caught:
                write()
            assert "autocommit=True" in (caught.value.hint or "")
        connection.rollback()


def test_an_insert_tells_its_rows(place: str) -> None:
    with longshore.connect(place, autocommit=True) as connection:
        connection.execute("CREATE TABLE boats (n Int64)")
        assert connection.execute("INSERT INTO boats SELECT number FROM numbers(7)") == 7
        assert connection.execute("ALTER TABLE boats DELETE WHERE n = 1") is None


def test_the_catalogue(place: str) -> None:
    longshore.write_sql({"id": [1], "name": ["a"]}, "moorings", place, key="id")
    with longshore.connect(place, autocommit=True) as connection:
        listed = [row["table_name"] for row in connection.tables().to_pylist() if row["table_name"] == "moorings"]
        assert listed == ["moorings"]
        assert connection.table_schema("moorings").names == ["id", "name"]
        objects = connection.objects(table="moorings").to_pylist()
        (found,) = [
            table for each in objects for schema in each["catalog_db_schemas"] for table in schema["db_schema_tables"]
        ]
        assert [column["xdbc_type_name"] for column in found["table_columns"]] == ["Int64", "Nullable(String)"]
        assert [each["constraint_column_names"] for each in found["table_constraints"]] == [["id"]]
