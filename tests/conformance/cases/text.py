"""Text and bytes."""

import pyarrow as pa

from tests.conformance.case import Case

WORDS = {
    "''": "",
    "'NULL'": "NULL",
    "'a\"b\\c{d},(e)'": 'a"b\\c{d},(e)',
    "E'a\\n\\t b '": "a\n\t b ",
    "'größe 漢字 😀'": "größe 漢字 😀",
    "'x''; DROP--'": "x'; DROP--",
}

CASES = (
    Case(type="text", arrow=pa.string(), cells={**WORDS, "repeat('é', 100000)": "é" * 100000}),
    Case(type="varchar", arrow=pa.string(), cells=WORDS, shown="varchar, varchar(n)"),
    Case(type="varchar(12)", arrow=pa.string(), cells={"''": "", "'größe'": "größe"}, shown=""),
    Case(
        type="char(10)",
        arrow=pa.string(),
        # Blank-padded, as the server sends it: compared as it stands, it is found again.
        cells={"'BUILDING'": "BUILDING  ", "''": " " * 10, "'größe'": "größe     "},
        native="bpchar(10)",
        shown="char(n)",
    ),
    Case(type="name", arrow=pa.string(), cells={"'x'": "x", "''": "", "'größe'": "größe"}),
    Case(type='"char"', arrow=pa.string(), cells={"'a'": "a", "''": ""}, native="char", shown='"char"'),
    Case(
        type="bytea",
        arrow=pa.binary(),
        cells={"''": b"", "'\\x00ff5c22'": b'\x00\xff\\"', "'plain'": b"plain", "decode('7b7d2c', 'hex')": b"{},"},
    ),
    Case(
        type="tsvector", arrow=pa.string(), cells={"'a b'": "'a' 'b'", "''": "", "'fat:1A cat:2'": "'cat':2 'fat':1A"}
    ),
    Case(type="tsquery", arrow=pa.string(), cells={"'a & !b'": "'a' & !'b'", "''": ""}),
)
