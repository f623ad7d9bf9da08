"""Where the bytes of a file go: beside the file until they are all there, or to standard output."""

import contextlib
import io
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from longshore.shell.failing import ClosedPipeError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

__all__ = ["STANDARD", "Sink", "opened"]

#: The name of standard input and of standard output.
STANDARD = "-"


class Sink(io.RawIOBase):
    """Counts what it passes on, and passes nothing on once it is broken."""

    def __init__(self, out: BinaryIO) -> None:
        """Pass on to ``out``, which stays its owner's."""
        self._out = out
        self._is_broken = False
        self.bytes = 0

    def writable(self) -> bool:
        """Tell pyarrow that it may write."""
        return True

    def tell(self) -> int:
        """Give the number of bytes so far."""
        return self.bytes

    def write(self, data: "ReadableBuffer", /) -> int:
        """Pass bytes on, all of them; raises ``ClosedPipeError`` where nobody reads them any more."""
        view = memoryview(data).cast("B")
        if not self._is_broken:
            try:
                self._out.write(view)
            except BrokenPipeError as error:
                self._is_broken = True
                raise ClosedPipeError from error
            self.bytes += len(view)
        return len(view)

    def flush(self) -> None:
        """Have the bytes leave this process."""
        if self._is_broken or self.closed:
            return
        try:
            self._out.flush()
        except BrokenPipeError as error:
            self._is_broken = True
            raise ClosedPipeError from error

    def break_off(self) -> None:
        """Pass nothing on any more: the footer of a writer that is collected would make a part look whole."""
        self._is_broken = True


@contextlib.contextmanager
def opened(path: str) -> Iterator[Sink]:
    """Give the sink of a file; the file has its name only once the block has ended without an exception."""
    place = Path(path)
    out: BinaryIO
    if path == STANDARD:
        with _writing(sys.stdout.buffer) as sink:
            yield sink
    elif place.exists() and not place.is_file():
        # A pipe or a device: there is nothing to rename.
        with place.open("wb") as out, _writing(out) as sink:
            yield sink
    else:
        with _beside(place.resolve()) as out, _writing(out) as sink:
            yield sink


@contextlib.contextmanager
def _writing(out: BinaryIO) -> Iterator[Sink]:
    sink = Sink(out)
    try:
        yield sink
        sink.flush()
    finally:
        sink.break_off()


@contextlib.contextmanager
def _beside(place: Path) -> Iterator[BinaryIO]:
    """Give a new file in the same directory, which takes the place of the old one at the end."""
    part = place.with_name(f".{place.name}.{os.getpid()}.part")
    try:
        with part.open("xb") as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        if place.exists():
            shutil.copymode(place, part)
        part.replace(place)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
