"""0 and 1, where they are declared to mean something."""

import pyarrow as pa

from tests.conformance.sqlite_cases.case import SQLiteCase, Wanted, Widened

CASES = (
    SQLiteCase(
        type="BOOLEAN",
        arrow=pa.bool_(),
        cells={"1": True, "0": False, "true": True, "1.0": True},
        widened=(
            Widened(cells={"1": 1, "2": 2}, arrow=pa.int64()),
            Widened(cells={"0": 0, "-1": -1}, arrow=pa.int64()),
            Widened(cells={"1": 1.0, "0.5": 0.5}, arrow=pa.float64()),
            Widened(cells={"1": "1", "'true'": "true"}, arrow=pa.string()),
        ),
        wanted=(
            Wanted(arrow=pa.int8(), cells={"1": 1, "0": 0}),
            Wanted(
                arrow=pa.bool_(),
                cells={"1": True, "'true'": True, "'F'": False, "0": False},
                refused=("2", "0.5", "'yes'", "x'01'"),
            ),
        ),
    ),
    SQLiteCase(type="BOOL", arrow=pa.bool_(), cells={"1": True, "0": False}),
)
