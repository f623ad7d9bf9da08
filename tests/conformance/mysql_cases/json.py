"""JSON: MySQL's own type, and MariaDB's checked text, which keeps what was written."""

import pyarrow as pa

from tests.conformance.mysql_cases.case import MySQLCase

CASES = (
    MySQLCase(
        type="json",
        arrow=pa.string(),
        extension="arrow.json",
        cells={
            '\'{"b":  1, "aa": [null, 1.5]}\'': '{"b": 1, "aa": [null, 1.5]}',
            "'null'": "null",
            "'\"größe\"'": '"größe"',
        },
        only="MySQL",
    ),
    MySQLCase(
        type="json",
        arrow=pa.string(),
        extension="arrow.json",
        cells={
            '\'{"b":  1, "aa": [null, 1.50]}\'': '{"b":  1, "aa": [null, 1.50]}',
            "'null'": "null",
            "'\"größe\"'": '"größe"',
        },
        only="MariaDB",
    ),
)
