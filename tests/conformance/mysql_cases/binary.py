"""Bytes: what has the character set `binary`."""

import pyarrow as pa

from tests.conformance.mysql_cases.case import MySQLCase

BYTES = {"''": b"", "x'00ff5c27'": b"\x00\xff\x5c\x27"}

CASES = (
    MySQLCase(type="binary(4)", arrow=pa.binary(), cells={"x'00ff'": b"\x00\xff\0\0", "'abcd'": b"abcd"}),
    MySQLCase(type="varbinary(20)", arrow=pa.binary(), cells=BYTES),
    MySQLCase(type="tinyblob", native="blob", arrow=pa.binary(), cells=BYTES),
    MySQLCase(type="blob", arrow=pa.binary(), cells={**BYTES, "repeat('x', 300)": b"x" * 300}),
    MySQLCase(type="mediumblob", native="blob", arrow=pa.binary(), cells={"repeat('x', 70000)": b"x" * 70000}),
    MySQLCase(type="longblob", native="blob", arrow=pa.binary(), cells=BYTES),
)
