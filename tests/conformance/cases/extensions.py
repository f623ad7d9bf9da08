"""Types that extensions bring."""

import pyarrow as pa

from tests.conformance.case import Case

CASES = (
    Case(type="citext", arrow=pa.string(), cells={"'Abc'": "Abc", "''": ""}, needs=("citext",)),
    Case(
        type="hstore", arrow=pa.string(), cells={"'a=>1, b=>NULL'": '"a"=>"1", "b"=>NULL', "''": ""}, needs=("hstore",)
    ),
    Case(type="ltree", arrow=pa.string(), cells={"'top.science'": "top.science", "''": ""}, needs=("ltree",)),
    Case(
        type="vector(3)",
        arrow=pa.string(),
        cells={"'[1,2.5,-3]'": "[1,2.5,-3]"},
        native="vector",
        needs=("vector",),
        shown="vector",
    ),
)
