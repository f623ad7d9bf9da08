"""interval: three parts, none of which becomes another."""

import pyarrow as pa

from tests.conformance.case import Case, Misfit

CASES = (
    Case(
        type="interval",
        arrow=pa.month_day_nano_interval(),
        cells={
            "'0'": (0, 0, 0),
            "'1 mon 2 days'": (1, 2, 0),
            "'-1 mon +2 days -00:00:00.000001'": (-1, 2, -1000),
            "'14 mons -3 days 04:05:06.789'": (14, -3, 14_706_789_000_000),
            "'2147483647 days'": (0, 2**31 - 1, 0),
            "'-178000000 years'": (-178_000_000 * 12, 0, 0),
            "'100000 hours'": (0, 0, 360_000_000_000_000_000),
        },
        misfits=(Misfit(sql="'3000000 hours'", says="beyond what Arrow's type holds", option="infinity"),),
    ),
    Case(
        type="interval",
        arrow=pa.month_day_nano_interval(),
        cells={"'1 day'": (0, 1, 0)},
        misfits=(
            Misfit(sql="'infinity'", says="infinity has no Arrow value", option="infinity"),
            Misfit(sql="'-infinity'", says="infinity has no Arrow value", option="infinity"),
        ),
        since=17,
        shown="",
    ),
)
