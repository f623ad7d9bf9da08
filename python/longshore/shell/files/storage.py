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
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

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
    path: Path
    compression: str | None

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self.path.stat().st_size

    def bytes(self) -> pa.NativeFile:
        """Open it, decompressed."""
        # As bytes, since pyarrow takes every path for UTF-8.
        file = pa.OSFile(os.fsencode(self.path))
        return file if self.compression is None else pa.CompressedInputStream(file, self.compression)

    def text(self, *, newline: str) -> io.TextIOWrapper:
        """Open it, decompressed and decoded."""
        return io.TextIOWrapper(io.BufferedReader(self.bytes()), encoding="utf-8-sig", newline=newline)

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """Name the file in the errors of the block."""
        try:
            yield
        except DataError as error:
            raise DataError(f"{self.name}: {error}", column=error.column, row=error.row, hint=error.hint) from error
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
        with io.BufferedReader(self.bytes()) as lines:
            for number, line in enumerate(lines, 1):
                try:
                    line.decode()
                except UnicodeDecodeError as error:
                    return f"line {number} is not UTF-8: it has the byte 0x{line[error.start]:02x}"
        return "it is not UTF-8"


@contextlib.contextmanager
def open_source(name: str, compression: str | None) -> Iterator[Source]:
    """Open a file to be read twice; standard input and pipes become a temporary one."""
    path = file_path(name)
    if name != STANDARD and (path.is_file() or not path.exists()):
        # Python's own error tells what cannot be opened.
        with path.open("rb"):
            yield Source(name, path, compression)
        return
    with tempfile.NamedTemporaryFile(prefix="longshore-") as spool:
        reading = contextlib.nullcontext(sys.stdin.buffer) if name == STANDARD else path.open("rb")
        with reading as pipe, naming_file(spool.name):
            shutil.copyfileobj(pipe, spool)
            spool.flush()
        yield Source("standard input" if name == STANDARD else name, Path(spool.name), compression)


class _Sink(io.RawIOBase):
    """A file that counts its bytes, and takes no more once it is broken off."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._is_broken = False
        self.bytes = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.bytes

    def write(self, data: "ReadableBuffer", /) -> int:
        """Write all bytes; raises ``ClosedPipeError`` where their reader has gone."""
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
        if self._is_broken or self.closed:
            return
        try:
            self._out.flush()
        except BrokenPipeError as error:
            self._is_broken = True
            raise ClosedPipeError from error

    def break_off(self) -> None:
        """Take no more bytes: the footer of a writer that is collected would make a part look whole."""
        self._is_broken = True


@contextlib.contextmanager
def open_sink(name: str, compression: str | None = None) -> Iterator[tuple[Any, _Sink]]:
    """Open a file, or standard output, to write into; what counts its bytes comes with it.

    The file has its name only once the block has ended without an exception. An ``OSError`` names it.
    """
    with naming_file("standard output" if name == STANDARD else name), _open(name) as out:
        sink = _Sink(out)
        try:
            if compression is None:
                yield sink, sink
                sink.flush()
            else:
                compressed = pa.CompressedOutputStream(sink, compression)
                yield compressed, sink
                compressed.close()
        finally:
            sink.break_off()


def _open(name: str) -> AbstractContextManager[BinaryIO]:
    if name == STANDARD:
        return contextlib.nullcontext(sys.stdout.buffer)
    path = file_path(name)
    if path.exists() and not path.is_file():
        # A pipe or a device: there is nothing to rename.
        return path.open("wb")
    return _replacing(path.resolve())


@contextlib.contextmanager
def _replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a new file in the same directory, which replaces the old one at the end."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("xb") as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        if path.exists():
            shutil.copymode(path, part)
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
