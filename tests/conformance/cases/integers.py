"""Integers, with and without a sign: each keeps its width."""

import pyarrow as pa

from tests.conformance.case import Case

CASES = (
    Case(type="int2", arrow=pa.int16(), cells={"'-32768'": -(2**15), "0": 0, "32767": 2**15 - 1}),
    Case(type="int4", arrow=pa.int32(), cells={"'-2147483648'": -(2**31), "0": 0, "2147483647": 2**31 - 1}),
    Case(
        type="int8",
        arrow=pa.int64(),
        # 2^53 + 1 is the first integer that a double does not hold.
        cells={"'-9223372036854775808'": -(2**63), "9007199254740993": 2**53 + 1, "9223372036854775807": 2**63 - 1},
    ),
    Case(type="oid", arrow=pa.uint32(), cells={"0": 0, "'4294967295'": 2**32 - 1}),
    Case(type="xid", arrow=pa.uint32(), cells={"'0'": 0, "'4294967295'": 2**32 - 1}),
    Case(type="cid", arrow=pa.uint32(), cells={"'0'": 0, "'4294967295'": 2**32 - 1}),
    Case(type="xid8", arrow=pa.uint64(), cells={"'0'": 0, "'18446744073709551615'": 2**64 - 1}),
)
