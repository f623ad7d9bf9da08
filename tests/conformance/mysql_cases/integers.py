"""Integers of all widths, with and without a sign, and years."""

import pyarrow as pa

from tests.conformance.mysql_cases.case import MySQLCase

#: Of each type: its name, its width, and the Arrow types with and without a sign.
WIDTHS = (
    ("tinyint", 8, pa.int8(), pa.uint8()),
    ("smallint", 16, pa.int16(), pa.uint16()),
    ("mediumint", 24, pa.int32(), pa.uint32()),
    ("int", 32, pa.int32(), pa.uint32()),
    ("bigint", 64, pa.int64(), pa.uint64()),
)

#: 2^53 + 1 is the first integer that a double does not hold.
MORE = {"bigint": {"9007199254740993": 2**53 + 1}}


def _signed(name: str, bits: int, arrow: pa.DataType) -> MySQLCase:
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    cells = {str(low): low, "-1": -1, "0": 0, **MORE.get(name, {}), str(high): high}
    return MySQLCase(type=name, arrow=arrow, cells=cells)


def _unsigned(name: str, bits: int, arrow: pa.DataType) -> MySQLCase:
    high, half = 2**bits - 1, 2 ** (bits - 1)
    cells = {"0": 0, str(half): half, **MORE.get(name, {}), str(high): high}
    return MySQLCase(type=f"{name} unsigned", arrow=arrow, cells=cells)


CASES = (
    *(_signed(name, bits, arrow) for name, bits, arrow, _ in WIDTHS),
    *(_unsigned(name, bits, arrow) for name, bits, _, arrow in WIDTHS),
    # A tinyint(1) holds any tinyint, whatever it is meant for.
    MySQLCase(type="tinyint(1)", arrow=pa.int8(), cells={"0": 0, "1": 1, "2": 2, "-128": -128, "127": 127}),
    MySQLCase(type="boolean", native="tinyint(1)", arrow=pa.int8(), cells={"true": 1, "false": 0, "2": 2}),
    MySQLCase(
        type="tinyint(1) unsigned",
        native="tinyint unsigned",
        arrow=pa.uint8(),
        cells={"0": 0, "1": 1, "255": 255},
        shown="",
    ),
    # In text the server fills it with zeros.
    MySQLCase(
        type="int(6) zerofill",
        native="int unsigned",
        arrow=pa.uint32(),
        cells={"0": 0, "42": 42, "4294967295": 2**32 - 1},
        shown="",
    ),
    MySQLCase(type="year", arrow=pa.int16(), cells={"0": 0, "1901": 1901, "2155": 2155}),
)
