"""Columns that declare nothing that is known, and expressions: they are what their values are."""

from typing import Any

import pyarrow as pa

from tests.conformance.case import Misfit
from tests.conformance.sqlite_cases.case import SQLiteCase, Wanted, Widened
from tests.conformance.sqlite_cases.integers import INEXACT

INTEGERS = {"1": 1, str(INEXACT): INEXACT}
REALS = {"1": 1.0, "1.5": 1.5}
BLOBS = {"x'01'": b"\1", "x''": b""}
TEXTS = {"'a'": "a", "''": ""}
WIDENED = (
    Widened(cells={"1": 1, str(INEXACT): INEXACT}, arrow=pa.int64()),
    Widened(cells={"1": 1.0, "1.5": 1.5}, arrow=pa.float64()),
    Widened(cells={"x'01'": b"\1", "x''": b""}, arrow=pa.binary()),
)
#: Values that are not texts, and become texts.
MIXED = {"1": "1", "1.5": "1.5", "'x'": "x", "-0.0": "-0.0", "1e20": "1.0e+20"}
NUMBERS = {str(INEXACT): str(INEXACT), "0.5": "0.5"}


def _undeclared(arrow: pa.DataType, cells: dict[str, Any], shown: str) -> SQLiteCase:
    empty = None if arrow == pa.string() else pa.string()
    return SQLiteCase(type="", arrow=arrow, cells=cells, empty=empty, shown=shown)


def _expression(arrow: pa.DataType, cells: dict[str, Any], shown: str) -> SQLiteCase:
    rows = ", ".join(f"({cell})" for cell in cells)
    empty = None if arrow == pa.string() else pa.string()
    return SQLiteCase(type="", arrow=arrow, cells=cells, empty=empty, query=f"VALUES {rows}", shown=shown)


CASES = (
    _undeclared(pa.int64(), INTEGERS, "nothing, integers"),
    _undeclared(pa.float64(), REALS, "nothing, numbers"),
    _undeclared(pa.binary(), BLOBS, "nothing, BLOBs"),
    SQLiteCase(
        type="",
        arrow=pa.string(),
        cells=TEXTS,
        shown="nothing, texts",
        misfits=(Misfit(sql="x'00'", says="BLOB"),),
        widened=WIDENED,
        wanted=(
            Wanted(arrow=pa.float64(), cells={"1": 1.0, "1.5": 1.5, "'2.5'": 2.5}, refused=("'x'", "x'31'")),
            Wanted(arrow=pa.string(), cells={"1": "1", "1.5": "1.5", "'x'": "x", "x'61'": "a"}),
        ),
    ),
    SQLiteCase(type="UUID", arrow=pa.string(), cells=TEXTS, shown="any other name"),
    SQLiteCase(type="", arrow=pa.string(), cells=MIXED, shown=""),
    SQLiteCase(type="", arrow=pa.string(), cells=NUMBERS, shown=""),
    SQLiteCase(type="INTERVAL", arrow=pa.string(), cells={"'1 day'": "1 day"}, shown=""),
    SQLiteCase(type="ANY", arrow=pa.int64(), empty=pa.string(), cells=INTEGERS, strict=True, shown=""),
    _expression(pa.int64(), INTEGERS, "an expression, integers"),
    _expression(pa.float64(), REALS, ""),
    _expression(pa.string(), TEXTS, ""),
    _expression(pa.binary(), BLOBS, ""),
    # NULL first, then a number, then a word.
    _expression(pa.string(), {"NULL": None, "1.5": "1.5", "'x'": "x"}, ""),
    _expression(pa.string(), {"NULL": None}, ""),
    _expression(pa.string(), MIXED, ""),
    _expression(pa.string(), NUMBERS, ""),
)
