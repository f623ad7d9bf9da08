"""Statements: parameters, transactions, cancelling, columns of what is not run."""

import datetime as dt
import threading
import time
import uuid
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import longshore
from tests.mssql.reading import ROLLED_BACK, answer, ended, naive, prepare, read, rows, url
from tests.servers import MSSQL
from tests.tds.tokens import Column, Count, Rows, ServerError, Wait
from tests.tds.types import MAX, XML, datetime2, decimal, fixed, nvarchar, simple, varbinary, varchar

DESCRIBE = "dm_exec_describe_first_result_set"


def described(*columns: tuple[Any, ...]) -> Rows:
    """Return what the server says of the columns of a query that it does not run."""
    names = ("name", "tds_type_id", "tds_length", "precision", "scale", "tds_collation_id", "tds_collation_sort_id")
    rest = (
        "is_nullable",
        "user_type_name",
        "system_type_id",
        "is_identity_column",
        "is_computed_column",
        "error_message",
        "error_number",
    )
    kinds = {
        "name": nvarchar(128),
        "is_nullable": simple("bit"),
        "is_identity_column": simple("bit"),
        "is_computed_column": simple("bit"),
        "user_type_name": nvarchar(128),
    }
    kinds["error_message"] = nvarchar(4000)
    return Rows([Column(name, kinds.get(name, simple("int"))) for name in (*names, *rest)], columns)


def test_parameters_have_types_of_their_own(mssql: MSSQL) -> None:
    answer(mssql, rows(simple("int"), 7), query="SELECT v FROM boats WHERE")
    values = [
        7,
        True,
        1.5,
        Decimal("12.50"),
        "größe 😀",
        b"\x00\xff",
        dt.date(2024, 2, 29),
        naive(2024, 2, 29, 12, 34, 56, 123456),
        dt.datetime(1, 1, 1, tzinfo=dt.UTC),
        dt.time(23, 59, 59, 999999),
        uuid.UUID(int=7),
        2**70,
        "x" * 5000,
    ]
    text = "SELECT v FROM boats WHERE " + " AND ".join(["a = ?"] * len(values))
    assert read(mssql, text, params=values)["v"].to_pylist() == [7]
    (request,) = mssql.requests("rpc")
    (call,) = request.calls()
    statement, declared, *bound = call.parameters
    assert call.procedure == "sp_executesql"
    assert statement.value == text.replace("?", "{}").format(*(f"@p{n}" for n in range(1, len(values) + 1)))
    kinds = ["bigint", "bit", "float", "decimal(3,1)", "nvarchar(4000)", "varbinary(8000)", "date", "datetime2(6)"]
    kinds += ["datetimeoffset(6)", "time(6)", "uniqueidentifier", "decimal(22,0)", "nvarchar(max)"]
    assert [one.split(" ", 1)[1].strip().lower() for one in declared.value.split(", ")] == kinds
    shown = [7, True, 1.5, Decimal("12.5"), "größe 😀", b"\x00\xff", "2024-02-29", "2024-02-29 12:34:56.123456"]
    shown += ["0001-01-01 00:00:00.000000 +00:00", "23:59:59.999999", uuid.UUID(int=7), Decimal(2**70), "x" * 5000]
    assert [one.value for one in bound] == shown


def test_names_are_parameters_and_nulls_are_text(mssql: MSSQL) -> None:
    answer(mssql, rows(simple("int"), 7), query="SELECT v FROM boats WHERE")
    read(mssql, "SELECT v FROM boats WHERE a = :a AND b = @b AND c = @a", params={"a": 1, "b": None})
    (call,) = mssql.requests("rpc")[0].calls()
    assert call.parameters[0].value == "SELECT v FROM boats WHERE a = @p1 AND b = NULL AND c = @p2"
    assert [one.value for one in call.parameters[2:]] == [1, 1]


def test_a_schema_is_that_of_the_result_and_nothing_is_run(mssql: MSSQL) -> None:
    prepare(mssql)
    latin = 0x00D00409
    mssql.answer(
        DESCRIBE,
        described(
            ("id", 56, 4, 10, 0, None, None, False, None, 56, False, False, None, None),
            ("name", 231, 100, 0, 0, latin, 52, True, None, 231, False, False, None, None),
            ("price", 108, 9, 19, 4, None, None, True, None, 108, False, False, None, None),
            ("at", 42, 8, 27, 7, None, None, True, None, 42, False, False, None, None),
            ("code", 167, 65535, 0, 0, latin, 52, True, None, 167, False, False, None, None),
            ("place", 240, 65535, 0, 0, None, None, True, "geometry", 240, False, False, None, None),
        ),
        kind="rpc",
        match="contains",
    )
    schema = longshore.schema("SELECT * FROM boats", url(mssql))
    assert schema.types == [
        pa.int32(), pa.string(), pa.decimal128(19, 4), pa.timestamp("ns"), pa.string(), pa.binary(),
    ]  # fmt: skip
    natives = [field.metadata[b"native_type"].decode() for field in schema]
    assert natives == ["int", "nvarchar(50)", "numeric(19,4)", "datetime2(7)", "varchar(max)", "geometry"]
    assert [field.nullable for field in schema] == [False, True, True, True, True, True]
    (call,) = mssql.requests("rpc")[0].calls()
    assert call.values["@tsql"] == "SELECT * FROM boats"
    assert not [one for one in mssql.requests("batch") if "boats" in one.text]


def test_what_the_server_has_against_a_query_is_the_error_of_its_schema(mssql: MSSQL) -> None:
    prepare(mssql)
    wrong = ("", None, None, None, None, None, None, None, None, None, None, None, "Invalid object name 'boats'.", 208)
    mssql.answer(DESCRIBE, described(wrong), kind="rpc", match="contains")
    with pytest.raises(longshore.ProgrammingError, match=r"Invalid object name 'boats'\. \(error 208\)") as caught:
        longshore.schema("SELECT * FROM boats", url(mssql))
    assert caught.value.sqlstate == "42S02"


def test_not_null_counts_for_a_plain_query(mssql: MSSQL) -> None:
    sent = Rows([Column("v", fixed("int"), flags=0)], [(7,)])
    answer(mssql, sent)
    assert not read(mssql).schema.field("v").nullable
    joined = "SELECT v FROM boats LEFT JOIN quays ON boats.id = quays.id"
    answer(mssql, sent, query=joined)
    assert read(mssql, joined).schema.field("v").nullable


def test_a_transaction_is_the_connections(mssql: MSSQL) -> None:
    prepare(mssql)
    mssql.answer("INSERT boats VALUES (1)", Count(1))
    with longshore.connect(url(mssql)) as connection:
        cursor = connection.cursor()
        cursor.execute("INSERT boats VALUES (1)")
        assert cursor.rowcount == 1
        connection.commit()
        cursor.execute("INSERT boats VALUES (1)")
        connection.rollback()
    said = [one.text for one in mssql.requests("batch") if "TRANSACTION" in one.text and "SET" not in one.text]
    assert said == [
        "BEGIN TRANSACTION", "COMMIT TRANSACTION", "BEGIN TRANSACTION", "IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION",
    ]  # fmt: skip


def test_a_transaction_that_the_server_has_rolled_back_is_not_committed(mssql: MSSQL) -> None:
    prepare(mssql)
    deadlock = ServerError(1205, "Transaction was deadlocked and has been chosen as the deadlock victim.", 13)
    mssql.answer("INSERT boats VALUES (1)", ended(ROLLED_BACK), deadlock)
    connection = longshore.connect(url(mssql))
    cursor = connection.cursor()
    with pytest.raises(longshore.OperationalError, match="deadlock"):
        cursor.execute("INSERT boats VALUES (1)")
    with pytest.raises(longshore.OperationalError, match="nothing was committed"):
        connection.commit()
    connection.close()


def test_a_deadline_ends_the_statement_on_the_server(mssql: MSSQL) -> None:
    answer(mssql, rows(simple("int"), 1), query="SELECT v FROM boats")
    answer(mssql, Wait(), query="SELECT slow")
    with longshore.connect(url(mssql)) as connection:
        begun = time.monotonic()
        with pytest.raises(longshore.TimeoutError, match=r"0\.2 s"):
            longshore.read_sql("SELECT slow", connection, timeout=0.2)
        assert time.monotonic() - begun < 1.5
        mssql.wait_for("attention")
        # The session goes on.
        assert longshore.read_sql("SELECT v FROM boats", connection, return_type="arrow")["v"].to_pylist() == [1]


def test_a_statement_is_cancelled_from_another_thread(mssql: MSSQL) -> None:
    answer(mssql, Wait(), query="SELECT slow")
    connection = longshore.connect(url(mssql))
    cursor = connection.cursor()
    failures: list[BaseException] = []

    def run() -> None:
        try:
            cursor.execute("SELECT slow")
        except longshore.Error as error:
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    while not [one for one in mssql.requests("batch") if one.text == "SELECT slow"]:
        mssql.wait_for("batch")
    cursor.adbc_cancel()
    thread.join(10)
    assert len(failures) == 1
    mssql.wait_for("attention")
    connection.close()


def test_a_stream_that_is_given_up_ends_on_the_server(mssql: MSSQL) -> None:
    long = Rows([Column("v", nvarchar(100))], [("x" * 100,)] * 100, times=100_000)
    answer(mssql, long)
    stream = longshore.read_sql("SELECT v FROM boats", url(mssql), return_type="arrow_stream", batch_size=1000)
    assert next(iter(stream)).num_rows == 1000
    stream.close()
    mssql.wait_for("attention")


def test_many_batches_are_whole(mssql: MSSQL) -> None:
    columns = [
        Column("a", simple("int")),
        Column("b", nvarchar(20)),
        Column("c", decimal(10, 2)),
        Column("d", datetime2(3)),
    ]
    values = [(1, "a", Decimal("1.50"), "2024-02-29 12:34:56.789"), (None, None, None, None)]
    answer(mssql, Rows(columns, values * 500, times=300))
    table = read(mssql)
    assert table.num_rows == 300_000
    assert [column.null_count for column in table.columns] == [150_000] * 4
    assert table["a"].to_pylist() == [1, None] * 150_000


@pytest.mark.parametrize("compressed", [False, True], ids=["rows", "bitmaps"])
def test_values_in_parts_are_whole(mssql: MSSQL, *, compressed: bool) -> None:
    """They stand first, next to each other and last in a row: short, NULL, in many parts, longer than a packet."""
    kinds = [nvarchar(MAX), simple("int"), replace(varchar(MAX), chunk=7), varbinary(MAX), XML]
    columns = [Column(str(at), kind) for at, kind in enumerate([*kinds, replace(varchar(MAX), counted=False)])]
    short: list[tuple[Any, ...]] = [
        ("größe", 1, "", b"\0\1", "<a/>", "no length"),
        ("", 2, "in parts of seven", None, "", None),
        (None, None, None, b"", None, ""),
        (None,) * 6,
    ]
    long = ("x" * 9000, 3, "y" * 40_000, b"z" * 20_000, "<b>" + "b" * 9000 + "</b>", "w" * 20_000)
    values = [*(short * 40), long, *short[:3], long]
    for order in (1, -1):
        answer(mssql, Rows(columns[::order], [row[::order] for row in values], compressed=compressed, times=3))
        table = read(mssql, batch_size=100)
        assert [tuple(row.values()) for row in table.to_pylist()] == [row[::order] for row in values * 3]


def test_a_script_has_batches(mssql: MSSQL) -> None:
    prepare(mssql)
    mssql.answer("CREATE TABLE t (a int)\n", Count())
    mssql.answer("INSERT t VALUES (1)", Count(1))
    with longshore.connect(url(mssql), autocommit=True) as connection:
        connection.execute_script("CREATE TABLE t (a int)\nGO\nINSERT t VALUES (1)")
    assert [one.text for one in mssql.requests("batch")][1:] == ["CREATE TABLE t (a int)\n", "INSERT t VALUES (1)"]


def test_a_table_by_its_name_in_sql(mssql: MSSQL) -> None:
    columns = [Column("id", simple("int")), Column("ship", nvarchar(10))]
    answer(mssql, Rows(columns, []), query='SELECT * FROM "dbo"."boats" WHERE 1 = 0')
    read = """SELECT "id", "ship" FROM "dbo"."boats" WHERE ("id" > 1) AND ("ship" = 'Ada')"""
    mssql.answer(read, Rows(columns, [(2, "Ada"), (3, "ADA")]))
    query = "SELECT id FROM harbour.dbo.boats WHERE id > 1 AND ship = 'Ada'"
    # The engine compares again, by bytes.
    found = longshore.sql(query, attach={"harbour": url(mssql)}, return_type="arrow")
    assert found.to_pylist() == [{"id": 2}]
