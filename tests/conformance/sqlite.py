"""The cases of SQLite: tables in memory, two ways to them, values that do not fit, and its page."""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace

from tests.conformance.case import Case
from tests.conformance.page import REFERENCE, code, frames, line, name, reader
from tests.conformance.sqlite_cases import CASES
from tests.conformance.sqlite_cases.case import SQLiteCase, Widened

NAME = "SQLite"
#: Longshore's own library, and a `sqlite3.Connection`: each runs all cases.
WAYS = ("url", "connection")
URL = "sqlite://"
PAGE = REFERENCE / "types-sqlite.md"
HEAD = """\
# Types of SQLite

<!-- Written by tests/conformance/generate.py from what really arrived: change the cases, not this page. -->

What a column of each declared type becomes, as long as its values fit. `schema=` asks for another Arrow type. The
metadata of each Arrow field keeps the declared type under `native_type`. [SQLite](../guide/sqlite.md#types) has the
rules behind the names.

| declared as | Arrow | pandas | polars | NumPy | without values |
|---|---|---|---|---|---|
"""
WIDENED = """
A column that is declared NOT NULL has pandas' NumPy dtype instead of the nullable one, in a plain query over one table.
pandas shows the dtypes of version 3, where strings are `str`; in version 2 they are `object`.

In pandas, a value of `DECIMAL_TEXT` that does not come back to its own digits from the nearest double is told of by a
[`DataWarning`](../guide/errors.md#warnings), once a column. `dtype_backend="pyarrow"` and `schema=` keep every digit.

## Values that do not fit

A column in which these values are, with or without NULLs, in any order:

| declared as | values | Arrow |
|---|---|---|
"""
WANTED = """
In a stream a declared column keeps its type, and such a value is a `DataError` that names `schema=`. TEXT and BLOB in
one column are a `DataError` in any case.

## What `schema=` takes

Each value arrives as that very value, or is an error that names its column and row:

| declared as | asked for | arrives | refused |
|---|---|---|---|
"""


def setup(case: Case, cells: Iterable[str]) -> list[str]:
    """Return the statements that make a table `cells` of the case's cells, one a row, gone with the database."""
    if case.query is not None:
        return []
    strict = "STRICT" if isinstance(case, SQLiteCase) and case.strict else ""
    rows = ", ".join(f"({row}, {cell})" for row, cell in enumerate(cells))
    made = f"CREATE TABLE cells (id INTEGER PRIMARY KEY, value {case.type}) {strict}"
    return [made, f"INSERT INTO cells VALUES {rows}"] if rows else [made]


def query(case: Case, where: str = "true") -> str:
    """Return the query that reads the column `value` in order."""
    if case.query is not None:
        return f"SELECT column1 AS value FROM ({case.query}) WHERE {where}"
    return f"SELECT value FROM cells WHERE {where} ORDER BY id"


def widened(case: SQLiteCase, to: Widened) -> SQLiteCase:
    """Return the case of a column that widens."""
    return replace(case, cells=to.cells, arrow=to.arrow)


def page() -> str:
    """Return the page."""
    return HEAD + "".join(_types()) + WIDENED + "".join(_widened()) + WANTED + "".join(_wanted())


def _types() -> Iterator[str]:
    for case in (case for case in CASES if case.title):
        read = reader(sys.modules[__name__], case, URL)
        without = reader(sys.modules[__name__], replace(case, cells={}), URL)
        empty = name(without("arrow").schema.field("value").type) if case.query is None else name(case.declared)
        yield line([*frames(case, read), code(empty)])


def _widened() -> Iterator[str]:
    for case in CASES:
        for to in case.widened:
            kind = reader(sys.modules[__name__], widened(case, to), URL)("arrow").schema.field("value").type
            yield line([code(case.type) if case.type else "nothing", code(*to.cells), code(name(kind))])


def _wanted() -> Iterator[str]:
    for case in CASES:
        for wanted in case.wanted:
            declared = code(case.type) if case.type else "nothing"
            yield line([declared, code(name(wanted.arrow)), code(*wanted.cells), code(*wanted.refused)])
