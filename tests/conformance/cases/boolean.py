"""bool."""

import pyarrow as pa

from tests.conformance.case import Case

CASES = (Case(type="bool", arrow=pa.bool_(), cells={"true": True, "false": False}),)
