"""Whole numbers: a name with INT in it, or a decimal without a scale."""

from decimal import Decimal

import pyarrow as pa

from tests.conformance.sqlite_cases.case import SQLiteCase, Wanted, Widened

LOW, HIGH = -(2**63), 2**63 - 1
#: The first integer that a double does not hold.
INEXACT = 2**53 + 1
CELLS = {str(LOW): LOW, "-1": -1, "0": 0, str(INEXACT): INEXACT, str(HIGH): HIGH}

CASES = (
    SQLiteCase(
        type="INTEGER",
        arrow=pa.int64(),
        cells=CELLS,
        widened=(
            Widened(cells={"1": 1.0, "2.5": 2.5}, arrow=pa.float64()),
            Widened(cells={"1.5": "1.5", "'x'": "x"}, arrow=pa.string()),
            Widened(cells={"1": "1", "2.5": "2.5", "'x'": "x"}, arrow=pa.string()),
            Widened(cells={str(INEXACT): str(INEXACT), "0.5": "0.5"}, arrow=pa.string()),
            Widened(cells={"'1e'": "1e", str(LOW): str(LOW)}, arrow=pa.string()),
            # An integer that has 64 bits no longer is a real to SQLite.
            Widened(cells={"9223372036854775808": 2.0**63}, arrow=pa.float64()),
            Widened(cells={"x'00ff'": b"\x00\xff"}, arrow=pa.binary()),
        ),
        wanted=(
            Wanted(arrow=pa.int8(), cells={"-128": -128, "127": 127}, refused=("128", "1.5", "'x'", "x'31'")),
            Wanted(arrow=pa.uint8(), cells={"255": 255}, refused=("256", "-1")),
            Wanted(arrow=pa.uint64(), cells={str(HIGH): HIGH}, refused=("-1",)),
            Wanted(
                arrow=pa.float64(),
                cells={"1": 1.0, str(LOW): -(2.0**63)},
                refused=(str(INEXACT), str(HIGH), str(1 - HIGH)),
            ),
            Wanted(arrow=pa.float32(), cells={"16777216": 16777216.0}, refused=("16777217",)),
            Wanted(arrow=pa.decimal128(38, 2), cells={str(HIGH): Decimal(f"{HIGH}.00")}),
            Wanted(arrow=pa.decimal256(40, 1), cells={"7": Decimal("7.0")}),
            Wanted(arrow=pa.bool_(), cells={"0": False, "1": True}, refused=("2",)),
            Wanted(arrow=pa.string(), cells={str(LOW): str(LOW), "1.5": "1.5", "'x'": "x"}),
            Wanted(arrow=pa.binary(), refused=("1",)),
        ),
    ),
    *(
        SQLiteCase(type=name, arrow=pa.int64(), cells=CELLS)
        for name in ("INT", "TINYINT", "SMALLINT", "MEDIUMINT", "BIGINT")
    ),
    *(
        SQLiteCase(type=name, arrow=pa.int64(), cells=CELLS, shown="")
        for name in ("int8", "TINYINT(1)", "INTEGER(11)", "int4", "NUMERIC(10)")
    ),
    # Any name with INT in it, to SQLite as well.
    SQLiteCase(type="POINT", arrow=pa.int64(), cells={"1": 1}, shown=""),
    SQLiteCase(
        type="DECIMAL(10)",
        arrow=pa.int64(),
        cells=CELLS,
        widened=(Widened(cells={"1": 1.0, "1.5": 1.5}, arrow=pa.float64()),),
    ),
    SQLiteCase(
        type="NUMERIC(10,0)",
        arrow=pa.int64(),
        cells=CELLS,
        widened=(Widened(cells={"1.5": 1.5}, arrow=pa.float64()),),
        shown="",
    ),
    SQLiteCase(
        type="BIGINT UNSIGNED",
        arrow=pa.uint64(),
        cells={"0": 0, str(INEXACT): INEXACT, str(HIGH): HIGH},
        widened=(
            Widened(cells={"-1": -1, str(HIGH): HIGH}, arrow=pa.int64()),
            # Beyond 64 bits with a sign, SQLite has the nearest double.
            Widened(cells={"18446744073709551615": 2.0**64}, arrow=pa.float64()),
        ),
        wanted=(Wanted(arrow=pa.int64(), cells={"-1": -1}),),
    ),
    *(
        SQLiteCase(type=name, arrow=pa.uint64(), cells={"0": 0, "255": 255}, shown="")
        for name in ("UNSIGNED BIG INT", "uint8", "unsigned int(6)", "UINTEGER")
    ),
    SQLiteCase(type="INTEGER", arrow=pa.int64(), cells=CELLS, strict=True, shown=""),
    SQLiteCase(type="INT", arrow=pa.int64(), cells=CELLS, strict=True, shown=""),
)
