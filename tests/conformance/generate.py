"""The reference of types, made of what really arrives: `python -m tests.conformance.generate` writes the page.

Needs a server of the newest version, and one with each extension; see `tests.servers`.
"""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import longshore
from tests.conformance import postgresql
from tests.conformance.case import Case
from tests.conformance.cases import CASES
from tests.servers import Endpoint, PostgreSQL

PAGE = Path(__file__).parent.parent.parent / "docs" / "reference" / "types.md"
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
    rows = [_row(case, url(case)) for case in CASES if case.title]
    return HEAD + "".join(f"| {' | '.join(row)} |\n" for row in rows) + FOOT


def _row(case: Case, url: str) -> list[str]:
    arrow = _read(case, url, "arrow").schema.field("value")
    kind = f"{_name(arrow.type)} as {case.extension}" if case.extension else _name(arrow.type)
    options = sorted({odd.option for odd in case.odd if odd.option})
    refused = ", ".join(f"`{odd.sql}`".replace("'", "") for odd in case.odd if odd.option)
    return [
        f"`{case.title}`",
        f"`{kind}`",
        _dtype(lambda: str(_read(case, url, "pandas").dtypes["value"])),
        _dtype(lambda: str(_read(case, url, "polars").schema["value"])),
        _dtype(lambda: str(_read(case, url, "numpy")["value"].dtype)),
        f"{refused}: `{', '.join(options)}`" if options else "",
    ]


def _read(case: Case, url: str, return_type: Any) -> Any:
    before = postgresql.setup(case, list(case.cells))
    return longshore.read_sql(postgresql.query(case), url, return_type=return_type, pre_execution_query=before)


def _dtype(read: Callable[[], str]) -> str:
    try:
        return f"`{read()}`"
    except longshore.NotSupportedError:
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


if __name__ == "__main__":
    main()
