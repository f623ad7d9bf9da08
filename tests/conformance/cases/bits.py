"""Strings of bits."""

import pyarrow as pa

from tests.conformance.case import Case

CASES = (
    Case(type="bit(4)", arrow=pa.string(), cells={"B'1010'": "1010", "B'0000'": "0000"}, native="bit", shown="bit(n)"),
    Case(type="varbit", arrow=pa.string(), cells={"B''": "", "B'101'": "101", "repeat('1', 70)": "1" * 70}),
)
