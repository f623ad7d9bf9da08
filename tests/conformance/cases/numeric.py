"""numeric in every form: exact, or refused by name."""

from decimal import Decimal

import pyarrow as pa

from tests.conformance.case import Case, Misfit

NOT_FINITE = (
    Misfit(sql="'NaN'", says="NaN has no exact decimal", option="numeric_nan"),
    Misfit(sql="'Infinity'", says="inf has no exact decimal", option="numeric_nan"),
    Misfit(sql="'-Infinity'", says="-inf has no exact decimal", option="numeric_nan"),
)
TINY = "'1e-1000'"

CASES = (
    Case(
        type="numeric(10,2)",
        arrow=pa.decimal128(10, 2),
        cells={
            "0": Decimal("0.00"),
            "1.5": Decimal("1.50"),
            "'-99999999.99'": Decimal("-99999999.99"),
            "99999999.99": Decimal("99999999.99"),
        },
        misfits=NOT_FINITE[:1],
    ),
    Case(
        type="numeric(29,9)",
        arrow=pa.decimal128(29, 9),
        cells={"12345678901234567890.123456789": Decimal("12345678901234567890.123456789")},
        shown="",
    ),
    Case(
        type="numeric(38,10)",
        arrow=pa.decimal128(38, 10),
        cells={
            "1": Decimal("1.0000000000"),
            "1234567890123456789012345678.0123456789": Decimal("1234567890123456789012345678.0123456789"),
        },
        shown="",
    ),
    Case(
        type="numeric(38,0)",
        arrow=pa.decimal128(38, 0),
        cells={"9" * 38: Decimal("9" * 38), "'-" + "9" * 38 + "'": Decimal("-" + "9" * 38)},
        shown="",
    ),
    Case(
        type="numeric(39,1)",
        arrow=pa.decimal256(39, 1),
        cells={"9" * 38 + ".9": Decimal("9" * 38 + ".9"), "'-0.1'": Decimal("-0.1")},
        shown="numeric(p,s), 38 < p",
    ),
    Case(
        type="numeric(76,38)",
        arrow=pa.decimal256(76, 38),
        cells={"9" * 38 + "." + "9" * 38: Decimal("9" * 38 + "." + "9" * 38)},
        shown="",
    ),
    Case(
        type="numeric(3,-2)",
        arrow=pa.decimal128(5, 0),
        cells={"12345": Decimal(12300), "'-99900'": Decimal(-99900), "0": Decimal(0)},
        since=15,
        shown="numeric(3,-2)",
    ),
    Case(
        type="numeric(3,5)",
        arrow=pa.decimal128(5, 5),
        cells={"0.00999": Decimal("0.00999"), "'-0.00001'": Decimal("-0.00001")},
        since=15,
        shown="numeric(3,5)",
    ),
    # Beyond 76 digits a declaration tells Arrow nothing; the values do.
    Case(
        type="numeric(100,50)",
        arrow=pa.decimal128(38, 1),
        cells={"1.5": Decimal("1.5"), "'-12345.0'": Decimal("-12345.0")},
        shown="",
    ),
    Case(
        type="numeric",
        arrow=pa.decimal128(38, 9),
        cells={
            "0": Decimal("0.000000000"),
            "12345678901234567890.123456789": Decimal("12345678901234567890.123456789"),
            "'1e3'": Decimal("1000.000000000"),
        },
        misfits=(
            *NOT_FINITE,
            Misfit(sql=TINY, says="1000 after it"),
            Misfit(sql="'1e77'", says="78 digits before the point"),
        ),
        shown="numeric",
    ),
    Case(
        type="numeric",
        arrow=pa.decimal128(38, 0),
        cells={"'1e37'": Decimal("1" + "0" * 37), "'-1.000'": Decimal(-1)},
        shown="",
    ),
    Case(
        type="numeric",
        arrow=pa.decimal256(76, 20),
        cells={"'1e30'": Decimal("1" + "0" * 30 + "." + "0" * 20), "'1e-20'": Decimal("0." + "0" * 19 + "1")},
        shown="",
    ),
    Case(
        type="numeric", arrow=pa.decimal256(76, 0), cells={"9" * 76: Decimal("9" * 76), "'-1'": Decimal(-1)}, shown=""
    ),
    Case(
        type="numeric",
        arrow=pa.decimal128(38, 38),
        cells={"'1e-38'": Decimal("0." + "0" * 37 + "1"), "'0.000'": Decimal("0." + "0" * 38)},
        shown="",
    ),
)
