"""Ranges and multiranges."""

import pyarrow as pa

from tests.conformance.case import Case

CASES = (
    Case(type="int4range", arrow=pa.string(), cells={"'[1,3)'": "[1,3)", "'empty'": "empty", "'(,)'": "(,)"}),
    Case(type="int8range", arrow=pa.string(), cells={"'[1,9223372036854775807)'": "[1,9223372036854775807)"}),
    Case(type="numrange", arrow=pa.string(), cells={"'(1.50,2]'": "(1.50,2]"}),
    Case(type="daterange", arrow=pa.string(), cells={"'[2024-01-01,infinity)'": "[2024-01-01,infinity)"}),
    Case(type="tsrange", arrow=pa.string(), cells={"'[2024-01-01,)'": '["2024-01-01 00:00:00",)'}),
    Case(type="tstzrange", arrow=pa.string(), cells={"'[2024-01-01 00:00+01,)'": '["2024-01-01 00:00:00+01",)'}),
    Case(type="int4multirange", arrow=pa.string(), cells={"'{[1,3),[5,7)}'": "{[1,3),[5,7)}", "'{}'": "{}"}),
    Case(type="int8multirange", arrow=pa.string(), cells={"'{[1,3)}'": "{[1,3)}"}),
    Case(type="nummultirange", arrow=pa.string(), cells={"'{[1.5,3)}'": "{[1.5,3)}"}),
    Case(type="datemultirange", arrow=pa.string(), cells={"'{[2024-01-01,2024-01-02)}'": "{[2024-01-01,2024-01-02)}"}),
    Case(type="tsmultirange", arrow=pa.string(), cells={"'{[2024-01-01,)}'": '{["2024-01-01 00:00:00",)}'}),
    Case(type="tstzmultirange", arrow=pa.string(), cells={"'{}'": "{}"}),
    Case(
        type="floatrange",
        arrow=pa.string(),
        cells={"'[1.5,2)'": "[1.5,2)"},
        setup=("CREATE TYPE pg_temp.floatrange AS RANGE (subtype = float8)",),
        shown="ranges of one's own",
    ),
)
