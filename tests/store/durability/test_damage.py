"""Files that are damaged, missing, foreign or not permitted: errors that name them, never a signal."""

import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from longshore import OperationalError, _core
from tests.installations import unprivileged
from tests.long import IS_LONG
from tests.store.durability.workload import SCHEMA, changing, rows, state_of
from tests.store.forks import forks, say

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the store's locks are Linux's")

#: Bytes that are overwritten, one in each try.
BYTES = 5000 if IS_LONG else 300
OTHER = {row: f"other {row}" for row in range(300)}


def make(path: Path) -> tuple[Path, Path]:
    """Make a store of two tables, each of one file, and return these."""
    store = _core.Store.open(path)
    files = []
    for name, values in (("boats", {row: f"boat {row}" for row in range(400)}), ("other", OTHER)):
        with changing(store) as work:
            work.create(name, SCHEMA, ["id"], None, replace=False)
            work.append(name, rows(values))
        files.extend(store.begin().files(name))
    store.close()
    return files[0], files[1]


@pytest.fixture
def lake(tmp_path: Path) -> tuple[Path, Path, Path]:
    """Give a store, and the files of its tables."""
    return tmp_path / "lake", *make(tmp_path / "lake")


def cut(file: Path, _: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def cut_to_nothing(file: Path, _: Path) -> None:
    os.truncate(file, 0)


def grow(file: Path, _: Path) -> None:
    file.write_bytes(file.read_bytes() + bytes(8))


def remove(file: Path, _: Path) -> None:
    file.unlink()


def replace(file: Path, other: Path) -> None:
    shutil.copyfile(other, file)


def replace_by_as_long(file: Path, other: Path) -> None:
    size = file.stat().st_size
    contents = other.read_bytes()
    file.write_bytes(bytes(size - len(contents)) + contents)


def fill_with_nothing(file: Path, _: Path) -> None:
    file.write_bytes(bytes(file.stat().st_size))


def become_a_directory(file: Path, _: Path) -> None:
    file.unlink()
    file.mkdir()


@pytest.mark.parametrize(
    "damage",
    [cut, cut_to_nothing, grow, remove, replace, replace_by_as_long, fill_with_nothing, become_a_directory],
)
def test_a_file_is_damaged(damage: Callable[[Path, Path], None], lake: tuple[Path, Path, Path]) -> None:
    path, file, other = lake
    damage(file, other)
    store = _core.Store.open(path)
    with pytest.raises(OperationalError, match=file.name):
        pa.table(store.begin().scan("boats"))
    (found,) = store.check()
    assert file.name in found
    # Of the other table, nothing is lost, and the damaged one can be given up.
    assert pa.table(store.begin().scan("other")).num_rows == len(OTHER)
    with changing(store) as work:
        work.drop("boats")
    store.vacuum(0)
    assert store.check() == []
    assert state_of(store) == {"other": OTHER}
    store.close()


def test_any_byte_is_overwritten(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.store.durability.test_damage", str(tmp_path / "lake")]
    done = subprocess.run(command, capture_output=True, check=False)
    assert (done.returncode, done.stderr.decode()[-2000:]) == (0, "")
    refused = json.loads(done.stdout)
    # A plain read finds what lies in the metadata; `check` and what writes them again find what lies in the values.
    assert 0 < refused < BYTES


#: Its keys are texts, whose offsets a search and a comparison read.
NAMED = pa.table(
    {"name": [f"boat {row:03}" for row in range(400)], "text": [None, "x" * 9] * 200},
    schema=pa.schema([pa.field("name", pa.string(), nullable=False), pa.field("text", pa.string())]),
)
USES: dict[str, Callable[[_core.StoreTransaction], object]] = {
    "search": lambda work: pa.table(work.scan("named", None, [("name", "=", "boat 007")])).num_rows,
    "upsert": lambda work: work.upsert("named", ["name"], NAMED.slice(50, 9)),
    "compact": lambda work: work.compact("named"),
}


def overwrite(path: Path) -> int:
    """Overwrite one byte after another, use the table and check the store; return how many reads were refused."""
    store = _core.Store.open(path)
    with changing(store) as work:
        work.create("named", NAMED.schema, ["name"], None, replace=False)
        work.append("named", NAMED)
    (file,) = store.begin().files("named")
    with changing(store) as work:
        # So that there is something to compact.
        work.delete("named", pa.table(work.scan("named", ["name"], positions=True)).select([1]).slice(7, 3))
    whole, refused = file.read_bytes(), 0
    chance = random.Random(len(whole))  # noqa: S311  no secret
    for _ in range(BYTES):
        # Most of what can go wrong is in the first and last few hundred bytes.
        at = chance.choice(
            (chance.randrange(600), len(whole) - 1 - chance.randrange(600), chance.randrange(len(whole)))
        )
        contents = bytearray(whole)
        contents[at] = (contents[at] + chance.choice((1, 127, 128, chance.randrange(1, 256)))) % 256
        file.write_bytes(contents)
        refused += is_refused(lambda: pa.table(store.begin().scan("named")), file)
        for name, use in USES.items():
            work = store.begin()
            is_found = is_refused(lambda use=use, work=work: use(work), file)  # type: ignore[misc]
            # Wrong values would be written again with a right checksum.
            assert is_found or name != "compact", at
            work.rollback()
        found = store.check()
        assert len(found) == 1, (at, found)
        assert file.name in found[0], (at, found)
    file.write_bytes(whole)
    assert store.check() == []
    return refused


def is_refused(use: Callable[[], object], file: Path) -> bool:
    """Whether there is an error, which has to name the file."""
    try:
        use()
    except OperationalError as error:
        assert file.name in str(error)  # noqa: PT017  in a process of its own
        return True
    return False


def sql(path: Path, statement: str) -> None:
    """Change a catalogue past its store."""
    with closing(sqlite3.connect(path / "catalogue.db")) as catalogue:
        catalogue.executescript(statement)


def garble(path: Path) -> None:
    (path / "catalogue.db").write_bytes(b"garbage " * 2000)


def make_a_directory_of_it(path: Path) -> None:
    (path / "catalogue.db").unlink()
    (path / "catalogue.db").mkdir()


CATALOGUES: dict[str, tuple[Callable[[Path], None], str]] = {
    "newer": (lambda path: sql(path, "PRAGMA user_version = 6"), "format 6.*knows format 5"),
    "older": (lambda path: sql(path, "PRAGMA user_version = 4"), "format 4.*knows format 5"),
    "foreign": (lambda path: sql(path, "PRAGMA application_id = 7"), "is not the catalogue of a store"),
    "garbage": (garble, "not a database"),
    "without a table": (lambda path: sql(path, "DROP TABLE chunk"), "no such table"),
    "a directory": (make_a_directory_of_it, "catalogue"),
}


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("name", CATALOGUES)
def test_a_catalogue_is_another(name: str, read_only: bool, lake: tuple[Path, Path, Path]) -> None:  # noqa: FBT001
    path, *files = lake
    damage, message = CATALOGUES[name]
    damage(path)
    with pytest.raises(OperationalError, match=f"(?s){message}") as caught:
        state_of(_core.Store.open(path, read_only=read_only))
    assert str(path) in str(caught.value)
    assert [file.exists() for file in files] == [True, True]


@pytest.mark.parametrize("contents", [None, b""])
def test_without_its_catalogue_a_store_keeps_its_files(contents: bytes | None, lake: tuple[Path, Path, Path]) -> None:
    path, *files = lake
    (path / "catalogue.db").unlink()
    if contents is not None:
        (path / "catalogue.db").write_bytes(contents)
    with pytest.raises(OperationalError, match=str(path)):
        _core.Store.open(path)
    assert [file.exists() for file in files] == [True, True]


def test_a_catalogue_is_damaged_in_the_middle(lake: tuple[Path, Path, Path]) -> None:
    path, *files = lake
    catalogue = path / "catalogue.db"
    whole = catalogue.read_bytes()
    for page in range(1, len(whole) // 4096):
        catalogue.write_bytes(whole[: page * 4096] + b"\xa5" * 4096 + whole[(page + 1) * 4096 :])
        try:
            store = _core.Store.open(path)
            found = store.check()
            assert found, page
            state_of(store)
        except OperationalError as error:
            assert "catalogue" in str(error), (page, error)  # noqa: PT017  some pages are found by a read
        assert [file.exists() for file in files] == [True, True], page


def test_a_directory_is_not_a_store(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("mine")
    with pytest.raises(OperationalError, match=f"{tmp_path} is not empty, and is not a store"):
        _core.Store.open(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]
    with pytest.raises(OperationalError, match=f"{tmp_path / 'letter.txt'}"):
        _core.Store.open(tmp_path / "letter.txt")
    with pytest.raises(OperationalError, match=f"{tmp_path / 'letter.txt' / 'lake'}"):
        _core.Store.open(tmp_path / "letter.txt" / "lake")
    for keywords in ({"read_only": True}, {"makes": False}):
        with pytest.raises(OperationalError, match=f"there is no store in {tmp_path / 'lake'}"):
            _core.Store.open(tmp_path / "lake", **keywords)
    assert not (tmp_path / "lake").exists()


def own_nothing() -> None:
    """Become a user who owns nothing."""
    user = unprivileged()
    if user is not None:
        os.setgroups([])
        os.setgid(user.pw_gid)
        os.setuid(user.pw_uid)


def follow(path: str, turns: str) -> None:
    """As such a user, keep a store open, and say how many rows it has and which versions after each turn."""
    own_nothing()
    store = _core.Store.open(path, read_only=True)
    while True:
        say(pa.table(store.begin().scan("boats")).num_rows, len(store.versions("boats")))
        # Until the other end is closed.
        if not Path(turns).read_bytes():
            return


def read(path: str) -> None:
    """As such a user, open a store to read it, and to write it; say what is read, or why it is not."""
    own_nothing()
    for read_only in (True, False):
        try:
            store = _core.Store.open(path, read_only=read_only)
            say(pa.table(store.begin().scan("boats")).num_rows, store.check())
        except OperationalError as error:
            say(str(error))


@pytest.fixture
def public(memory: Path) -> Iterator[Path]:
    """Give a store that another user may read."""
    memory.chmod(0o755)
    make(memory / "lake")
    for path in (memory / "lake").rglob("*"):
        path.chmod(0o555 if path.is_dir() else 0o444)
    (memory / "lake").chmod(0o555)
    yield memory / "lake"
    (memory / "lake").chmod(0o755)
    (memory / "lake" / "data").chmod(0o755)


def read_by_another_user(path: Path) -> list[list[Any]]:
    """Return what the process says."""
    with forks(read) as readers:
        readers.start(path)
        (_, begins), *said, (_, *ends) = (readers.next() for _ in range(4))
    assert [begins, *ends] == ["begins", "ends", 0]
    return [words for _, *words in said]


def test_who_may_not_write_reads_and_is_told_so(public: Path) -> None:
    reading, (writing,) = read_by_another_user(public)
    assert str(public) in writing
    assert reading == [400, []]


def test_who_may_not_write_reads_next_to_a_writer(public: Path) -> None:
    store = _core.Store.open(public)
    with changing(store) as work:
        work.append("boats", rows({1000: "new"}))
    reading, _ = read_by_another_user(public)
    assert reading == [401, []]
    store.close()


def test_who_may_not_write_sees_what_others_commit(public: Path) -> None:
    turns = public.parent / "turns"
    os.mkfifo(turns)
    turns.chmod(0o644)
    with forks(follow) as readers:
        readers.start(public, turns)
        assert readers.next()[1:] == ["begins"]
        assert readers.next()[1:] == [400, 2]
        # By one who closes it each time, and by one who does not.
        for number in (1, 2):
            store = _core.Store.open(public)
            with changing(store) as work:
                work.append("boats", rows({1000 + number: "new"}))
            store.close()
            turns.write_bytes(b"next")
            assert readers.next()[1:] == [400 + number, 2 + number]
        store = _core.Store.open(public)
        for number in (3, 4):
            with changing(store) as work:
                work.append("boats", rows({1000 + number: "new"}))
            turns.write_bytes(b"next")
            assert readers.next()[1:] == [400 + number, 2 + number]
        store.close()
        turns.write_bytes(b"")
        assert readers.next()[1:] == ["ends", 0]


def test_a_file_is_not_permitted(public: Path) -> None:
    (file, *_) = (path for path in (public / "data").iterdir() if path.stat().st_size > 8000)
    file.chmod(0o200)
    # While a writer has it open, the catalogue can be read.
    store = _core.Store.open(public)
    (reading,), _ = read_by_another_user(public)
    store.close()
    assert file.name in reading


if __name__ == "__main__":
    sys.stdout.write(json.dumps(overwrite(Path(sys.argv[1]))))
