"""The references of types, made of what really arrives: `python -m tests.conformance.generate` writes the pages.

Needs a PostgreSQL of the newest version, one with each extension, a MariaDB and a MySQL; see `tests.servers`.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType
from typing import Any

import longshore
from tests.conformance import mysql, postgresql
from tests.conformance.case import Case
from tests.conformance.cases import CASES
from tests.conformance.mysql_cases import CASES as MYSQL_CASES
from tests.conformance.mysql_cases.case import Server
from tests.servers import Endpoint, MariaDB, MySQL, PostgreSQL

REFERENCE = Path(__file__).parent.parent.parent / "docs" / "reference"
PAGE = REFERENCE / "types.md"
MYSQL_PAGE = REFERENCE / "types-mysql.md"
Read = Callable[[str], Any]
EXTENSIONS = ("citext", "hstore", "ltree", "vector")
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
"""

MYSQL_HEAD = """\
# Types of MySQL and MariaDB

<!-- Written by tests/conformance/generate.py from what servers really sent: change the cases, not this page. -->

What a column of each type becomes. A column that the server promises to be NOT NULL has pandas' NumPy dtype instead of
the nullable one, in a plain query over one table. `schema=` asks for another Arrow type. The metadata of each Arrow
field keeps the server's own name under `native_type`.

| type | Arrow | pandas | polars | NumPy | only of |
|---|---|---|---|---|---|
"""
MYSQL_FOOT = """
pandas shows the dtypes of version 3, where strings are `str`; in version 2 they are `object`. `tinyint(1)` is `bool`
with `options={"tinyint1": "bool"}`, where 0 and 1 are all that it holds. Zero dates are NULL, or an error with
`options={"zero_date": "error"}`. FLOAT is refused with `options={"protocol": "text"}`: the server would round it.
"""


class Places:
    """The servers on which cases run: one, and one more for each set of extensions that it has not."""

    def __init__(self, shared: Endpoint, start: Callable[[tuple[str, ...]], Endpoint]) -> None:
        """Start nothing yet."""
        self.shared, self.start = shared, start
        self.version = int(shared.psql("SHOW server_version_num")) // 10_000
        self._servers: dict[tuple[str, ...], Endpoint] = {(): shared}

    def find(self, case: Case) -> str:
        """Return the URL of a server that has what a case needs."""
        if case.needs not in self._servers:
            server = self.start(case.needs)
            for need in set(case.needs) & set(EXTENSIONS):
                server.psql(f"CREATE EXTENSION {need}")
            self._servers[case.needs] = server
        return self._servers[case.needs].url()


def page(url: Callable[[Case], str]) -> str:
    """Return the page."""
    rows = [_row(case, _reader(postgresql, case, url(case))) for case in CASES if case.title]
    return HEAD + "".join(f"| {' | '.join(row)} |\n" for row in rows) + FOOT


def mysql_page(url: Callable[[Server], str]) -> str:
    """Return the page of MySQL and MariaDB; a type of both is read from MariaDB."""
    return MYSQL_HEAD + "".join(_mysql_lines(url)) + MYSQL_FOOT


def _mysql_lines(url: Callable[[Server], str]) -> Iterator[str]:
    for case in (case for case in MYSQL_CASES if case.title):
        read = _reader(mysql, case, url(case.only or "MariaDB"))
        yield f"| {' | '.join([*_frames(case, read), case.only or ''])} |\n"


def _row(case: Case, read: Read) -> list[str]:
    options = sorted({odd.option for odd in case.odd if odd.option})
    refused = ", ".join(f"`{odd.sql}`".replace("'", "") for odd in case.odd if odd.option)
    return [*_frames(case, read), f"{refused}: `{', '.join(options)}`" if options else ""]


def _frames(case: Case, read: Read) -> list[str]:
    arrow = read("arrow").schema.field("value")
    kind = f"{_name(arrow.type)} as {case.extension}" if case.extension else _name(arrow.type)
    return [
        f"`{case.title}`",
        f"`{kind}`",
        _dtype(lambda: str(read("pandas").dtypes["value"])),
        _dtype(lambda: str(read("polars").schema["value"])),
        _dtype(lambda: str(read("numpy")["value"].dtype)),
    ]


def _reader(quirks: ModuleType, case: Case, url: str) -> Read:
    def read(return_type: str) -> Any:
        before = quirks.setup(case, list(case.cells))
        return longshore.read_sql(quirks.query(case), url, return_type=return_type, pre_execution_query=before)  # type: ignore[call-overload]

    return read


def _dtype(read: Callable[[], str]) -> str:
    try:
        return f"`{read()}`"
    except (longshore.NotSupportedError, longshore.DataError):
        return "error that names `schema=`"


def _name(kind: Any) -> str:
    # A pyarrow that knows the extension shows it in place of what it is made of.
    return str(getattr(kind, "storage_type", kind))


def main() -> None:
    """Write the page."""
    with ExitStack() as stack:

        def start(needs: tuple[str, ...]) -> Endpoint:
            return stack.enter_context(PostgreSQL(needs=needs))

        PAGE.write_text(page(Places(start(()), start).find))
        servers = {"MariaDB": stack.enter_context(MariaDB()), "MySQL": stack.enter_context(MySQL())}
        MYSQL_PAGE.write_text(mysql_page(lambda name: servers[name].url()))


if __name__ == "__main__":
    main()
