"""uuid."""

import pyarrow as pa

from tests.conformance.case import Case

CASES = (
    Case(
        type="uuid",
        arrow=pa.binary(16),
        extension="arrow.uuid",
        cells={
            "'00000000-0000-0000-0000-000000000000'": bytes(16),
            "'12345678-9ABC-def0-1234-56789abcdef0'": bytes.fromhex("123456789abcdef0123456789abcdef0"),
            "'ffffffff-ffff-ffff-ffff-ffffffffffff'": b"\xff" * 16,
        },
    ),
)
