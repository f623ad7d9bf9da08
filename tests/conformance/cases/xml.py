"""xml."""

import pyarrow as pa

from tests.conformance.case import Case

CASES = (
    Case(
        type="xml", arrow=pa.string(), cells={"'<a b=\"c\">ü</a>'": '<a b="c">ü</a>', "'text'": "text"}, needs=("xml",)
    ),
)
