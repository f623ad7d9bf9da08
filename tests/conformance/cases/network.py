"""Addresses."""

import pyarrow as pa

from tests.conformance.case import Case

CASES = (
    Case(
        type="inet",
        arrow=pa.string(),
        cells={
            "'10.0.0.1/8'": "10.0.0.1/8",
            "'10.0.0.1'": "10.0.0.1",
            "'::1'": "::1",
            "'2001:db8::/32'": "2001:db8::/32",
        },
    ),
    Case(type="cidr", arrow=pa.string(), cells={"'10.0.0.0/8'": "10.0.0.0/8", "'::1'": "::1/128"}),
    Case(type="macaddr", arrow=pa.string(), cells={"'08:00:2B:01:02:03'": "08:00:2b:01:02:03"}),
    Case(type="macaddr8", arrow=pa.string(), cells={"'08:00:2b:01:02:03'": "08:00:2b:ff:fe:01:02:03"}),
)
