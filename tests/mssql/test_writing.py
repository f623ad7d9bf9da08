"""Rows into tables: what comes by INSERT BULK, and what is refused before it does."""

import datetime as dt
import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import longshore
from tests.mssql.reading import ROLLED_BACK, ended, naive, prepare, url
from tests.mssql.writing import column, statements, table
from tests.servers import MSSQL
from tests.tds.tokens import IDENTITY, Column, Count, Rows, ServerError
from tests.tds.types import (
    DATE,
    MAX,
    ROWVERSION,
    UNIQUEIDENTIFIER,
    binary,
    datetime2,
    datetimeoffset,
    decimal,
    nvarchar,
    simple,
    time,
    varbinary,
    varchar,
)

_MICRO = naive(9999, 12, 31, 23, 59, 59, 999999)
#: A column's type, what is written into it, and what the server gets.
FITTING: dict[str, tuple[Any, pa.Array, Any]] = {
    "bit": (simple("bit"), pa.array([True]), True),
    "tinyint": (simple("tinyint"), pa.array([255]), 255),
    "smallint": (simple("smallint"), pa.array([-32768]), -32768),
    "int": (simple("int"), pa.array([2**31 - 1]), 2**31 - 1),
    "bigint": (simple("bigint"), pa.array([-(2**63)]), -(2**63)),
    "real": (simple("real"), pa.array([1.5]), 1.5),
    "float": (simple("float"), pa.array([0.1]), 0.1),
    "decimal": (decimal(10, 2), pa.array([Decimal("-99999999.99")]), Decimal("-99999999.99")),
    "wide decimal": (decimal(38, 0), pa.array([Decimal("9" * 38)]), Decimal("9" * 38)),
    "money": (simple("money"), pa.array([Decimal("-922337203685477.5808")]), Decimal("-922337203685477.5808")),
    "smallmoney": (simple("smallmoney"), pa.array([Decimal("214748.3647")]), Decimal("214748.3647")),
    "nvarchar": (nvarchar(50), pa.array(["größe 😀"]), "größe 😀"),
    "nvarchar(max)": (nvarchar(MAX), pa.array(["漢😀" * 5000]), "漢😀" * 5000),
    "varchar": (varchar(50), pa.array(["café €"]), "café €"),
    "varbinary": (varbinary(8), pa.array([b"\x00\xff"]), b"\x00\xff"),
    "varbinary(max)": (varbinary(MAX), pa.array([b"\x01" * 20_000]), b"\x01" * 20_000),
    "binary": (binary(2), pa.array([b"\x00\xff"]), b"\x00\xff"),
    "date": (DATE, pa.array([dt.date(1, 1, 1)]), "0001-01-01"),
    "time": (time(7), pa.array([86_399_999_999_900], pa.time64("ns")), "23:59:59.9999999"),
    "time(0)": (time(0), pa.array([dt.time(23, 59, 59)]), "23:59:59"),
    "datetime2": (datetime2(7), pa.array([_MICRO]), "9999-12-31 23:59:59.9999990"),
    "datetime2(3)": (datetime2(3), pa.array([1], pa.timestamp("ms")), "1970-01-01 00:00:00.001"),
    "datetime": (simple("datetime"), pa.array([naive(1753, 1, 1, 0, 0, 0, 7000)]), "1753-01-01 00:00:00.007"),
    "smalldatetime": (simple("smalldatetime"), pa.array([naive(2079, 6, 6, 23, 59)]), "2079-06-06 23:59:00"),
    "datetimeoffset": (
        datetimeoffset(7),
        pa.array([dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC)]),
        "2024-02-29 12:00:00.0000000 +00:00",
    ),
    "uniqueidentifier": (UNIQUEIDENTIFIER, pa.array([str(uuid.UUID(int=7))]), uuid.UUID(int=7)),
}


@pytest.mark.parametrize("name", FITTING)
def test_a_value_arrives_as_it_is(mssql: MSSQL, name: str) -> None:
    kind, values, got = FITTING[name]
    table(mssql, [column("v", kind)], rows=2)
    data = pa.table({"v": pa.concat_arrays([values, pa.nulls(1, values.type)])})
    assert longshore.write_sql(data, "boats", url(mssql), if_exists="append") == 2
    (request,) = mssql.requests("bulk")
    assert request.bulk().rows == [(got,), (None,)]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (simple("tinyint"), 256),
        (simple("tinyint"), -1),
        (simple("int"), 1.5),
        (simple("real"), 0.1),
        (simple("float"), float("nan")),
        (simple("float"), 2**53 + 1),
        (decimal(5, 2), Decimal("1.001")),
        (decimal(5, 2), Decimal(1000)),
        (simple("smallmoney"), Decimal("214748.3648")),
        (nvarchar(3), "four"),
        (nvarchar(1), "😀"),
        (varchar(10), "漢"),
        (varbinary(1), b"ab"),
        (binary(3), b"ab"),
        (DATE, naive(2024, 2, 29, 12)),
        (time(0), dt.time(0, 0, 0, 1)),
        (datetime2(3), naive(2024, 2, 29, 0, 0, 0, 1)),
        (simple("datetime"), naive(2024, 2, 29, 0, 0, 0, 1000)),
        (simple("datetime"), naive(1752, 12, 31)),
        (simple("smalldatetime"), naive(2024, 2, 29, 0, 0, 1)),
        (datetime2(7), dt.datetime(2024, 2, 29, tzinfo=dt.UTC)),
        (datetimeoffset(7), naive(2024, 2, 29)),
        (UNIQUEIDENTIFIER, "x"),
        (simple("int"), "x"),
    ],
)
def test_what_a_column_would_change_is_an_error_of_its_row(mssql: MSSQL, kind: Any, value: Any) -> None:
    table(mssql, [column("v", kind)])
    data = pa.table({"v": pa.array([None, value])})
    with pytest.raises(longshore.DataError, match='column "v", row 1'):
        longshore.write_sql(data, "boats", url(mssql), if_exists="append")
    assert statements(mssql)[-1] == "IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION"


def test_null_in_a_column_that_is_not_null(mssql: MSSQL) -> None:
    table(mssql, [column("v", simple("int"), nullable=False)])
    with pytest.raises(longshore.IntegrityError, match='column "v", row 0'):
        longshore.write_sql(pa.table({"v": pa.nulls(1, pa.int32())}), "boats", url(mssql), if_exists="append")


def test_a_table_keeps_its_promises(mssql: MSSQL) -> None:
    table(mssql, [column("id", simple("int"), flags=IDENTITY), column("v", nvarchar(10))])
    longshore.write_sql(pa.table({"v": ["x"]}), "boats", url(mssql), if_exists="append")
    bulk = (
        "INSERT BULK [boats] ([v] nvarchar(10) COLLATE SQL_Latin1_General_CP1_CI_AS) "
        "WITH (KEEP_NULLS, CHECK_CONSTRAINTS, FIRE_TRIGGERS)"
    )
    assert statements(mssql) == ["BEGIN TRANSACTION", bulk, "COMMIT TRANSACTION"]


def test_what_the_table_computes_is_not_written(mssql: MSSQL) -> None:
    table(mssql, [column("v", ROWVERSION)])
    with pytest.raises(longshore.ProgrammingError, match="generates"):
        longshore.write_sql(pa.table({"v": [b"x" * 8]}), "boats", url(mssql), if_exists="append")


def test_truncate_takes_the_rows_first(mssql: MSSQL) -> None:
    table(mssql, [column("v", simple("int"))])
    longshore.write_sql(pa.table({"v": [1]}), "dbo.boats", url(mssql), if_exists="truncate")
    said = statements(mssql)
    assert said[1] == 'DELETE FROM "dbo"."boats"'
    assert said[2].startswith("INSERT BULK [dbo].[boats] ")


def test_replace_makes_another_table(mssql: MSSQL) -> None:
    table(mssql, [column("id", simple("bigint"), nullable=False), column("t", nvarchar(MAX))])
    data = pa.table({"id": [1], "t": ["x"]})
    longshore.write_sql(data, "boats", url(mssql), if_exists="replace", key="id")
    assert statements(mssql)[1:3] == [
        'DROP TABLE "boats"',
        'CREATE TABLE "boats" ("id" bigint NOT NULL, "t" nvarchar(max) NULL, PRIMARY KEY ("id"))',
    ]


def test_a_table_that_is_there_is_not_made(mssql: MSSQL) -> None:
    table(mssql, [column("v", simple("int"))])
    with pytest.raises(longshore.ProgrammingError, match="there already"):
        longshore.write_sql(pa.table({"v": [1]}), "boats", url(mssql))


def test_a_table_that_is_not_there_is_named(mssql: MSSQL) -> None:
    prepare(mssql)
    mssql.answer("sys.objects", Rows([Column("type", nvarchar(2))]), kind="rpc", match="contains")
    with pytest.raises(longshore.ProgrammingError, match="no table boats") as caught:
        longshore.write_sql(pa.table({"v": [1]}), "boats", url(mssql), if_exists="append")
    assert caught.value.sqlstate == "42S02"


def test_an_upsert_is_one_merge_with_its_lock(mssql: MSSQL) -> None:
    table(mssql, [column("id", simple("int"), nullable=False), column("v", nvarchar(10))], keys=[("1", "id")])
    data = pa.table({"id": [1], "v": ["x"]})
    longshore.write_sql(data, "boats", url(mssql), if_exists="upsert", key="id")
    said = statements(mssql)
    assert said[0] == "BEGIN TRANSACTION"
    assert next(one for one in said if one.startswith("INSERT BULK")).startswith("INSERT BULK [#longshore_rows] ")
    merge = (
        'MERGE "boats" WITH (HOLDLOCK) AS target USING #longshore_rows AS source ON target."id" = source."id" '
        'WHEN MATCHED THEN UPDATE SET "v" = source."v" WHEN NOT MATCHED THEN INSERT ("id", "v") '
        'VALUES (source."id", source."v");'
    )
    assert said[-3:] == [merge, "DROP TABLE #longshore_rows", "COMMIT TRANSACTION"]


def test_an_upsert_needs_a_unique_index(mssql: MSSQL) -> None:
    table(mssql, [column("id", simple("int"), nullable=False)])
    with pytest.raises(longshore.ProgrammingError, match="no unique index"):
        longshore.write_sql(pa.table({"id": [1]}), "boats", url(mssql), if_exists="upsert", key="id")


def test_rows_that_do_not_arrive_are_an_error(mssql: MSSQL) -> None:
    table(mssql, [column("id", simple("int"), nullable=False), column("v", nvarchar(10))], keys=[("1", "id")], rows=0)
    data = pa.table({"id": [1], "v": ["x"]})
    with pytest.raises(longshore.OperationalError, match="0 of 1 rows"):
        longshore.write_sql(data, "boats", url(mssql), if_exists="upsert", key="id")


def test_a_constraint_is_the_servers_error_and_all_is_undone(mssql: MSSQL) -> None:
    table(mssql, [column("v", simple("int"))])
    mssql.answer("", ServerError(2627, "Violation of PRIMARY KEY constraint.", 14), kind="bulk")
    with pytest.raises(longshore.IntegrityError, match="Violation of PRIMARY KEY"):
        longshore.write_sql(pa.table({"v": [1]}), "boats", url(mssql), if_exists="append")
    assert statements(mssql)[-1] == "IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION"


def test_a_write_is_a_part_of_the_callers_transaction(mssql: MSSQL) -> None:
    table(mssql, [column("v", simple("int"))])
    mssql.answer("UPDATE boats SET v = 1", Count(1))
    mssql.answer("ROLLBACK TRANSACTION longshore_write", Count())
    with longshore.connect(url(mssql)) as connection:
        connection.cursor().execute("UPDATE boats SET v = 1")
        longshore.write_sql(pa.table({"v": [1]}), "boats", connection, if_exists="append")
        with pytest.raises(longshore.DataError):
            longshore.write_sql(pa.table({"v": ["x"]}), "boats", connection, if_exists="append")
        connection.commit()
    said = [one for one in statements(mssql) if not one.startswith("INSERT BULK")]
    assert said == [
        "BEGIN TRANSACTION",
        "UPDATE boats SET v = 1",
        "SAVE TRANSACTION longshore_write",
        "SAVE TRANSACTION longshore_write",
        "ROLLBACK TRANSACTION longshore_write",
        "COMMIT TRANSACTION",
    ]


def test_a_deadlock_takes_the_callers_transaction_with_it(mssql: MSSQL) -> None:
    table(mssql, [column("v", simple("int"))])
    mssql.answer("", ended(ROLLED_BACK), ServerError(1205, "deadlocked", 13), kind="bulk")
    with pytest.raises(longshore.OperationalError, match="deadlocked"):
        longshore.write_sql(pa.table({"v": [1]}), "boats", url(mssql), if_exists="append")
