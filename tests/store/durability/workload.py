"""Changes of a store, and what its tables hold after each of them."""

import contextlib
import random
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from longshore import InterfaceError, _core

State = dict[str, dict[int, str]]

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("text", pa.string())])

#: Each kind at least once; those that change rows change all tables in one transaction.
STORY = (
    *("create", "create", "append", "upsert", "delete", "append", "reopen", "upsert"),
    *("compact", "vacuum", "append", "truncate", "append", "drop", "vacuum", "close"),
)
KINDS = ("create", "append", "append", "upsert", "upsert", "delete", "delete", "compact", "vacuum", "truncate", "drop")
MOST_TABLES = 3


def rows(values: dict[int, str]) -> pa.Table:
    """Return rows as the tables have them."""
    return pa.table({"id": list(values), "text": list(values.values())}, schema=SCHEMA)


@dataclass(frozen=True)
class Step:
    """A change, and the tables after it."""

    kind: str
    #: The table that is created or dropped.
    table: str
    #: Rows that are added; and those that are replaced or deleted, if they are there.
    new: dict[int, str]
    changed: dict[int, str]
    after: State

    def apply(self, store: _core.Store) -> None:
        """Do it."""
        if self.kind == "vacuum":
            store.vacuum(0)
            return
        with changing(store) as work:
            if self.kind == "create":
                work.create(self.table, SCHEMA, ["id"], None, replace=False)
            elif self.kind == "drop":
                work.drop(self.table)
            else:
                for name in work.tables():
                    self._change(work, name)

    def _change(self, work: _core.StoreTransaction, name: str) -> None:
        if self.kind == "append":
            work.append(name, rows(self.new))
        elif self.kind == "upsert":
            work.upsert(name, ["id"], rows({**self.changed, **self.new}))
        elif self.kind == "delete":
            work.delete(name, positions(work, name, set(self.changed)))
        elif self.kind == "truncate":
            work.truncate(name)
        else:
            work.compact(name)


def steps(seed: int, kinds: Sequence[str] = ()) -> Iterator[Step]:
    """Yield changes of these kinds, or without end of all kinds; one seed gives the same ones in every process."""
    chance = random.Random(seed)  # noqa: S311  no secret
    state: State = {}
    for serial in range(len(kinds) or 1 << 40):
        kind = kinds[serial] if kinds else chance.choice(KINDS)
        if not kinds and (not state or (kind == "create" and len(state) == MOST_TABLES)):
            kind = "append" if state else "create"
        known = sorted({row for table in state.values() for row in table})
        ids = chance.sample(known, k=len(known) // 3), range(serial * 1000, serial * 1000 + chance.randint(1, 60))
        changed, new = ({row: f"{serial}:{row}" + "x" * chance.randint(0, 400) for row in part} for part in ids)
        table = f"table_{serial}" if kind == "create" or not state else chance.choice(sorted(state))
        state = {name: _changed(kind, state[name], new, changed) for name in state if (kind, name) != ("drop", table)}
        state |= {table: {}} if kind == "create" else {}
        yield Step(kind, table, new, changed, state)


def _changed(kind: str, table: dict[int, str], new: dict[int, str], changed: dict[int, str]) -> dict[int, str]:
    after = {
        "append": {**table, **new},
        "upsert": {**table, **changed, **new},
        "delete": {row: table[row] for row in table.keys() - changed.keys()},
        "truncate": {},
    }
    return after.get(kind, table)


@contextlib.contextmanager
def changing(store: _core.Store) -> Iterator[_core.StoreTransaction]:
    """Give a transaction that is committed, or rolled back after an error, which would hold its locks otherwise."""
    work = store.begin()
    try:
        yield work
        work.commit()
    except BaseException:
        with contextlib.suppress(InterfaceError):
            work.rollback()
        raise


def positions(work: _core.StoreTransaction, name: str, ids: set[int]) -> pa.Table:
    """Return where the rows of these keys are."""
    found = pa.table(work.scan(name, ["id"], positions=True))
    chosen = pa.array([row in ids for row in found["id"].to_pylist()], pa.bool_())
    return found.filter(chosen).select(["longshore_position"])


def state_of(store: _core.Store) -> State:
    """Read all tables of the newest version."""
    work = store.begin()
    state: State = {}
    for name in work.tables():
        table = pa.table(work.scan(name))
        state[name] = dict(zip(table["id"].to_pylist(), table["text"].to_pylist(), strict=True))
        assert len(state[name]) == table.num_rows, f"a key twice in {name}"
    work.rollback()
    return state


def garbage(path: Path) -> set[str]:
    """Return the files that no version has, of a store that no one has open."""
    with contextlib.closing(sqlite3.connect(path / "catalogue.db")) as catalogue:
        known = {name for (name,) in catalogue.execute("SELECT file FROM chunk")}
    return {file.name for file in (path / "data").iterdir()} - known


def problem(path: Path, allowed: Sequence[State], *, changes: bool = True) -> str | None:
    """Open a store that a crash has left, and say what is wrong: it is in an allowed state, whole, and goes on."""
    try:
        _core.Store.open(path).close()
        left = garbage(path)
        if left:
            return f"files of no version: {left}"
        store = _core.Store.open(path, timeout=5)
        found = state_of(store)
        if found not in allowed:
            sizes = [{name: len(table) for name, table in state.items()} for state in (found, *allowed)]
            return f"another state: {sizes[0]}, not one of {sizes[1:]}"
        damages = store.check()
        # Every lock is free.
        work = store.begin()
        for name in (*found, "next"):
            work.lock(name)
        if changes:
            work.create("next", SCHEMA, ["id"], None, replace=False)
            work.append("next", rows({1: "one"}))
            work.commit()
            damages += [] if state_of(store) == {**found, "next": {1: "one"}} else ["a commit that is not there"]
            store.vacuum(0)
        else:
            work.rollback()
        store.close()
    except Exception as error:  # noqa: BLE001  whatever it is
        return f"{type(error).__name__}: {error}"
    return "; ".join(damages) or None
