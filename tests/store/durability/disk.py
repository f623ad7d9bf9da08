"""A disk of which a loss of power leaves what was synced, and any part of what was not."""

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

SECTOR = 512

#: The fate of what was not synced: all of it is lost; all is kept; the last write is torn; any of the writes and
#: names are kept, in whatever order they came; any sectors of any write.
LOSSES = ("lost", "kept", "torn", "some", "sectors")


@dataclass(frozen=True)
class Event:
    """A call that a process has made."""

    what: str
    path: str
    offset: int
    data: bytes


def events(trace: Path) -> Iterator[Event]:
    """Yield what a trace has recorded."""
    with trace.open("rb") as file:
        while line := file.readline():
            what, offset, size, path = line.decode().rstrip("\n").split(" ", 3)
            yield Event(what, path, int(offset), file.read(int(size)))


@dataclass
class _File:
    synced: bytearray = field(default_factory=bytearray)
    #: Writes, and lengths that the file was cut to or grown to.
    waiting: list[tuple[int, bytes | None]] = field(default_factory=list)


class Disk:
    """The files and names that a trace's events have made so far."""

    def __init__(self) -> None:
        """Make an empty one."""
        #: The file behind each name: as synced, and after each change that is not. None is a name without a file.
        self._names: dict[str, list[_File | None]] = {}
        self._directories: set[str] = set()

    def apply(self, event: Event) -> None:
        """Do as the process did."""
        path = event.path
        if event.what in {"create", "mkdir"}:
            self._names.setdefault(path, [None]).append(_File())
            self._directories |= {path} if event.what == "mkdir" else set()
        elif event.what == "unlink":
            self._names[path].append(None)
        elif event.what in {"write", "truncate"}:
            self._file(path).waiting.append((event.offset, event.data if event.what == "write" else None))
        elif event.what == "sync":
            self._sync(path)
        elif event.what != "note":
            raise NotImplementedError(event.what)

    def _sync(self, path: str) -> None:
        # The directory above the store was there before.
        if path in self._directories or path not in self._names:
            for name in [name for name in self._names if str(PurePosixPath(name).parent) == path]:
                self._names[name] = self._names[name][-1:]
            return
        file = self._file(path)
        for write in file.waiting:
            _apply(file.synced, *write)
        file.waiting.clear()

    def _file(self, path: str) -> _File:
        file = self._names[path][-1]
        assert file is not None, path
        return file

    def left(self, losses: str, chance: random.Random, last: Event) -> dict[str, bytes | None]:
        """Return the files, and as None the directories, that a loss of power leaves."""
        left: dict[str, bytes | None] = {}
        for name in sorted(self._names):
            states = self._names[name]
            at = {"lost": 0, "kept": -1, "torn": -1}.get(losses, chance.randrange(len(states)))
            file, parent = states[at], str(PurePosixPath(name).parent)
            if file is None or (parent in self._directories and parent not in left):
                continue
            left[name] = None if name in self._directories else _contents(file, losses, chance, last)
        return left


def _contents(file: _File, losses: str, chance: random.Random, last: Event) -> bytes:
    contents = bytearray(file.synced)
    for number, (offset, data) in enumerate(file.waiting):
        is_last = number == len(file.waiting) - 1 and data is last.data
        if losses == "lost" or (losses in {"some", "sectors"} and chance.random() < 0.5):
            continue
        if data is not None and losses == "torn" and is_last:
            first = SECTOR - offset % SECTOR
            ends = [0, *range(first, len(data), SECTOR)]
            _apply(contents, offset, data[: chance.choice(ends)])
        elif data is not None and losses == "sectors":
            first = SECTOR - offset % SECTOR
            edges = [0, *range(first, len(data), SECTOR), len(data)]
            for start, end in itertools.pairwise(edges):
                if chance.random() < 0.5:
                    _apply(contents, offset + start, data[start:end])
        else:
            _apply(contents, offset, data)
    return bytes(contents)


def _apply(contents: bytearray, offset: int, data: bytes | None) -> None:
    if data is None:
        del contents[offset:]
    contents.extend(bytes(max(0, offset - len(contents))))
    if data is not None:
        contents[offset : offset + len(data)] = data
