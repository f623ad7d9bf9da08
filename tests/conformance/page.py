"""The parts that the pages of the reference share: they are made of what really arrives, a line for each case."""

import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import longshore
from tests.conformance.case import Case

REFERENCE = Path(__file__).parent.parent.parent / "docs" / "reference"
#: Reads a case's cells as a `return_type`.
Read = Callable[[str], Any]


def reader(source: ModuleType, case: Case, url: str) -> Read:
    """Return what reads the cells of a case out of a source."""

    def read(return_type: str) -> Any:
        before = source.setup(case, list(case.cells))
        with warnings.catch_warnings():
            # pandas' doubles for long decimals: the page says so below its table.
            warnings.simplefilter("ignore", longshore.DataWarning)
            return longshore.read_sql(source.query(case), url, return_type=return_type, pre_execution_query=before)

    return read


def frames(case: Case, read: Read) -> list[str]:
    """Return what a case becomes: its title, its Arrow type, and the dtype in each kind of frame."""
    arrow = read("arrow").schema.field("value")
    kind = f"{name(arrow.type)} as {case.extension}" if case.extension else name(arrow.type)
    return [
        code(case.title),
        code(kind),
        _dtype(lambda: str(read("pandas").dtypes["value"])),
        _dtype(lambda: str(read("polars").schema["value"])),
        _dtype(lambda: str(read("numpy")["value"].dtype)),
    ]


def line(cells: Iterable[str]) -> str:
    """Return a line of a table."""
    return f"| {' | '.join(cells)} |\n"


def code(*texts: str) -> str:
    """Return texts in the letters of code."""
    return ", ".join(f"`{text}`" for text in texts)


def name(kind: Any) -> str:
    """Return the name of an Arrow type."""
    # A pyarrow that knows the extension shows it in place of what it is made of.
    return str(getattr(kind, "storage_type", kind))


def _dtype(read: Callable[[], str]) -> str:
    try:
        return code(read())
    except (longshore.NotSupportedError, longshore.DataError):
        return "error that names `schema=`"
