"""A process that is interrupted, over and over: `python -m tests.contract.interrupted`, with a line of JSON a call."""

import asyncio
import contextlib
import ctypes
import json
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

import longshore


def say(line: str) -> None:
    """Tell the test."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def read(return_type: Any) -> Callable[[str, str, str], Any]:
    """Read into one kind of frame."""
    return lambda query, url, _: longshore.read_sql(query, url, return_type=return_type)


def batches(query: str, url: str, _: str) -> None:
    """Read the batches of a stream."""
    for _batch in longshore.read_sql(query, url, return_type="arrow_stream"):
        pass


def frames(query: str, url: str, _: str) -> None:
    """Read the frames of a stream."""
    for _frame in longshore.read_sql(query, url, return_type="arrow_stream").pandas():
        pass


def capsule(query: str, url: str, _: str) -> None:
    """Read a stream through Arrow's C interface, which carries no exception of Python's: pyarrow's own comes first."""
    stream = longshore.read_sql(query, url, return_type="arrow_stream")
    with contextlib.suppress(pa.ArrowException, OSError):
        for _batch in pa.RecordBatchReader.from_stream(stream):
            pass


def task(query: str, url: str, _: str) -> None:
    """Read in asyncio."""

    async def main() -> None:
        await longshore.read_sql_async(query, url, return_type="arrow")

    asyncio.run(main())


def batches_in_a_task(query: str, url: str, _: str) -> None:
    """Read the batches of a stream in asyncio."""

    async def main() -> None:
        async for _batch in await longshore.read_sql_async(query, url, return_type="arrow_stream"):
            pass

    asyncio.run(main())


def statement(query: str, url: str, _: str) -> None:
    """Execute a statement."""
    with longshore.connect(url) as connection:
        connection.execute(query)


def rows(query: str, url: str, _: str) -> None:
    """Fetch the rows of a cursor."""
    with longshore.connect(url) as connection, connection.cursor() as cursor:
        for _row in cursor.execute(query):
            pass


def connect(_query: str, url: str, _: str) -> None:
    """Connect over and over."""
    say("connecting")
    while True:
        longshore.connect(url).close()


def write(query: str, url: str, table: str) -> None:
    """Write rows without an end; a query is for others."""

    def endless() -> Iterator[dict[str, list[int]]]:
        while True:
            yield {"id": [7] * 1000}
            say(query and "written")

    longshore.write_sql(endless(), table, url, if_exists="append")


WAYS: dict[str, Callable[[str, str, str], Any]] = {
    **{name: read(name) for name in ("pandas", "arrow", "polars", "numpy")},
    **{
        each.__name__: each
        for each in (batches, frames, capsule, task, batches_in_a_task, statement, rows, connect, write)
    },
}


_DIES_WITH_ITS_PARENT = 1  # PR_SET_PDEATHSIG of <sys/prctl.h>


def main() -> None:
    """Make each call that a line asks for, and say how it ended."""
    if sys.platform == "linux":
        # What it computes would go on when the tests have been killed.
        ctypes.CDLL(None).prctl(_DIES_WITH_ITS_PARENT, signal.SIGKILL)
    for line in sys.stdin:
        way, *arguments = json.loads(line)
        try:
            WAYS[way](*arguments)
            say("returned")
        except KeyboardInterrupt:
            say("interrupted")
        except longshore.Error as error:
            say(repr(error))


if __name__ == "__main__":
    main()
