"""Types that no table has: text under their own names."""

import pyarrow as pa

from tests.conformance.case import Case

CASES = (
    Case(
        type="record",
        arrow=pa.string(),
        cells={"1": "(1,a)", "2": "(2,)"},
        query="VALUES (ROW(1, 'a')), (ROW(2, NULL))",
    ),
    Case(
        type="record[]",
        arrow=pa.list_(pa.string()),
        cells={"1": ["(1,a)"]},
        query="SELECT ARRAY[ROW(1, 'a')]",
        shown="",
    ),
    Case(type="void", arrow=pa.string(), cells={"1": ""}, query="SELECT pg_sleep(0)"),
    Case(type="cstring", arrow=pa.string(), cells={"1": "7"}, query="SELECT int4out(7)", shown=""),
    Case(type="text", arrow=pa.string(), cells={"1": "untyped"}, query="SELECT 'untyped'", shown=""),
    Case(type="int4", arrow=pa.int32(), cells={}, query="SELECT NULL::int WHERE false", shown=""),
)
