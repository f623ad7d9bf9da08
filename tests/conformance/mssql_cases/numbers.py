"""Integers, bit, floats, decimals and money."""

from decimal import Decimal

from tests.conformance.mssql_cases.case import MSSQLCase
from tests.tds.types import decimal, fixed, simple

_INTEGERS = {
    "tinyint": (0, 1, 127, 128, 255),
    "smallint": (-32768, -1, 0, 32767),
    "int": (-(2**31), -1, 0, 1, 2**31 - 1),
    "bigint": (-(2**63), -(2**53) - 1, -1, 0, 2**53 + 1, 2**63 - 1),
    "bit": (False, True),
}
_FLOATS = {
    "real": (0.0, -0.0, 1.5, -3.4028234663852886e38, 1.401298464324817e-45, 1.1754943508222875e-38),
    "float": (0.0, -0.0, 0.1, -1.7976931348623157e308, 5e-324, 2.2250738585072014e-308, 123456789.12345679),
}
_MONEY = {
    "money": tuple(map(Decimal, ("-922337203685477.5808", "-0.0001", "0.0000", "1.2345", "922337203685477.5807"))),
    "smallmoney": tuple(map(Decimal, ("-214748.3648", "-0.0001", "0.0000", "1.2345", "214748.3647"))),
}
_PLAIN = {**_INTEGERS, **_FLOATS, **_MONEY}
#: Of each size on the wire the narrowest and the widest, and every scale's end.
_DECIMALS = {
    (1, 0): ("-9", "0", "9"),
    (9, 2): ("-9999999.99", "-0.01", "0.00", "9999999.99"),
    (10, 0): ("-9999999999", "1"),
    (19, 4): ("-999999999999999.9999", "0.0001", "922337203685477.5808"),
    (20, 5): ("-999999999999999.99999", "18446744073709.55616"),
    (28, 10): ("-999999999999999999.9999999999", "0.0000000001"),
    (29, 0): ("-99999999999999999999999999999", "79228162514264337593543950336"),
    (38, 0): ("-" + "9" * 38, "0", "1" + "0" * 37, "9" * 38),
    (38, 10): ("-" + "9" * 28 + "." + "9" * 10, "0.0000000001", "12345678901234567890.1234567890"),
    (38, 38): ("-0." + "9" * 38, "0." + "0" * 37 + "1", "0." + "9" * 38),
}

CASES = (
    *(MSSQLCase(type=simple(name), values=values) for name, values in _PLAIN.items()),
    *(MSSQLCase(type=fixed(name), values=values, note="NOT NULL") for name, values in _PLAIN.items()),
    *(
        MSSQLCase(type=decimal(*size, token=token), values=tuple(map(Decimal, values)))
        for token in (0x6A, 0x6C)
        for size, values in _DECIMALS.items()
    ),
)
