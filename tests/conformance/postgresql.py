"""The cases of PostgreSQL: how its tables are made, how two protocols carry them, and its page."""

import sys
from collections.abc import Callable

from tests.conformance.case import Case
from tests.conformance.cases import CASES
from tests.conformance.page import REFERENCE, code, frames, line, reader
from tests.servers import Endpoint

NAME = "PostgreSQL"
#: Each runs all cases.
PROTOCOLS = ("binary", "text")
#: The session's time zone, which must not matter: it is not UTC, and has not always been whole hours from it.
SETTINGS = "SET TimeZone = 'Europe/Amsterdam'"
EXTENSIONS = ("citext", "hstore", "ltree", "postgis", "vector")
PAGE = REFERENCE / "types.md"
HEAD = """\
# Types

<!-- Written by tests/conformance/generate.py from what a server really sent: change the cases, not this page. -->

What a column of each PostgreSQL type becomes. A column that PostgreSQL promises to be NOT NULL has pandas' NumPy dtype
instead of the nullable one. `schema=` asks for another Arrow type, and `options=` decides on values that Arrow has not:
the last column names the option. The metadata of each Arrow field keeps PostgreSQL's own name under `native_type`.

| PostgreSQL | Arrow | pandas | polars | NumPy | refused unless an option makes it NULL |
|---|---|---|---|---|---|
"""
FOOT = """
pandas shows the dtypes of version 3, where strings are `str`; in version 2 they are `object`. A type that is not in the
table arrives as text.

In pandas, a value of `numeric` that does not come back to its own digits from the nearest double is told of by a
[`DataWarning`](../guide/errors.md#warnings), once a column. `dtype_backend="pyarrow"` and `schema=` keep every digit.
So is an array whose lower bounds are not 1, such as `'[2:4]={1,2,3}'`: a list has no bounds, and
`schema={"<column>": "string"}` keeps them.
"""


class Places:
    """The servers on which cases run: one, and one more for each set of extensions that it has not."""

    def __init__(self, shared: Endpoint, start: Callable[[tuple[str, ...]], Endpoint]) -> None:
        """Start nothing yet."""
        self.start = start
        self._servers: dict[tuple[str, ...], Endpoint] = {(): shared}

    def find(self, case: Case) -> str:
        """Return the URL of a server that has what a case needs."""
        if case.needs not in self._servers:
            server = self.start(case.needs)
            for need in set(case.needs) & set(EXTENSIONS):
                server.psql(f"CREATE EXTENSION {need}")
            self._servers[case.needs] = server
        return self._servers[case.needs].url()


def setup(case: Case, cells: list[str]) -> list[str]:
    """Return the statements that make a table `cells` of the case's cells, one a row, gone with the session."""
    statements = [SETTINGS, "SET search_path = pg_temp, public", *case.setup]
    if case.query is None:
        statements.append(f"CREATE TEMP TABLE cells (id int, value {case.type})")
        rows = ", ".join(f"({row}, CAST({cell} AS {case.type}))" for row, cell in enumerate(cells))
        statements += [f"INSERT INTO cells VALUES {rows}"] if cells else []
    return statements


def query(case: Case, where: str = "true") -> str:
    """Return the query that reads the column `value` in order."""
    if case.query is not None:
        return f"SELECT value FROM ({case.query}) AS cells (value) WHERE {where}"
    return f"SELECT value FROM cells WHERE {where} ORDER BY id"


def page(url: Callable[[Case], str]) -> str:
    """Return the page."""
    return HEAD + "".join(_line(case, url(case)) for case in CASES if case.title) + FOOT


def _line(case: Case, url: str) -> str:
    options = sorted({misfit.option for misfit in case.misfits if misfit.option})
    refused = code(*(misfit.sql.replace("'", "") for misfit in case.misfits if misfit.option))
    read = reader(sys.modules[__name__], case, url)
    return line([*frames(case, read), f"{refused}: `{', '.join(options)}`" if options else ""])
