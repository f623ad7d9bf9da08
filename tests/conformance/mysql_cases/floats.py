"""Floating point. In the text protocol the server itself would round a float, which is refused there."""

import pyarrow as pa

from tests.conformance.mysql_cases.case import MySQLCase

CASES = (
    MySQLCase(
        type="float",
        rounded_in_text=True,
        arrow=pa.float32(),
        cells={
            "0": 0.0,
            "1.5": 1.5,
            "-0.1": -0.10000000149011612,
            "16777217": 16777216.0,
            "3.4028234e38": 3.4028234663852886e38,
            "1.17549435e-38": 1.1754943508222875e-38,
        },
    ),
    MySQLCase(
        type="float unsigned",
        rounded_in_text=True,
        native="float unsigned",
        arrow=pa.float32(),
        cells={"0.25": 0.25},
        shown="",
    ),
    MySQLCase(
        type="float(7,3)",
        rounded_in_text=True,
        native="float",
        arrow=pa.float32(),
        cells={"1234.125": 1234.125},
        shown="",
    ),
    MySQLCase(
        type="double",
        arrow=pa.float64(),
        cells={
            "0": 0.0,
            "0.1": 0.1,
            "-1.7976931348623157e308": -1.7976931348623157e308,
            "2.2250738585072014e-308": 2.2250738585072014e-308,
            "9007199254740993": 2.0**53,
            "0.30000000000000004e0": 0.30000000000000004,
            "1e22": 1e22,
            "123456789012345680000e0": 123456789012345680000.0,
        },
    ),
    MySQLCase(type="double(15,3)", native="double", arrow=pa.float64(), cells={"1234.125": 1234.125}, shown=""),
)
