"""JSON: its text, exactly; jsonb's is the server's own."""

import pyarrow as pa

from tests.conformance.case import Case

CASES = (
    Case(
        type="json",
        arrow=pa.string(),
        extension="arrow.json",
        cells={
            '\'{"b":  1, "a": [null, 1.50]}\'': '{"b":  1, "a": [null, 1.50]}',
            "'null'": "null",
            "'\"\\u00fc\"'": '"\\u00fc"',
            "'12345678901234567890.10'": "12345678901234567890.10",
        },
    ),
    Case(
        type="jsonb",
        arrow=pa.string(),
        extension="arrow.json",
        cells={
            '\'{"b":  1, "a": [null, 1.50]}\'': '{"a": [null, 1.50], "b": 1}',
            "'null'": "null",
            "'\"\\u00fc\"'": '"ü"',
            "'12345678901234567890.10'": "12345678901234567890.10",
        },
    ),
    Case(type="jsonpath", arrow=pa.string(), cells={"'$.a[*] ? (@ > 1)'": '$."a"[*]?(@ > 1)', "'$'": "$"}),
)
