"""Writing into Oracle through a fake of its driver."""

import datetime as dt
import decimal
from typing import Any

import oracledb
import pyarrow as pa
import pytest

import longshore
from tests.oracle.conftest import URL
from tests.oracle.fake import Database, Info, error
from tests.quirks import UUID

UTC = dt.UTC
D = decimal.Decimal
timestamp = dt.datetime.fromisoformat
NUMBER, VARCHAR, RAW = oracledb.DB_TYPE_NUMBER, oracledb.DB_TYPE_VARCHAR, oracledb.DB_TYPE_RAW

TABLE = '"BOATS"'


def test_a_new_table_and_what_is_bound(database: Database) -> None:
    table = pa.table(
        {
            "id": pa.array([1, None], pa.int64()),
            "name": ["a", None],
            "price": pa.array([D("1.5"), None], pa.decimal128(10, 2)),
            "Weight": [0.5, None],
            "at": pa.array([dt.datetime(2024, 1, 1, 0, 0, 0, 5, UTC), None], pa.timestamp("us", "UTC")),
            "span": pa.array([dt.timedelta(microseconds=-5), None]),
            "small": pa.array([True, None]),
        }
    )
    assert longshore.write_sql(table, "boats", URL) == 2
    assert database.log[0] == (
        'CREATE TABLE "BOATS" ("ID" NUMBER(19,0), "NAME" VARCHAR2(4000), "PRICE" NUMBER(10,2), "Weight" BINARY_DOUBLE, '
        '"AT" TIMESTAMP(6) WITH TIME ZONE, "SPAN" INTERVAL DAY(9) TO SECOND(6), "SMALL" NUMBER(1,0))'
    )
    ((statement, rows),) = database.written
    assert statement == (
        'INSERT INTO "BOATS" ("ID", "NAME", "PRICE", "Weight", "AT", "SPAN", "SMALL") '
        "VALUES (:1, :2, :3, :4, FROM_TZ(:5, 'UTC'), NUMTODSINTERVAL(:6, 'SECOND'), :7)"
    )
    first, second = rows.to_pylist()
    assert list(first.values()) == [1, "a", D("1.50"), 0.5, timestamp("2024-01-01 00:00:00.000005"), D("-0.000005"), 1]
    assert set(second.values()) == {None}
    assert database.log[1:] == [statement, "COMMIT", "close"]


def test_texts_views_and_extensions(database: Database) -> None:
    database.tables[TABLE] = [Info("A", NUMBER), Info("B", NUMBER, 38, 37), Info("C", VARCHAR), Info("D", RAW)]
    exact = "1.2345678901234567890123456789012345678"
    table = pa.table(
        {
            "a": ["-1.5e3", " .25 "],
            "b": [exact, None],
            "c": pa.array(["more than twelve bytes", None], pa.string_view()),
            "d": pa.array([b"\0" * 16, None], pa.binary(16)).cast(UUID),
        }
    )
    longshore.write_sql(table, "boats", URL, if_exists="append")
    ((_, rows),) = database.written
    assert [column.to_pylist() for column in rows.columns] == [
        [D("-1500.00"), D("0.25")],
        [D(exact), None],
        ["more than twelve bytes", None],
        [b"\0" * 16, None],
    ]
    longshore.write_sql(pa.table({"d": table["d"]}), "others", URL)
    assert 'CREATE TABLE "OTHERS" ("D" RAW(16))' in database.log


def test_floats_of_any_size_go_into_a_number_without_a_scale(database: Database) -> None:
    database.tables[TABLE] = [Info("C", NUMBER)]
    longshore.write_sql(pa.table({"c": [1e100, 1e-100]}), "boats", URL, if_exists="append")
    assert database.written[0][1].columns[0].to_pylist() == [1e100, 1e-100]


def test_an_error_of_a_column_names_it(database: Database) -> None:
    database.tables[TABLE] = [Info("C", VARCHAR)]
    text = 'value too large for column "SCOTT"."BOATS"."C" (actual: 9, maximum: 5)'
    database.failures["INSERT"] = error(12899, text, offset=1)
    with pytest.raises(longshore.DataError, match="ORA-12899") as caught:
        longshore.write_sql(pa.table({"c": ["a", "too long."]}), "boats", URL, if_exists="append")
    assert (caught.value.column, caught.value.row) == ("c", 1)


REFUSED = [
    (Info("C", VARCHAR), pa.array(["a", ""]), "would become NULL"),
    (Info("C", oracledb.DB_TYPE_BLOB), pa.array([b"a", b""]), "would become NULL"),
    (Info("C", NUMBER, 5, 1), pa.array([0.5, 0.25]), "would round"),
    (Info("C", NUMBER), pa.array([0.5, float("nan")]), "no NaN"),
    (Info("C", NUMBER), pa.array(["-1.5e3", "1_0"]), "not a number"),
    (Info("C", NUMBER, 5, 1), pa.array([" .5 ", "0.25"]), "would round"),
    (Info("C", NUMBER, 5, 1), pa.array([D("0.50"), D("0.25")]), "would change it"),
    (Info("C", NUMBER, 3, -2), pa.array([100, 110]), "would change it"),
    (Info("C", oracledb.DB_TYPE_BINARY_FLOAT), pa.array([0.5, 0.1]), "would round"),
    (Info("C", oracledb.DB_TYPE_BINARY_DOUBLE), pa.array([1, 2**53 + 1]), "would round"),
    (Info("C", oracledb.DB_TYPE_DATE), pa.array([0, 1], pa.timestamp("us")), "would change it"),
    (Info("C", oracledb.DB_TYPE_TIMESTAMP, scale=3), pa.array([1000, 1], pa.timestamp("us")), "would round"),
    (Info("C", oracledb.DB_TYPE_TIMESTAMP, scale=9), pa.array([1000, 1], pa.timestamp("ns")), "would change it"),
]


@pytest.mark.parametrize(
    ("info", "values", "says"), REFUSED, ids=[f"{case[0].type_code.name}-{case[2]}" for case in REFUSED]
)
def test_what_a_column_would_change_is_refused(info: Info, values: pa.Array, says: str, database: Database) -> None:
    database.tables[TABLE] = [info]
    with pytest.raises(longshore.DataError, match=says) as caught:
        longshore.write_sql(pa.table({"c": values}), "boats", URL, if_exists="append")
    assert (caught.value.column, caught.value.row) == ("c", 1)
    assert database.written == []
    assert "ROLLBACK" in database.log


@pytest.mark.parametrize(
    ("code", "values"),
    [
        (NUMBER, pa.array([b"1"])),
        (VARCHAR, pa.array([1])),
        (oracledb.DB_TYPE_TIMESTAMP, pa.array([1], pa.timestamp("us", "UTC"))),
        (oracledb.DB_TYPE_TIMESTAMP_TZ, pa.array([1], pa.timestamp("us"))),
        (oracledb.DB_TYPE_DATE, pa.array([1], pa.time64("us"))),
    ],
)
def test_a_type_that_the_column_does_not_take_is_refused(code: Any, values: pa.Array, database: Database) -> None:
    database.tables[TABLE] = [Info("C", code)]
    with pytest.raises(longshore.NotSupportedError, match="does not go into a column") as caught:
        longshore.write_sql(pa.table({"c": values}), "boats", URL, if_exists="append")
    assert caught.value.column == "c"


def test_a_type_without_a_column_is_refused_before_a_table_is_made(database: Database) -> None:
    table = pa.table({"a": pa.array([[0.5]], pa.large_list(pa.float32()))})
    with pytest.raises(longshore.NotSupportedError, match="Oracle has no type for large_list"):
        longshore.write_sql(table, "boats", URL)
    assert not any("TABLE" in statement for statement in database.log)


def test_modes(database: Database) -> None:
    frame = pa.table({"c": [1, 2]})
    for mode in ("append", "truncate", "upsert"):
        with pytest.raises(longshore.ProgrammingError, match="there is no table BOATS"):
            longshore.write_sql(frame, "boats", URL, if_exists=mode, key="c" if mode == "upsert" else None)
    database.tables[TABLE] = [Info("C", NUMBER)]
    with pytest.raises(longshore.ProgrammingError, match="is there already"):
        longshore.write_sql(frame, "boats", URL)
    with pytest.raises(longshore.ProgrammingError, match="has no column 'd'"):
        longshore.write_sql(pa.table({"d": [1]}), "boats", URL, if_exists="append")
    database.log.clear()
    longshore.write_sql(frame, "boats", URL, if_exists="truncate")
    assert database.log == ['DELETE FROM "BOATS"', 'INSERT INTO "BOATS" ("C") VALUES (:1)', "COMMIT", "close"]


def test_a_table_is_replaced_once_its_rows_are_there(database: Database) -> None:
    database.tables[TABLE] = [Info("C", NUMBER)]
    longshore.write_sql(pa.table({"c": [1]}), "boats", URL, if_exists="replace")
    kinds = [statement.split(" ")[0] for statement in database.log]
    assert kinds == ["CREATE", "INSERT", "COMMIT", "DROP", "ALTER", "close"]
    assert [*database.tables] == [TABLE]
    database.log.clear()
    database.failures["INSERT"] = error(1536, "space quota exceeded", offset=0)
    with pytest.raises(longshore.DatabaseError, match="ORA-01536") as caught:
        longshore.write_sql(pa.table({"c": [1]}), "boats", URL, if_exists="replace")
    assert getattr(caught.value, "row", None) == 0
    assert [statement.split(" ")[0] for statement in database.log] == ["CREATE", "INSERT", "ROLLBACK", "DROP", "close"]
    assert [*database.tables] == [TABLE]


def test_an_upsert_is_a_merge(database: Database) -> None:
    database.tables[TABLE] = [Info("ID", NUMBER, 9, 0), Info("NAME", VARCHAR)]
    frame = pa.table({"id": [1, 1], "name": ["a", "b"]})
    keys = (
        "SELECT c.index_name, c.column_name FROM all_ind_columns c JOIN all_indexes i ON i.owner = c.index_owner AND "
        "i.index_name = c.index_name WHERE i.uniqueness = 'UNIQUE' AND i.table_owner = "
        "SYS_CONTEXT('USERENV', 'CURRENT_SCHEMA') AND i.table_name = 'BOATS'"
    )
    database.queries[keys] = ([Info("A", VARCHAR), Info("B", VARCHAR)], [("PK", "ID")])
    longshore.write_sql(frame, "boats", URL, if_exists="upsert", key="id")
    ((statement, rows),) = database.written
    assert statement == (
        'MERGE INTO "BOATS" t USING (SELECT :1 AS "ID", :2 AS "NAME" FROM dual) s ON (t."ID" = s."ID") '
        'WHEN MATCHED THEN UPDATE SET t."NAME" = s."NAME" '
        'WHEN NOT MATCHED THEN INSERT ("ID", "NAME") VALUES (s."ID", s."NAME")'
    )
    assert rows.num_rows == 2
    with pytest.raises(longshore.ProgrammingError, match="no unique index"):
        longshore.write_sql(frame, "boats", URL, if_exists="upsert", key="name")
    with pytest.raises(longshore.DataError, match="NULL in a column of the key"):
        longshore.write_sql(pa.table({"id": pa.array([None], pa.int64())}), "boats", URL, if_exists="upsert", key="id")


def test_a_callers_transaction_stays_the_callers(database: Database) -> None:
    database.tables[TABLE] = [Info("C", NUMBER)]
    with longshore.connect(URL) as connection:
        connection.execute("BEGIN")
        longshore.write_sql(pa.table({"c": [1]}), "boats", connection, if_exists="append")
        with pytest.raises(longshore.NotSupportedError, match="commits an open transaction"):
            longshore.write_sql(pa.table({"c": [1]}), "others", connection)
        database.failures["INSERT"] = error(1438, "value larger than specified precision")
        with pytest.raises(longshore.DataError, match="ORA-01438"):
            longshore.write_sql(pa.table({"c": [1]}), "boats", connection, if_exists="append")
        connection.execute("ROLLBACK")
    words = [statement.split(" ")[0] for statement in database.log]
    assert words == ["SAVEPOINT", "INSERT", "SAVEPOINT", "INSERT", "ROLLBACK", "ROLLBACK", "close"]
