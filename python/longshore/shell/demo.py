"""``longshore demo``: a table is made, read into each frame that is installed, and dropped again."""

import contextlib
import importlib.util
import json
import tempfile
import time
import uuid
from collections.abc import Iterator
from typing import Annotated, Any

import typer

import longshore
from longshore.shell import arguments as given
from longshore.shell.bench import compared, installed, show
from longshore.shell.places import database
from longshore.shell.speaking import clock, rows_of, say, warned

__all__ = ["demo"]

# SQLite makes the rows, for it is always there; from it they are copied like those of any other database.
_BOATS = """
    WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < :rows)
    SELECT n AS id, 'boat ' || n AS name, n * 0.125 AS length, printf('%d.%02d', n % 5000, n % 100) AS fee,
        date('2026-01-01', (n % 365) || ' days') AS arrived, CASE WHEN n % 10 <> 0 THEN n % 64 END AS berth
    FROM numbers
"""
_TYPES = {
    "id": "int64",
    "name": "string",
    "length": "float64",
    "fee": "decimal128(12, 2)",
    "arrived": "date32[day]",
    "berth": "int32",
}
_From = Annotated[
    str | None,
    typer.Option(
        "--from",
        help="A database that may hold the table meanwhile: a URL, a file, or env:NAME; else SQLite.",
        show_default=False,
    ),
]
_Rows = Annotated[int, typer.Option(metavar="N", min=1, help="The rows of the table.")]


def demo(
    *, from_: _From = None, rows: _Rows = 500_000, as_json: given.Json = False, quiet: given.Quiet = False
) -> None:
    """Write a table, read it into each kind of frame that is installed, tell how long each took, and drop it."""
    with warned(as_json=as_json), _database(from_) as url, _table(url) as table:
        began = time.monotonic()
        written = longshore.copy(
            _BOATS, "sqlite:///:memory:", table, url, params={"rows": rows}, schema=_TYPES, key="id"
        )
        seconds = time.monotonic() - began
        scheme, query = url.partition("://")[0], f"SELECT * FROM {table}"  # noqa: S608  a name of this file's own
        if not as_json:
            say(f"{rows_of(written)} written into {scheme} in {clock(seconds)}; read again, each in its own process:")
        figures = list(compared(installed(), 1, {"query": query, "conn": url}, quiet=quiet))
        if as_json:
            written_figures = {"source": scheme, "rows": written, "seconds": seconds}
            say(json.dumps({"written": written_figures, "results": figures}))
            return
        show(figures)
        _look(query, url)


@contextlib.contextmanager
def _database(given_url: str | None) -> Iterator[str]:
    if given_url is not None:
        yield database(given_url, "--from")
        return
    with tempfile.TemporaryDirectory(prefix="longshore-") as directory:
        yield f"sqlite:///{directory}/demo.db?mode=rwc"


@contextlib.contextmanager
def _table(url: str) -> Iterator[str]:
    """Give a name that no table has, and drop the table that has it at the end."""
    name = f"longshore_demo_{uuid.uuid4().hex[:8]}"
    try:
        yield name
    finally:
        with longshore.connect(url, autocommit=True) as connection:
            connection.execute(f"DROP TABLE IF EXISTS {name}")


def _look(query: str, url: str) -> None:
    if importlib.util.find_spec("pyarrow") is None:
        return
    from longshore.shell.preview import shown

    stream: Any = longshore.read_sql(f"{query} ORDER BY id LIMIT 5", url, return_type="arrow_stream")
    with stream:
        shown(stream.schema, list(stream), 5, as_json=False)
