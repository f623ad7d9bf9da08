"""Bytes."""

from tests.conformance.mssql_cases.case import MSSQLCase
from tests.tds.types import IMAGE, MAX, ROWVERSION, binary, varbinary

_ALL = bytes(range(256))

CASES = (
    MSSQLCase(type=varbinary(256), values=(b"", b"\0", b"\xff\xfe", _ALL)),
    MSSQLCase(type=varbinary(8000), values=(b"\x01" * 8000,)),
    MSSQLCase(type=varbinary(MAX), values=(b"", b"\0", _ALL * 100)),
    MSSQLCase(type=binary(4), values=(b"\0\0\0\0", b"\xde\xad\xbe\xef")),
    MSSQLCase(type=IMAGE, values=(b"", b"\0", _ALL * 100)),
    MSSQLCase(type=ROWVERSION, values=(b"\0" * 7 + b"\x01", b"\0\0\0\0\0\0\x07\xd1")),
)
