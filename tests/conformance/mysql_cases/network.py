"""MariaDB's addresses: texts."""

import pyarrow as pa

from tests.conformance.mysql_cases.case import MySQLCase

CASES = (
    MySQLCase(
        type="inet6",
        arrow=pa.string(),
        cells={
            "'::'": "::",
            "'2001:DB8::ff00:42:8329'": "2001:db8::ff00:42:8329",
            "'::ffff:192.0.2.1'": "::ffff:192.0.2.1",
        },
        only="MariaDB",
    ),
    MySQLCase(
        type="inet4",
        arrow=pa.string(),
        cells={"'10.0.0.1'": "10.0.0.1", "'192.0.2.255'": "192.0.2.255"},
        only="MariaDB",
    ),
)
