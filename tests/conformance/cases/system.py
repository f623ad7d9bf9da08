"""Types of PostgreSQL's own workings."""

import pyarrow as pa

from tests.conformance.case import Case

CASES = (
    Case(type="pg_lsn", arrow=pa.string(), cells={"'16/B374D848'": "16/B374D848", "'0/0'": "0/0"}),
    Case(type="tid", arrow=pa.string(), cells={"'(0,1)'": "(0,1)", "'(4294967295,65535)'": "(4294967295,65535)"}),
    Case(type="regclass", arrow=pa.string(), cells={"'pg_class'": "pg_class"}, shown="regclass and its like"),
    Case(type="regtype", arrow=pa.string(), cells={"'int4'": "integer"}, shown=""),
    Case(type="int2vector", arrow=pa.list_(pa.int16()), cells={"'1 2 -3'": [1, 2, -3], "''": []}, native="int2[]"),
    Case(
        type="oidvector",
        arrow=pa.list_(pa.uint32()),
        cells={"'1 4294967295'": [1, 2**32 - 1], "''": []},
        native="oid[]",
    ),
    Case(type="pg_snapshot", arrow=pa.string(), cells={"'10:20:10,14'": "10:20:10,14"}),
    Case(type="refcursor", arrow=pa.string(), cells={"'c'": "c"}),
    Case(type="aclitem", arrow=pa.string(), cells={"'=r/postgres'": "=r/postgres"}),
)
