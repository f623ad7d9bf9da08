"""Where the bytes of a file go: beside the file until they are all there, or to standard output."""

import contextlib
import io
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa

from longshore.shell.failing import ClosedPipeError
from longshore.shell.files.formats import STANDARD
from longshore.shell.streams import named, path

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

__all__ = ["Compressed", "Out", "Sink", "opened"]


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

    finish = flush

    def break_off(self) -> None:
        """Pass nothing on any more: the footer of a writer that is collected would make a part look whole."""
        self._is_broken = True


class Compressed:
    """Compresses what goes to a sink."""

    def __init__(self, sink: Sink, compression: str) -> None:
        """Compress as pyarrow calls it."""
        self._sink = sink
        self._stream = pa.CompressedOutputStream(sink, compression)
        self.break_off = sink.break_off

    @property
    def bytes(self) -> int:
        """The number of compressed bytes so far."""
        return self._sink.bytes

    def write(self, data: "ReadableBuffer", /) -> int:
        """Compress bytes."""
        return int(self._stream.write(data))

    def flush(self) -> None:
        """Have what is compressed so far leave this process."""
        self._stream.flush()

    def finish(self) -> None:
        """Write what marks the end."""
        self._stream.close()


Out = Sink | Compressed


@contextlib.contextmanager
def opened(name: str, compression: str | None = None) -> Iterator[Out]:
    """Give the sink of a file; the file has its name only once the block has ended without an exception.

    An ``OSError`` names the file.
    """
    with named("standard output" if name == STANDARD else name), _opened(name) as out:
        sink = Sink(out)
        front = sink if compression is None else Compressed(sink, compression)
        try:
            yield front
            front.finish()
        finally:
            sink.break_off()


def _opened(name: str) -> AbstractContextManager[BinaryIO]:
    if name == STANDARD:
        return contextlib.nullcontext(sys.stdout.buffer)
    place = path(name)
    if place.exists() and not place.is_file():
        # A pipe or a device: there is nothing to rename.
        return place.open("wb")
    return _beside(place.resolve())


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
