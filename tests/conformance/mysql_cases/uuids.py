"""MariaDB's uuid."""

import pyarrow as pa

from tests.conformance.mysql_cases.case import MySQLCase

CASES = (
    MySQLCase(
        type="uuid",
        arrow=pa.binary(16),
        extension="arrow.uuid",
        cells={
            "'00000000-0000-0000-0000-000000000000'": bytes(16),
            "'12345678-9ABC-4ef0-9234-56789abcdef0'": bytes.fromhex("123456789abc4ef0923456789abcdef0"),
            "'ffffffff-ffff-ffff-ffff-ffffffffffff'": b"\xff" * 16,
        },
        only="MariaDB",
    ),
)
