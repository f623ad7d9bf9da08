"""uniqueidentifier, xml, json, vector, sql_variant, and the types of the server's own classes."""

import uuid
from decimal import Decimal

from tests.conformance.mssql_cases.case import MSSQLCase
from tests.tds.types import (
    DATE,
    JSON,
    MAX,
    SQL_VARIANT,
    UNIQUEIDENTIFIER,
    XML,
    binary,
    char,
    datetime2,
    datetimeoffset,
    decimal,
    nchar,
    nvarchar,
    simple,
    time,
    udt,
    varbinary,
    varchar,
    vector,
)

UUID = uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")
#: POINT (1 2) of SRID 4326 as geometry is kept: the SRID, version 1, what it has, and two doubles.
_POINT = bytes.fromhex("E6100000010C000000000000F03F0000000000000040")
_VARIANTS = (
    (simple("tinyint"), 255),
    (simple("smallint"), -1),
    (simple("int"), 2**31 - 1),
    (simple("bigint"), -(2**63)),
    (simple("bit"), True),
    (simple("real"), 1.5),
    (simple("float"), 0.1),
    (simple("money"), Decimal("-922337203685477.5808")),
    (simple("smallmoney"), Decimal("1.2345")),
    (decimal(38, 10), Decimal("-12345.6789012345")),
    (simple("datetime"), "1999-12-31 23:59:59.997"),
    (simple("smalldatetime"), "2024-02-29 12:34:00"),
    (DATE, "0001-01-01"),
    (time(7), "23:59:59.9999999"),
    (datetime2(7), "2024-02-29 12:34:56.1234567"),
    (datetimeoffset(7), "2024-02-29 12:34:56.1234567 +05:30"),
    (UNIQUEIDENTIFIER, UUID),
    (varchar(10), "é€"),
    (char(3), "ab "),
    (nvarchar(10), "漢字"),
    (nchar(3), "ab "),
    (varbinary(4), b"\0\xff"),
    (binary(4), b"\xde\xad\xbe\xef"),
)

CASES = (
    MSSQLCase(type=UNIQUEIDENTIFIER, values=(UUID, uuid.UUID(int=0), uuid.UUID(int=2**128 - 1))),
    MSSQLCase(type=XML, values=("", "<a/>", "<é>漢😀</é>", "<a>" + "x" * 20_000 + "</a>")),
    MSSQLCase(type=JSON, values=("{}", '{"é": "漢😀"}', "[" + "1," * 10_000 + "1]")),
    MSSQLCase(type=vector(3), values=([1.0, -0.5, 3.4028234663852886e38], [0.0, 0.0, 0.0])),
    MSSQLCase(type=vector(1998), values=([0.25] * 1998,)),
    MSSQLCase(type=SQL_VARIANT, values=_VARIANTS),
    MSSQLCase(type=udt("hierarchyid", 892, "SqlHierarchyId"), values=(b"", b"\x58", b"\x5a\xc0")),
    MSSQLCase(type=udt("geometry", MAX, "SqlGeometry"), values=(_POINT,)),
    MSSQLCase(type=udt("geography", MAX, "SqlGeography"), values=(_POINT,)),
)
