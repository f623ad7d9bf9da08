"""money, whose text is the locale's."""

import pyarrow as pa

from tests.conformance.case import Case

CASES = (
    Case(
        type="money",
        arrow=pa.string(),
        cells={"'0'": "$0.00", "'-92233720368547758.08'": "-$92,233,720,368,547,758.08", "'12.34'": "$12.34"},
    ),
)
