"""decimal, up to 65 digits, exactly."""

from decimal import Context, Decimal

import pyarrow as pa

from tests.conformance.mysql_cases.case import MySQLCase

WIDE = Context(prec=80)


def _case(precision: int, scale: int, *values: str, sign: str = "", shown: str | None = "") -> MySQLCase:
    arrow = (pa.decimal128 if precision <= 38 else pa.decimal256)(precision, scale)
    cells = {value: Decimal(value).quantize(Decimal(1).scaleb(-scale), context=WIDE) for value in values}
    type_ = f"decimal({precision},{scale})"
    return MySQLCase(type=type_ + sign, native=type_ + sign, arrow=arrow, cells=cells, shown=shown)


CASES = (
    _case(10, 2, "0", "1.5", "-99999999.99", "99999999.99", "-0.01", shown=None),
    _case(1, 0, "0", "9", "-9"),
    _case(1, 1, "0.0", "0.9", "-0.9"),
    _case(9, 9, "0.999999999", "-0.000000001"),
    _case(18, 0, "9" * 18, "-" + "9" * 18),
    _case(19, 4, "9" * 15 + ".9999", "-0.0001"),
    _case(29, 9, "12345678901234567890.123456789"),
    _case(38, 0, "9" * 38, "-" + "9" * 38),
    _case(38, 30, "12345678.123456789012345678901234567890", "-0." + "0" * 29 + "1"),
    _case(39, 1, "9" * 38 + ".9", "-0.1", shown="decimal(p,s), 38 < p"),
    _case(65, 30, "9" * 35 + "." + "9" * 30, "-" + "9" * 35 + "." + "9" * 30, "0." + "0" * 29 + "1"),
    _case(65, 0, "9" * 65, "-" + "9" * 65, "0"),
    _case(10, 2, "0", "99999999.99", sign=" unsigned"),
    _case(38, 10, "1234567890123456789012345678.0123456789", sign=" unsigned"),
    _case(65, 30, "9" * 35 + "." + "9" * 30, sign=" unsigned"),
)
