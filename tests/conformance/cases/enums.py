"""Enums: a dictionary over the catalogue's labels, in their order."""

import pyarrow as pa

from tests.conformance.case import Case

DICTIONARY = pa.dictionary(pa.int32(), pa.string())
MOOD = "CREATE TYPE pg_temp.\"Mood\" AS ENUM ('sad', 'Ok', 'it''s \"fine\", (so) {far}', '', 'größe')"

CASES = (
    Case(
        type='"Mood"',
        arrow=DICTIONARY,
        cells={
            "'Ok'": "Ok",
            "'sad'": "sad",
            "'it''s \"fine\", (so) {far}'": 'it\'s "fine", (so) {far}',
            "''": "",
            "'größe'": "größe",
        },
        setup=(MOOD,),
        shown="enum",
    ),
)
