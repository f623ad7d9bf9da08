"""Text, and what is kept as text."""

import datetime as dt
from decimal import Decimal

import pyarrow as pa

from tests.conformance.case import Misfit
from tests.conformance.sqlite_cases.case import SQLiteCase, Wanted, Widened

EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001  it has no time zone
CELLS = {
    "''": "",
    "'it''s'": "it's",
    "'größe \N{GRINNING FACE}'": "größe \N{GRINNING FACE}",
    "CAST(x'610062' AS TEXT)": "a\0b",
    # To a column of text, numbers are text.
    "1": "1",
    "0.5": "0.5",
}
#: No type holds both TEXT and BLOB, and no Arrow string what is not UTF-8.
MISFITS = (Misfit(sql="x'00'", says="BLOB"), Misfit(sql="CAST(x'ff' AS TEXT)", says="UTF-8"))

CASES = (
    SQLiteCase(
        type="TEXT",
        arrow=pa.string(),
        cells=CELLS,
        misfits=MISFITS,
        widened=(Widened(cells={"x'00ff'": b"\x00\xff", "x''": b""}, arrow=pa.binary()),),
        wanted=(
            Wanted(arrow=pa.int8(), cells={"'-7'": -7}, refused=("'x'", "'1.5'", "'128'")),
            Wanted(arrow=pa.uint8(), cells={"'200'": 200}, refused=("''",)),
            Wanted(arrow=pa.int64(), cells={"'9223372036854775807'": 2**63 - 1}, refused=("'9223372036854775808'",)),
            Wanted(arrow=pa.float64(), cells={"'0.1'": 0.1}, refused=("'1,5'",)),
            Wanted(arrow=pa.decimal128(10, 2), cells={"'12.50'": Decimal("12.50")}, refused=("'12.505'",)),
            Wanted(arrow=pa.bool_(), cells={"'false'": False, "'t'": True}, refused=("'no'",)),
            Wanted(arrow=pa.binary(), cells={"'ä'": b"\xc3\xa4", "x'ff'": b"\xff"}),
            Wanted(arrow=pa.large_string(), cells={"'ä'": "ä"}),
            Wanted(arrow=pa.string(), cells={"'a'": "a", "x'61'": "a"}, refused=("x'ff'",)),
            Wanted(
                arrow=pa.date32(), cells={"'1970-01-01 00:00'": dt.date(1970, 1, 1)}, refused=("'1970-01-01 00:01'",)
            ),
            Wanted(arrow=pa.timestamp("s"), cells={"'1970-01-01 00:00'": EPOCH}, refused=("'1970-01-01 00:00:00.5'",)),
            Wanted(arrow=pa.timestamp("us"), cells={"'1970-01-01'": EPOCH}, refused=("'1970-01-01 00:00Z'", "'soon'")),
            Wanted(
                arrow=pa.timestamp("us", "UTC"),
                cells={"'1970-01-01 01:00+01:00'": EPOCH, "'1970-01-01 00:00'": EPOCH},
                refused=("'10:00'",),
            ),
            Wanted(arrow=pa.time64("us"), cells={"'10:00'": dt.time(10)}, refused=("'24:00'", "'1970-01-01'")),
        ),
    ),
    *(
        SQLiteCase(type=name, arrow=pa.string(), cells=CELLS, misfits=MISFITS)
        for name in ("VARCHAR(9)", "CHAR(1)", "CLOB")
    ),
    *(
        SQLiteCase(type=name, arrow=pa.string(), cells=CELLS, shown="")
        for name in ("nvarchar(100)", "CHARACTER VARYING", "tinytext", "NATIVE CHARACTER(70)")
    ),
    # SQLite itself would make numbers of these names' texts: its affinity for them is NUMERIC.
    SQLiteCase(
        type="STRING",
        arrow=pa.string(),
        cells={"'a'": "a", "'1'": "1", "'0.50'": "0.5", "''": ""},
        shown="",
    ),
    SQLiteCase(
        type="JSON",
        arrow=pa.string(),
        cells={'\'{"b":  1, "aa": [null, 1.50]}\'': '{"b":  1, "aa": [null, 1.50]}', "'null'": "null", "'1'": "1"},
    ),
    SQLiteCase(type="TEXT", arrow=pa.string(), cells=CELLS, strict=True, shown=""),
)
