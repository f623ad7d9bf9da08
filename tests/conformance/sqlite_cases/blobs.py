"""Bytes."""

import pyarrow as pa

from tests.conformance.case import Misfit
from tests.conformance.sqlite_cases.case import SQLiteCase, Wanted, Widened

CELLS = {"x''": b"", "x'00ff'": b"\x00\xff", "zeroblob(3)": b"\0\0\0"}
IDENTIFIER = "12345678-9abc-4ef0-9234-56789abcdef0"

CASES = (
    SQLiteCase(
        type="BLOB",
        arrow=pa.binary(),
        cells=CELLS,
        misfits=(Misfit(sql="'a'", says="TEXT"),),
        widened=(
            Widened(cells={"'a'": "a"}, arrow=pa.string()),
            Widened(cells={"1": 1}, arrow=pa.int64()),
            Widened(cells={"1": 1.0, "0.5": 0.5}, arrow=pa.float64()),
        ),
        wanted=(
            Wanted(arrow=pa.string(), cells={"x'61'": "a", "1": "1"}, refused=("x'ff'",)),
            Wanted(arrow=pa.binary(), cells={"'a'": b"a", "x'ff'": b"\xff"}, refused=("1",)),
            Wanted(arrow=pa.large_binary(), cells={"x'ff'": b"\xff"}),
            Wanted(
                arrow=pa.binary(16),
                cells={
                    f"x'{IDENTIFIER.replace('-', '')}'": bytes.fromhex(IDENTIFIER.replace("-", "")),
                    f"'{IDENTIFIER}'": bytes.fromhex(IDENTIFIER.replace("-", "")),
                },
                refused=("x'00'", "'x'"),
            ),
            Wanted(arrow=pa.int64(), refused=("x'31'",)),
        ),
    ),
    SQLiteCase(type="VARBINARY(3)", arrow=pa.binary(), cells=CELLS),
    *(SQLiteCase(type=name, arrow=pa.binary(), cells=CELLS, shown="") for name in ("BINARY", "bytea", "longblob")),
    SQLiteCase(type="BLOB", arrow=pa.binary(), cells=CELLS, strict=True, shown=""),
)
