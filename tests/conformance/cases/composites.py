"""Composites: structs."""

import datetime as dt
from decimal import Decimal

import pyarrow as pa

from tests.conformance.case import Case
from tests.conformance.cases.enums import DICTIONARY, MOOD

PAIR = "CREATE TYPE pg_temp.pair AS (n int, word text)"
PAIR_TYPE = pa.struct([("n", pa.int32()), ("word", pa.string())])

CASES = (
    Case(
        type="pair",
        arrow=PAIR_TYPE,
        cells={
            "ROW(1, 'a \"b\", (c)')": [1, 'a "b", (c)'],
            "ROW(NULL, '')": [None, ""],
            "ROW(NULL, NULL)": [None, None],
            "ROW(-1, E'back\\\\slash')": [-1, "back\\slash"],
        },
        setup=(PAIR,),
        shown="composite",
    ),
    Case(
        type="rich",
        arrow=pa.struct(
            [
                ("Pair", PAIR_TYPE),
                ("mood", DICTIONARY),
                ("list", pa.list_(pa.date32())),
                ("price", pa.decimal128(10, 2)),
                ("bytes", pa.binary()),
            ]
        ),
        cells={
            "ROW(ROW(1, 'x'), 'Ok', ARRAY['2023-01-01'::date, NULL], 1.5, '\\x00ff')": [
                [1, "x"],
                "Ok",
                [dt.date(2023, 1, 1), None],
                Decimal("1.50"),
                b"\x00\xff",
            ],
            "ROW(NULL, NULL, NULL, NULL, NULL)": [None] * 5,
        },
        setup=(
            PAIR,
            MOOD,
            """CREATE TYPE pg_temp.rich AS ("Pair" pg_temp.pair, mood pg_temp."Mood", list date[],
            price numeric(10,2), bytes bytea)""",
        ),
        shown="",
    ),
    Case(
        type="odd",
        # inet has no binary form here: the whole composite comes as text.
        arrow=pa.struct(
            [
                ("address", pa.string()),
                ("pair", PAIR_TYPE),
                ("moods", pa.list_(DICTIONARY)),
                ("at", pa.timestamp("us", tz="UTC")),
                ("real", pa.float64()),
                ("bytes", pa.binary()),
                ("span", pa.month_day_nano_interval()),
            ]
        ),
        cells={
            "ROW('10.0.0.1', ROW(1, 'a,\"b\"'), ARRAY['sad', NULL, 'it''s \"fine\", (so) {far}']::pg_temp.\"Mood\"[], "
            "'2024-01-01 00:00+00', 0.1, '\\x00ff', '-1 mon 1 day')": [
                "10.0.0.1",
                [1, 'a,"b"'],
                ["sad", None, 'it\'s "fine", (so) {far}'],
                dt.datetime(2024, 1, 1, tzinfo=dt.UTC),
                0.1,
                b"\x00\xff",
                (-1, 1, 0),
            ],
        },
        setup=(
            PAIR,
            MOOD,
            """CREATE TYPE pg_temp.odd AS (address inet, pair pg_temp.pair, moods pg_temp."Mood"[],
            at timestamptz, real float8, bytes bytea, span interval)""",
        ),
        shown="",
    ),
    Case(
        type="free",
        # A numeric without a scale inside: found for the whole result.
        arrow=pa.struct([("amount", pa.decimal128(38, 3))]),
        cells={"ROW(1.5)": [Decimal("1.500")], "ROW(0.125)": [Decimal("0.125")], "ROW(NULL)": [None]},
        setup=("CREATE TYPE pg_temp.free AS (amount numeric)",),
        shown="",
    ),
    Case(
        type="wrapped",
        # Domains keep their own names inside composites.
        arrow=pa.struct([("numbers", pa.list_(pa.int32())), ("prices", pa.list_(pa.decimal128(10, 2)))]),
        cells={"ROW('{1,NULL}', '{1.5,NULL}')": [[1, None], [Decimal("1.50"), None]], "ROW('{}', NULL)": [[], None]},
        setup=(
            "CREATE DOMAIN pg_temp.int_list AS int[]",
            "CREATE DOMAIN pg_temp.price AS numeric(10,2)",
            "CREATE TYPE pg_temp.wrapped AS (numbers pg_temp.int_list, prices pg_temp.price[])",
        ),
        shown="",
    ),
    Case(
        type="nothing", arrow=pa.struct([]), cells={"ROW()": []}, setup=("CREATE TYPE pg_temp.nothing AS ()",), shown=""
    ),
)
