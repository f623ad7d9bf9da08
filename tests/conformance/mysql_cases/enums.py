"""enum and set: texts."""

import pyarrow as pa

from tests.conformance.mysql_cases.case import MySQLCase

CASES = (
    MySQLCase(
        type="enum('sad','it''s','größe')",
        native="enum",
        arrow=pa.string(),
        cells={"'sad'": "sad", "'it''s'": "it's", "3": "größe"},
        shown="enum",
    ),
    MySQLCase(
        type="set('a','b','c')",
        native="set",
        arrow=pa.string(),
        cells={"''": "", "'a'": "a", "'c,a'": "a,c"},
        shown="set",
    ),
)
