"""Domains: what they are made of."""

from decimal import Decimal

import pyarrow as pa

from tests.conformance.case import Case
from tests.conformance.cases.enums import DICTIONARY, MOOD

CASES = (
    Case(
        type="price",
        arrow=pa.decimal128(10, 2),
        cells={"1.5": Decimal("1.50"), "'-99999999.99'": Decimal("-99999999.99")},
        native="numeric(10,2)",
        setup=("CREATE DOMAIN pg_temp.price AS numeric(10,2) CHECK (value <> 0)",),
        shown="domain over T",
    ),
    Case(
        type="word",
        arrow=pa.string(),
        cells={"'a b'": "a b"},
        native="varchar(5)",
        setup=("CREATE DOMAIN pg_temp.short AS varchar(5)", "CREATE DOMAIN pg_temp.word AS pg_temp.short"),
        shown="",
    ),
    Case(
        type="int_list",
        arrow=pa.list_(pa.int32()),
        cells={"'{1,NULL,3}'": [1, None, 3], "'{}'": []},
        native="int4[]",
        setup=("CREATE DOMAIN pg_temp.int_list AS int[]",),
        shown="",
    ),
    Case(
        type="spirit",
        arrow=DICTIONARY,
        cells={"'sad'": "sad"},
        native='"Mood"',
        setup=(MOOD, 'CREATE DOMAIN pg_temp.spirit AS "Mood"'),
        shown="",
    ),
)
