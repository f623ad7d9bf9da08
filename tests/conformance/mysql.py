"""The cases of MySQL and MariaDB: how tables are made, how two protocols carry them, and their page."""

import sys
from collections.abc import Callable, Iterable

from tests.conformance.case import Case
from tests.conformance.mysql_cases import CASES
from tests.conformance.mysql_cases.case import Server
from tests.conformance.page import REFERENCE, frames, line, reader

NAME = "MySQL"
#: Each runs all cases.
PROTOCOLS = ("binary", "text")
#: Zero dates and enums' error values may be written.
SETTINGS = ("SET sql_mode = ''", "SET NAMES utf8mb4")
PAGE = REFERENCE / "types-mysql.md"
HEAD = """\
# Types of MySQL and MariaDB

<!-- Written by tests/conformance/generate.py from what servers really sent: change the cases, not this page. -->

What a column of each type becomes. A column that the server promises to be NOT NULL has pandas' NumPy dtype instead of
the nullable one, in a plain query over one table. `schema=` asks for another Arrow type. The metadata of each Arrow
field keeps the server's own name under `native_type`.

| type | Arrow | pandas | polars | NumPy | only of |
|---|---|---|---|---|---|
"""
FOOT = """
pandas shows the dtypes of version 3, where strings are `str`; in version 2 they are `object`. `tinyint(1)` is `bool`
with `options={"tinyint1": "bool"}`, where 0 and 1 are all that it holds. Zero dates are NULL, or an error with
`options={"zero_date": "error"}`. FLOAT is refused with `options={"protocol": "text"}`: the server would round it.

In pandas, a value of `decimal` that does not come back to its own digits from the nearest double is told of by a
[`DataWarning`](../guide/errors.md#warnings), once a column. `dtype_backend="pyarrow"` and `schema=` keep every digit.
"""


def setup(case: Case, cells: Iterable[str]) -> list[str]:
    """Return the statements that make a table `cells` of the case's cells, one a row, gone with the session."""
    statements = [*SETTINGS, *case.setup]
    if case.query is None:
        statements.append(f"CREATE TEMPORARY TABLE cells (id int, value {case.type} NULL)")
        rows = ", ".join(f"({row}, {cell})" for row, cell in enumerate(cells))
        statements += [f"INSERT INTO cells VALUES {rows}"] if rows else []
    return statements


def query(case: Case, where: str = "true") -> str:
    """Return the query that reads the column `value` in order."""
    if case.query is not None:
        return f"{case.query} AS value FROM dual WHERE {where}"
    return f"SELECT value FROM cells WHERE {where} ORDER BY id"


def page(url: Callable[[Server], str]) -> str:
    """Return the page; a type of both servers is read from MariaDB."""
    rows = []
    for case in (case for case in CASES if case.title):
        read = reader(sys.modules[__name__], case, url(case.only or "MariaDB"))
        rows.append(line([*frames(case, read), case.only or ""]))
    return HEAD + "".join(rows) + FOOT
