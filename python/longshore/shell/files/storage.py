"""Files as bytes: a source that is read, and read again; a sink whose file is there only when it is complete."""

import contextlib
import errno
import io
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

import pyarrow as pa

from longshore.errors import DataError
from longshore.shell.errors import ClosedPipeError
from longshore.shell.files import STANDARD
from longshore.shell.output import file_path, naming_file

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class Source(NamedTuple):
    """A file's name, where its bytes are, and how they are compressed."""

    name: str
    place: Path
    compression: str | None

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self.place.stat().st_size

    def bytes(self) -> pa.NativeFile:
        """Open it, decompressed."""
        # As bytes, since pyarrow takes every path for UTF-8.
        file = pa.OSFile(os.fsencode(self.place))
        return file if self.compression is None else pa.CompressedInputStream(file, self.compression)

    def text(self, *, newline: str, errors: str = "strict") -> io.TextIOWrapper:
        """Open it, decompressed and decoded."""
        return io.TextIOWrapper(io.BufferedReader(self.bytes()), encoding="utf-8-sig", newline=newline, errors=errors)

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """Have the errors of the block, which reads the file, name it."""
        try:
            yield
        except DataError as error:
            message = f"{self.name}: {error}"
            raise DataError(message, column=error.column, row=error.row, hint=error.hint) from error
        except UnicodeDecodeError as error:
            raise self.unreadable(self._undecodable()) from error
        except pa.ArrowException as error:
            raise self.unreadable(str(error)) from error
        except OSError as error:
            if error.filename is not None:
                raise
            raise OSError(error.errno or errno.EIO, error.strerror or str(error), self.name) from error

    def unreadable(self, problem: str) -> OSError:
        """Make the error for a file that is not what it should be."""
        return OSError(errno.EINVAL, problem, self.name)

    def _undecodable(self) -> str:
        with self.text(newline="\n", errors="surrogateescape") as lines:
            number, byte = next((number, byte) for number, line in enumerate(lines) for byte in _surrogates(line))
        return f"line {number + 1} is not UTF-8: it has the byte 0x{byte:02x}"


@contextlib.contextmanager
def open_source(name: str, compression: str | None) -> Iterator[Source]:
    """Give a file that can be read twice; standard input and pipes become one."""
    place = file_path(name)
    if name != STANDARD and (place.is_file() or not place.exists()):
        # What cannot be opened is told as Python tells it.
        with place.open("rb"):
            yield Source(name, place, compression)
        return
    with tempfile.NamedTemporaryFile(prefix="longshore-") as spool:
        reading = contextlib.nullcontext(sys.stdin.buffer) if name == STANDARD else place.open("rb")
        with reading as pipe, naming_file(spool.name):
            shutil.copyfileobj(pipe, spool)
            spool.flush()
        yield Source("standard input" if name == STANDARD else name, Path(spool.name), compression)


def _surrogates(line: str) -> list[int]:
    r"""Give the bytes of a line that are not UTF-8.

    >>> _surrogates("a\udcff")
    [255]
    """
    return [ord(character) - 0xDC00 for character in line if "\udc80" <= character <= "\udcff"]


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


Output = Sink | Compressed


@contextlib.contextmanager
def open_sink(name: str, compression: str | None = None) -> Iterator[Output]:
    """Give the sink of a file; the file has its name only once the block has ended without an exception.

    An ``OSError`` names the file.
    """
    with naming_file("standard output" if name == STANDARD else name), _open(name) as out:
        sink = Sink(out)
        front = sink if compression is None else Compressed(sink, compression)
        try:
            yield front
            front.finish()
        finally:
            sink.break_off()


def _open(name: str) -> AbstractContextManager[BinaryIO]:
    if name == STANDARD:
        return contextlib.nullcontext(sys.stdout.buffer)
    place = file_path(name)
    if place.exists() and not place.is_file():
        # A pipe or a device: there is nothing to rename.
        return place.open("wb")
    return _replacing(place.resolve())


@contextlib.contextmanager
def _replacing(place: Path) -> Iterator[BinaryIO]:
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
