"""The result of a query: into a file, or its first rows onto the screen."""

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from longshore.engine.waiting import undisturbed
from longshore.errors import InterfaceError
from longshore.shell.files import STANDARD, FileLayout, Format, layout_of
from longshore.shell.speaking import clock, finished, rows_of
from longshore.shell.streams import path
from longshore.shell.watching import Watcher, watching
from longshore.target import is_address

if TYPE_CHECKING:
    from longshore.stream import Stream

__all__ = ["Result"]

_FIRST = 20


class Result:
    """Where the rows of a query go, and what is said of them."""

    def __init__(
        self,
        to: str | None,
        layout: Format | None,
        delimiter: str | None,
        rows: int | None,
        *,
        as_json: bool,
        quiet: bool,
    ) -> None:
        """Look at the arguments before anything is done."""
        self._to = to
        self._layout = _layout(to, layout, delimiter, rows)
        self._rows = rows or _FIRST
        self._as_json = as_json
        self._is_watched = not (quiet or as_json) and (to != STANDARD or not sys.stdout.isatty())
        self._began = time.monotonic()

    def deliver(self, run: Callable[[Watcher | None, int | None], "Stream"], warnings: list[str]) -> None:
        """Write or show the rows of what ``run`` runs, which is given who hears of progress and the rows of a batch."""
        if self._to is None or self._layout is None:
            self._show(run)
            return
        with watching(shown=self._is_watched) as watcher:
            count, size = _save(lambda: run(watcher, None), self._to, self._layout)
        seconds = time.monotonic() - self._began
        figures: dict[str, Any] = {
            "rows": count,
            "bytes": size,
            "bytes_read": watcher.bytes,
            "seconds": seconds,
            "file": self._to,
            "format": self._layout.format.value,
            "warnings": warnings,
        }
        if self._to != STANDARD or self._as_json:
            sentence = f"{rows_of(count)}, {size / 1e6:,.1f} MB, into {self._to} in {clock(seconds)}"
            finished(figures, sentence, as_json=self._as_json, aside=self._to == STANDARD)

    def _show(self, run: Callable[[Watcher | None, int | None], "Stream"]) -> None:
        """Show the first rows; the stream is left there, which cancels the query."""
        from longshore.shell.preview import shown

        # One more tells whether there are more, and comes in a batch of its own.
        with run(None, self._rows + 1) as stream:
            schema, batches, count = stream.schema, [], 0
            for batch in stream:
                batches.append(batch)
                count += batch.num_rows
                if count > self._rows:
                    break
        shown(schema, batches, self._rows, as_json=self._as_json)


def _layout(to: str | None, layout: Format | None, delimiter: str | None, rows: int | None) -> FileLayout | None:
    """Give the layout of the file, and none for a preview."""
    if to is None:
        for name, value in {"--format": layout, "--delimiter": delimiter}.items():
            if value is not None:
                message = f"{name} is for --to: a preview has no format"
                raise InterfaceError(message)
        return None
    if rows is not None:
        message = "--rows is for a preview, without --to; a file has them all: LIMIT in the query leaves some out"
        raise InterfaceError(message)
    if is_address(to):
        message = "--to of a query is a file; longshore copy writes into a database"
        raise InterfaceError(message)
    found = layout_of(to, layout, delimiter)
    if found.format not in {Format.CSV, Format.JSON} and to == STANDARD and sys.stdout.isatty():
        message = f"{found.format.value} cannot be shown on a terminal: redirect standard output, or give --format csv"
        raise InterfaceError(message)
    if to != STANDARD and not path(to).absolute().parent.is_dir():
        raise FileNotFoundError(2, "there is no such directory", str(path(to).absolute().parent))
    return found


def _save(run: Callable[[], "Stream"], to: str, layout: FileLayout) -> tuple[int, int]:
    """Write the whole stream that ``run`` gives, and give the numbers of its rows and of the file's bytes."""
    # No query waits for the imports.
    from longshore.shell.files.sink import opened
    from longshore.shell.files.writers import writer

    count = 0
    with run() as stream, opened(to, layout.compression) as sink:
        # pyarrow imports pandas with its first array, and what is raised meanwhile may be lost.
        with undisturbed():
            out = writer(layout, sink, stream.schema)
        try:
            for batch in stream:
                out.write(batch)
                count += batch.num_rows
        except BaseException:
            out.abandon()
            raise
        out.close()
    return count, sink.bytes
