"""Doubles, and decimals, which SQLite keeps as the nearest doubles."""

from decimal import Decimal

import pyarrow as pa

from tests.conformance.sqlite_cases.case import SQLiteCase, Wanted, Widened
from tests.conformance.sqlite_cases.integers import INEXACT

LARGEST = 1.7976931348623157e308
INFINITY = float("inf")
#: An integer is kept as a real where the column has REAL affinity.
CELLS = {
    "0": 0.0,
    # SQLite keeps it as an integer, which has no sign at zero.
    "-0.0": 0.0,
    "0.1": 0.1,
    "1": 1.0,
    "5e-324": 5e-324,
    "-1.7976931348623157e308": -LARGEST,
    "9e999": INFINITY,
    "-9e999": -INFINITY,
    "0.30000000000000004": 0.30000000000000004,
}

CASES = (
    SQLiteCase(
        type="REAL",
        arrow=pa.float64(),
        cells=CELLS,
        widened=(
            Widened(cells={"1.5": "1.5", "'n/a'": "n/a"}, arrow=pa.string()),
            Widened(
                cells={"1e20": "1.0e+20", "5e-324": "5.0e-324", "9e999": "Inf", "'x'": "x"},
                arrow=pa.string(),
            ),
            Widened(cells={"x'00'": b"\0"}, arrow=pa.binary()),
        ),
        wanted=(
            Wanted(arrow=pa.decimal128(10, 3), cells={"0.1": Decimal("0.100")}, refused=("0.0001", "9e999", "1e7")),
            Wanted(arrow=pa.decimal128(10, 0), cells={"1": Decimal(1)}, refused=("0.1",)),
            Wanted(arrow=pa.float32(), cells={"0.5": 0.5, "9e999": INFINITY}, refused=("0.1", "1e39")),
            Wanted(arrow=pa.int8(), cells={"3.0": 3}, refused=("0.5", "1e3")),
            Wanted(arrow=pa.int64(), cells={"-1e15": -(10**15)}, refused=("0.5", "1e300", "9e999")),
            Wanted(arrow=pa.string(), cells={"0.1": "0.1", "1": "1.0"}),
            Wanted(arrow=pa.bool_(), refused=("1.5",)),
        ),
    ),
    *(SQLiteCase(type=name, arrow=pa.float64(), cells=CELLS) for name in ("FLOAT", "DOUBLE")),
    SQLiteCase(type="DOUBLE PRECISION", arrow=pa.float64(), cells=CELLS, shown=""),
    SQLiteCase(
        type="DECIMAL(10,2)",
        arrow=pa.float64(),
        cells={"1": 1.0, "2.25": 2.25, "-0.1": -0.1, "9007199254740992": 2.0**53},
        widened=(
            Widened(cells={"1": "1", "2.5": "2.5", "'x'": "x"}, arrow=pa.string()),
            Widened(cells={str(INEXACT): INEXACT}, arrow=pa.int64()),
            Widened(cells={str(INEXACT): str(INEXACT), "0.5": "0.5"}, arrow=pa.string()),
        ),
        wanted=(
            Wanted(
                arrow=pa.decimal128(10, 2),
                cells={"1": Decimal("1.00"), "2.25": Decimal("2.25"), "'-12.50'": Decimal("-12.50")},
                refused=("0.001", "123456789.5", "'x'"),
            ),
        ),
    ),
    # Whole numbers alone are no reason to become integers: that would depend on the rows.
    SQLiteCase(type="DECIMAL(10,2)", arrow=pa.float64(), cells={"1": 1.0, "2": 2.0}, shown=""),
    SQLiteCase(type="NUMERIC(15, 2)", arrow=pa.float64(), cells={"1": 1.0, "2.25": 2.25}, shown=""),
    SQLiteCase(
        type="NUMERIC",
        arrow=pa.int64(),
        empty=pa.float64(),
        cells={"1": 1, "-2": -2, "3.0": 3},
        shown="NUMERIC, integers",
    ),
    SQLiteCase(
        type="NUMERIC",
        arrow=pa.float64(),
        cells={"1": 1.0, "2.5": 2.5, "9e999": INFINITY},
        shown="NUMERIC, reals",
        widened=(
            Widened(cells={str(INEXACT): INEXACT}, arrow=pa.int64()),
            Widened(cells={"1": "1", "'x'": "x"}, arrow=pa.string()),
            Widened(cells={str(INEXACT): str(INEXACT), "0.5": "0.5"}, arrow=pa.string()),
        ),
    ),
    SQLiteCase(type="DECIMAL", arrow=pa.float64(), cells={"1": 1.0, "2.5": 2.5}, shown=""),
    # What write_sql declares for decimals. To a column of text, numbers are text.
    SQLiteCase(
        type="DECIMAL_TEXT(10,2)",
        arrow=pa.decimal128(10, 2),
        cells={"'-12.50'": Decimal("-12.50"), "'99999999.99'": Decimal("99999999.99"), "7": Decimal("7.00")},
        widened=(
            Widened(cells={"'1.50'": "1.50", "'0.125'": "0.125"}, arrow=pa.string()),
            Widened(cells={"'1.50'": "1.50", "'123456789.00'": "123456789.00"}, arrow=pa.string()),
            Widened(cells={"'1.50'": "1.50", "'NaN'": "NaN", "''": ""}, arrow=pa.string()),
            Widened(cells={"x'00'": b"\0"}, arrow=pa.binary()),
        ),
        wanted=(
            Wanted(arrow=pa.string(), cells={"'1.50'": "1.50"}),
            Wanted(arrow=pa.decimal128(12, 3), cells={"'1.50'": Decimal("1.500")}, refused=("'x'",)),
        ),
    ),
    SQLiteCase(
        type="decimal_text(60, 20)",
        arrow=pa.decimal256(60, 20),
        cells={"'0.00000000000000000001'": Decimal("1e-20"), "'9007199254740993'": Decimal(f"{2**53 + 1}.{'0' * 20}")},
        shown="DECIMAL_TEXT(60,20)",
    ),
    SQLiteCase(type="DECIMAL_TEXT(80,2)", arrow=pa.string(), cells={"'1.50'": "1.50"}, shown=""),
    SQLiteCase(type="REAL", arrow=pa.float64(), cells=CELLS, strict=True, shown=""),
)
