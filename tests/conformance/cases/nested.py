"""Arrays that are more than one dimension of one type; `test_types` makes arrays of every case besides."""

import datetime as dt
from decimal import Decimal

import pyarrow as pa

from tests.conformance.case import Case, Misfit
from tests.conformance.cases.composites import PAIR, PAIR_TYPE

UNDECLARED = "an array of 2 dimensions where the column's type has 1"

CASES = (
    Case(
        type="date[]",
        arrow=pa.list_(pa.date32()),
        cells={"ARRAY['2023-01-01'::date, NULL]": [dt.date(2023, 1, 1), None], "'{}'": [], "'{NULL}'": [None]},
        misfits=(
            Misfit(sql="ARRAY[['2023-01-01'::date]]", says=UNDECLARED),
            Misfit(sql="ARRAY['infinity'::date]", says="infinity"),
        ),
        shown="T[]",
    ),
    Case(
        type="int4[][]",
        arrow=pa.list_(pa.list_(pa.int32())),
        cells={
            "'{{1,NULL},{3,4}}'": [[1, None], [3, 4]],
            "'{}'": [],
            "'{{5}}'": [[5]],
        },
        misfits=(Misfit(sql="'{1,2}'", says="an array of 1 dimensions where the column's type has 2"),),
        native="int4[]",
        shown="T[][]",
    ),
    Case(
        type="text[][][]",
        arrow=pa.list_(pa.list_(pa.list_(pa.string()))),
        cells={
            '\'{{{a,NULL},{"NULL",""}}}\'': [[["a", None], ["NULL", ""]]],
            "'{{{x},{y}},{{z},{\"{}\"}}}'": [[["x"], ["y"]], [["z"], ["{}"]]],
        },
        native="text[]",
        shown="",
    ),
    Case(
        type="numeric[]",
        arrow=pa.list_(pa.decimal128(38, 2)),
        cells={"'{1.25,NULL}'": [Decimal("1.25"), None], "'{3}'": [Decimal("3.00")]},
        misfits=(Misfit(sql="'{NaN}'", says="NaN has no exact decimal", option=None),),
        shown="",
    ),
    Case(
        type="numeric(10,2)[]",
        arrow=pa.list_(pa.decimal128(10, 2)),
        cells={"'{1.5,NULL}'": [Decimal("1.50"), None]},
        shown="",
    ),
    Case(
        type="pair[]",
        arrow=pa.list_(PAIR_TYPE),
        cells={"ARRAY[ROW(1, 'a,b')::pg_temp.pair, NULL, ROW(NULL, '')]": [[1, "a,b"], None, [None, ""]]},
        setup=(PAIR,),
        shown="",
    ),
    Case(
        type="int_list[]",
        # An array of a domain over arrays: two levels of lists, whatever the column declares.
        arrow=pa.list_(pa.list_(pa.int32())),
        cells={"ARRAY['{1,NULL}'::pg_temp.int_list, NULL, '{}']": [[1, None], None, []]},
        native="int4[][]",
        setup=("CREATE DOMAIN pg_temp.int_list AS int[]",),
        shown="",
    ),
    Case(
        type="int_list[][]",
        arrow=pa.list_(pa.list_(pa.list_(pa.int32()))),
        cells={"ARRAY[['{1,NULL}'::pg_temp.int_list, NULL], ['{}', '{3}']]": [[[1, None], None], [[], [3]]]},
        native="int4[][]",
        setup=("CREATE DOMAIN pg_temp.int_list AS int[]",),
        shown="",
    ),
)
