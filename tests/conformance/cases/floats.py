"""Floats, to the last bit: NaN, infinities, minus zero and denormals included."""

import math

import numpy as np
import pyarrow as pa

from tests.conformance.case import Case

SPECIAL = {"'NaN'": math.nan, "'Infinity'": math.inf, "'-Infinity'": -math.inf, "'-0'": -0.0}

CASES = (
    Case(
        type="float4",
        arrow=pa.float32(),
        cells={
            **SPECIAL,
            "'1e-45'": float(np.float32(1e-45)),
            "'3.4028235e38'": float(np.float32(3.4028235e38)),
            "0.1": float(np.float32(0.1)),
            "16777216": 16777216.0,
        },
    ),
    Case(
        type="float8",
        arrow=pa.float64(),
        cells={
            **SPECIAL,
            "'5e-324'": 5e-324,
            "'2.2250738585072011e-308'": 2.2250738585072011e-308,
            "'1.7976931348623157e308'": 1.7976931348623157e308,
            "0.1": 0.1,
            "'9007199254740993'": 2.0**53,
        },
    ),
)
