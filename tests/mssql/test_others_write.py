"""Requests of other clients, and how the test server reads them: parameters of calls, and rows of INSERT BULK."""

import contextlib
import datetime as dt
import subprocess
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytds
import pytest
from pytds import tds_types

from tests import installations
from tests.mssql import others
from tests.servers import MSSQL
from tests.tds.tokens import Column, Count, Return, Rows
from tests.tds.types import (
    DATE,
    IMAGE,
    MAX,
    TEXT,
    UNIQUEIDENTIFIER,
    datetime2,
    decimal,
    fixed,
    nvarchar,
    simple,
    time,
    varbinary,
    varchar,
)

_UUID = uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")
_STAMP = dt.datetime(2024, 2, 29, 12, 34, 56, 123456)  # noqa: DTZ001  it has no zone
_INDIA = dt.timezone(dt.timedelta(hours=5, minutes=30))
#: A value, and what a client sends of it: the name of its type without digits, and the value by `tests.tds`.
_PARAMETERS: tuple[tuple[Any, str, Any], ...] = (
    (255, "int", 255),
    (-(2**40), "bigint", -(2**40)),
    (True, "bit", True),
    (0.1, "float", 0.1),
    (Decimal("-12.345"), "decimal", Decimal("-12.345")),
    (Decimal("9" * 38), "decimal", Decimal("9" * 38)),
    ("é漢😀", "nvarchar", "é漢😀"),
    ("x" * 5000, "nvarchar", "x" * 5000),
    (b"\0\xff", "varbinary", b"\0\xff"),
    (_STAMP.date(), "date", "2024-02-29"),
    (_STAMP.time(), "time", "12:34:56.123456"),
    (_STAMP, "datetime2", "2024-02-29 12:34:56.123456"),
    (_STAMP.replace(tzinfo=_INDIA), "datetimeoffset", "2024-02-29 12:34:56.123456 +05:30"),
    (_UUID, "uniqueidentifier", _UUID),
)
#: The names of Microsoft's ODBC driver.
_ODBC = {"decimal": "numeric", ("int", 255): "tinyint", ("nvarchar", "x" * 5000): "varchar"}


@pytest.fixture
def called(mssql: MSSQL) -> MSSQL:
    """Give the server, which answers every call."""
    one = Column("one", fixed("int"))
    mssql.answer("", Rows([one], [(1,)]), kind="rpc")
    mssql.answer("sp_prepare", Rows([one]), Return("", simple("int"), 7), kind="rpc")
    mssql.answer("sp_unprepare", kind="rpc")
    return mssql


def _sent(server: MSSQL) -> tuple[str, Any]:
    """Return the type and the value of the last parameter of the last call."""
    calls = [call for request in server.requests("rpc") for call in request.calls()]
    parameter = [call for call in calls if call.procedure != "sp_unprepare"][-1].parameters[-1]
    name = parameter.type.name.partition("(")[0]
    is_padded = name in {"time", "datetime2"} and parameter.type.name.endswith("(7)")
    return name, parameter.value[:-1] if is_padded else parameter.value


@pytest.mark.parametrize(("value", "kind", "wanted"), _PARAMETERS)
def test_a_parameter_of_python_tds(called: MSSQL, value: Any, kind: str, wanted: Any) -> None:
    """By sp_executesql."""
    given = pytds.Binary(value) if isinstance(value, bytes) else value
    with contextlib.closing(others.CLIENTS["python-tds"](called)) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT %s", (given,))
        assert cursor.fetchall() == [(1,)]
    (call,) = called.requests("rpc")[-1].calls()
    assert call.procedure == "sp_executesql"
    assert call.parameters[0].value == "SELECT @P1"
    assert _sent(called) == (kind, wanted)


@pytest.mark.parametrize(("value", "kind", "wanted"), _PARAMETERS)
def test_a_parameter_of_odbc(called: MSSQL, value: Any, kind: str, wanted: Any) -> None:
    """By sp_prepexec, or where it is long by sp_prepare and sp_execute."""
    with contextlib.closing(others.CLIENTS["mssql-python"](called)) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT ?", (value,))
        assert [tuple(row) for row in cursor.fetchall()] == [(1,)]
    name = _ODBC.get((kind, wanted), _ODBC.get(kind, kind))
    shown = wanted.replace(" +", "0 +") if kind == "datetimeoffset" else wanted
    assert _sent(called) == (name, shown)


_TABLE: tuple[tuple[Column, Any, str], ...] = (
    (Column("i", simple("int")), -1, "-1"),
    (Column("b", simple("bigint")), 2**62, str(2**62)),
    (Column("f", simple("float")), 0.5, "0.5"),
    (Column("d", decimal(20, 5)), Decimal("-1.50000"), "-1.5"),
    (Column("m", simple("money")), Decimal("1.2345"), "1.2345"),
    (Column("vc", varchar(20)), "é", "é"),
    (Column("nv", nvarchar(20)), "漢😀", "漢😀"),
    (Column("nm", nvarchar(MAX)), "x" * 9000, "x" * 9000),
    (Column("vb", varbinary(20)), b"\0\xff", "00ff"),
    (Column("dt", simple("datetime")), "2024-02-29 12:34:56.007", "2024-02-29 12:34:56.007"),
    (Column("d2", datetime2(7)), "2024-02-29 12:34:56.1234567", "2024-02-29 12:34:56.1234567"),
    (Column("da", DATE), "2024-02-29", "2024-02-29"),
    (Column("ti", time(7)), "23:59:59.9999999", "23:59:59.9999999"),
    (Column("u", UNIQUEIDENTIFIER), _UUID, str(_UUID)),
    (Column("bi", simple("bit")), True, "1"),
    (Column("tx", TEXT), "text é", "text é"),
    (Column("im", IMAGE), b"\x01\x02", "0102"),
)


def test_rows_of_freebcp(mssql: MSSQL, tmp_path: Path) -> None:
    """FreeTDS reads the columns, and sends a row of values and one of NULL."""
    mssql.answer("set textsize", Count(), kind="batch", match="starts")
    mssql.take_bulk([column for column, _, _ in _TABLE], 2)
    file = tmp_path / "rows"
    file.write_text("|".join(text for _, _, text in _TABLE) + "\n" + "|" * (len(_TABLE) - 1) + "\n", encoding="utf-8")
    program = installations.program("freebcp", "freetds-bin")
    place = ["-S", f"{mssql.host}:{mssql.port}", "-U", mssql.user, "-P", "harb0ur!"]
    done = subprocess.run(
        [program, "t", "in", str(file), "-c", "-t", "|", *place],
        env={"TDSVER": "7.4", "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "2 rows copied" in done.stdout, done.stderr
    (bulk,) = mssql.requests("bulk")
    assert [name for name, _ in bulk.bulk().columns] == [column.name for column, _, _ in _TABLE]
    assert [kind.name for _, kind in bulk.bulk().columns] == [column.type.name for column, _, _ in _TABLE]
    assert bulk.bulk().rows == [tuple(value for _, value, _ in _TABLE), (None,) * len(_TABLE)]


def test_rows_of_python_tds(mssql: MSSQL) -> None:
    """The same from a client of its own."""
    columns: list[tuple[Any, Any, Any]] = [
        (tds_types.IntType(), 1, 1),
        (tds_types.BigIntType(), 2**62, 2**62),
        (tds_types.FloatType(), 0.5, 0.5),
        (tds_types.DecimalType(38, 5), Decimal("-1.5"), Decimal("-1.5")),
        (tds_types.NVarCharType(20), "漢😀", "漢😀"),
        (tds_types.NVarCharMaxType(), "x" * 9000, "x" * 9000),
        (tds_types.VarBinaryType(20), b"\0\xff", b"\0\xff"),
        (tds_types.VarBinaryMaxType(), b"\0" * 9000, b"\0" * 9000),
        (tds_types.DateTime2Type(7), _STAMP, "2024-02-29 12:34:56.1234560"),
        (tds_types.DateType(), _STAMP.date(), "2024-02-29"),
        (tds_types.TimeType(7), _STAMP.time(), "12:34:56.1234560"),
        (
            tds_types.DateTimeOffsetType(7),
            _STAMP.replace(tzinfo=_INDIA),
            "2024-02-29 12:34:56.1234560 +05:30",
        ),
        (tds_types.UniqueIdentifierType(), _UUID, _UUID),
        (tds_types.BitType(), True, True),
    ]
    mssql.take_bulk([], 2)
    with contextlib.closing(others.CLIENTS["python-tds"](mssql)) as connection, connection.cursor() as cursor:
        cursor.copy_to(
            data=[[value for _, value, _ in columns], [None] * len(columns)],
            table_or_view="t",
            columns=[pytds.Column(name=f"c{at}", type=kind) for at, (kind, _, _) in enumerate(columns)],
        )
    (bulk,) = mssql.requests("bulk")
    assert bulk.bulk().rows == [tuple(wanted for _, _, wanted in columns), (None,) * len(columns)]


def test_rows_of_mssql_tds(mssql: MSSQL) -> None:
    """Microsoft's client in Rust, in mssql-python: it asks about the table first."""
    kept = [
        (column, value)
        for column, value, _ in _TABLE
        if column.name in {"i", "b", "f", "d", "nv", "vb", "da", "u", "bi"}
    ]
    mssql.take_bulk([column for column, _ in kept], 2)
    given = tuple(dt.date.fromisoformat(value) if column.name == "da" else value for column, value in kept)
    with contextlib.closing(others.CLIENTS["mssql-python"](mssql)) as connection, connection.cursor() as cursor:
        done = cursor.bulkcopy("dbo.t", [given, (None,) * len(kept)])
    assert done["rows_copied"] == 2
    (bulk,) = mssql.requests("bulk")
    assert bulk.bulk().rows == [tuple(value for _, value in kept), (None,) * len(kept)]
