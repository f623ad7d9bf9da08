"""bit: numbers of up to 64 bits."""

import pyarrow as pa

from tests.conformance.mysql_cases.case import MySQLCase

CASES = (
    MySQLCase(type="bit(1)", arrow=pa.uint64(), cells={"b'0'": 0, "b'1'": 1}),
    MySQLCase(
        type="bit(9)", arrow=pa.uint64(), cells={"b'000000001'": 1, "b'100000000'": 256, "b'111111111'": 511}, shown=""
    ),
    MySQLCase(
        type="bit(64)", arrow=pa.uint64(), cells={"0": 0, "b'1'": 1, "18446744073709551615": 2**64 - 1}, shown=""
    ),
)
