"""More text in one column than an array with 32-bit offsets holds."""

import pyarrow as pa

from tests.mysql.reading import numbers, table
from tests.servers import MySQLEndpoint

ROWS, SIZE = 2200, 1_000_000


def test_a_column_of_more_than_2_gibibytes(mariadb: MySQLEndpoint) -> None:
    # The server copies piece by piece, and pieces of one letter take it several times as long.
    letters = f"repeat(repeat(char(97 + i % 26 USING utf8mb4), 1000), {SIZE // 1000})"
    result = table(f"{numbers(ROWS)} SELECT i, {letters} AS t FROM numbers WHERE i < {ROWS}", mariadb.url())
    assert result.schema.field("t").type in {pa.string(), pa.large_string()}
    assert ROWS * SIZE > 2**31
    assert sorted(result["i"].to_pylist()) == list(range(ROWS))
    expected = [chr(97 + letter) * SIZE for letter in range(26)]
    assert all(text.as_py() == expected[i.as_py() % 26] for i, text in zip(result["i"], result["t"], strict=True))
