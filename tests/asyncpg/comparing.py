"""Arrays, compared with asyncpg's own records."""

from typing import Any

import numpy as np

ROWS = "SELECT i, i * 2.5::float8 AS x, NULLIF(i % 3, 0) AS n, 't' || i AS t FROM generate_series(1, {rows}) AS i"
DTYPE = np.dtype([("i", "i4"), ("x", "f8"), ("n", "i4"), ("t", "S8")])


def rows(number: int) -> str:
    """Give a query of so many rows of ``DTYPE``."""
    return ROWS.format(rows=number)


def assert_rows(got: tuple[Any, list[int]], first: int, last: int) -> None:
    """Look that the rows from ``first`` to ``last`` have arrived, and no other."""
    array, nulls = got
    numbers = np.arange(first, last + 1)
    expected = np.zeros(len(numbers), DTYPE)
    expected["i"], expected["x"] = numbers, numbers * 2.5
    expected["n"] = np.where(numbers % 3 == 0, np.iinfo("i4").min, numbers % 3)
    expected["t"] = np.char.add(b"t", numbers.astype("S7"))
    assert array.dtype == DTYPE
    assert array.tobytes() == expected.tobytes()
    assert nulls == (np.flatnonzero(numbers % 3 == 0) * 4 + 2).tolist()
