"""Texts, in whatever character set and collation they are kept."""

import pyarrow as pa

from tests.conformance.mysql_cases.case import MySQLCase

TEXTS = {
    "''": "",
    "'it''s'": "it's",
    "'a\\\\b\\n\\0c'": "a\\b\n\0c",
    "'größe \N{GRINNING FACE}'": "größe \N{GRINNING FACE}",
}
#: Longer than what fits a length of one byte.
LONG = {"repeat('ä', 300)": "ä" * 300}

CASES = (
    MySQLCase(type="char(10)", arrow=pa.string(), cells=TEXTS),
    MySQLCase(type="varchar(20)", arrow=pa.string(), cells=TEXTS),
    MySQLCase(type="varchar(10000)", arrow=pa.string(), cells={**TEXTS, **LONG}, shown=""),
    MySQLCase(type="tinytext", native="text", arrow=pa.string(), cells=TEXTS),
    MySQLCase(type="text", arrow=pa.string(), cells={**TEXTS, **LONG}),
    MySQLCase(type="mediumtext", native="text", arrow=pa.string(), cells={**LONG, "repeat('x', 70000)": "x" * 70000}),
    MySQLCase(type="longtext", native="text", arrow=pa.string(), cells={**TEXTS, "repeat('x', 70000)": "x" * 70000}),
    MySQLCase(
        type="varchar(20) CHARACTER SET latin1",
        native="varchar(20)",
        arrow=pa.string(),
        cells={"'größe €'": "größe €", "''": ""},
        shown="",
    ),
    # Only the character set makes bytes of a text, not a collation that compares bytes.
    MySQLCase(
        type="varchar(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
        native="varchar(20)",
        arrow=pa.string(),
        cells=TEXTS,
        shown="",
    ),
    MySQLCase(type="text CHARACTER SET utf16", native="text", arrow=pa.string(), cells={"'größe'": "größe"}, shown=""),
)
