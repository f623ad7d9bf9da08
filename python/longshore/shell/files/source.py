"""A file that is read, and read again; its errors name it."""

import contextlib
import errno
import io
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from longshore.errors import DataError
from longshore.shell.files.formats import STANDARD
from longshore.shell.streams import named, path

__all__ = ["Source", "opened"]


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
def opened(name: str, compression: str | None) -> Iterator[Source]:
    """Give a file that can be read twice; standard input and pipes become one."""
    place = path(name)
    if name != STANDARD and (place.is_file() or not place.exists()):
        # What cannot be opened is told as Python tells it.
        with place.open("rb"):
            yield Source(name, place, compression)
        return
    with tempfile.NamedTemporaryFile(prefix="longshore-") as spool:
        reading = contextlib.nullcontext(sys.stdin.buffer) if name == STANDARD else place.open("rb")
        with reading as pipe, named(spool.name):
            shutil.copyfileobj(pipe, spool)
            spool.flush()
        yield Source("standard input" if name == STANDARD else name, Path(spool.name), compression)


def _surrogates(line: str) -> list[int]:
    r"""Give the bytes of a line that are not UTF-8.

    >>> _surrogates("a\udcff")
    [255]
    """
    return [ord(character) - 0xDC00 for character in line if "\udc80" <= character <= "\udcff"]
