"""``copy``: a query of one database as a table of another."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from longshore import _core
from longshore.connection import ConnectionLike
from longshore.options import Options
from longshore.parameters import seconds
from longshore.partition import Number
from longshore.progress import Progress, reporting
from longshore.reading import opened
from longshore.writing import destination

__all__ = ["copy"]


def copy(
    query: str | Sequence[str],
    source: ConnectionLike,
    table: str | tuple[str, str],
    target: ConnectionLike,
    *,
    if_exists: Literal["fail", "append", "replace", "truncate", "upsert"] = "fail",
    key: str | Sequence[str] | None = None,
    types: Mapping[str, str] | None = None,
    params: Sequence[Any] | Mapping[str, Any] | None = None,
    schema: Mapping[str, Any] | None = None,
    partition_on: str | None = None,
    partition_num: Number | None = None,
    timeout: float | None = None,
    progress: bool | Callable[[Progress], object] = False,
    options: Mapping[str, Any] | Options | None = None,
) -> int:
    """Write the result of a query into a table of this database or of another, and return the number of rows.

    >>> import longshore
    >>> longshore.copy("SELECT n, n * n AS square FROM generate_series(1, 3) n", url, "copy_squares", url)
    3

    The rows are written while they are read, a batch or two in memory at a time, and become no Python objects.

    ``query``, ``source``, ``params``, ``schema``, ``partition_on``, ``partition_num``
        What is read, as in ``read_sql``. In parts, the rows come in no particular order.
    ``table``, ``target``, ``if_exists``, ``key``, ``types``
        Where it is written, as in ``write_sql``. A column that the source promises to be NOT NULL is so in a new table.
    ``timeout``
        Seconds for the whole call.
    ``progress``, ``options``
        As in ``read_sql``; the progress is that of the writing.

    Raises the exceptions of ``longshore.errors``; the table is then as it was.
    """
    into = destination(table, target, if_exists=if_exists, key=key, types=types)
    switch = _core.Switch()
    with (
        reporting(progress) as report,
        opened(
            query,
            source,
            switch,
            params=params,
            schema=schema,
            partition_on=partition_on,
            partition_num=partition_num,
            timeout=timeout,
            options=options,
        ) as reading,
    ):
        return _core.copy(reading, into=into, timeout=seconds(timeout), progress=report, switch=switch)
