"""Readers and writers in processes of their own: an invariant of two tables holds, and no one waits for long."""

import random
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from longshore import OperationalError, _core
from tests.long import IS_LONG
from tests.store.forks import forks, say

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the store's locks are Linux's")

SECONDS = 60 if IS_LONG else 5
READERS, WRITERS = 8, 2
TABLES = ("bow", "stern")
SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("amount", pa.int64())])
CONFLICT = "40001"
#: A reader waits for no writer. The machine may be busy with all the others.
LONGEST_READ = 2.0

Model = dict[int, int]


def rows(values: Model) -> pa.Table:
    """Return rows as the tables have them."""
    return pa.table({"id": list(values), "amount": list(values.values())}, schema=SCHEMA)


def work(path: str, number: int) -> None:
    """Read, or as one of the first processes write, and say at the end how often."""
    store = _core.Store.open(path, timeout=60, read_only=number >= WRITERS and number % 2 == 0)
    if number < WRITERS:
        commits, conflicts, model = write(store, number)
        say("written", commits, conflicts, sorted(model.items()))
    else:
        say("read", *read(store))
    store.close()


def read(store: _core.Store) -> tuple[int, float]:
    """Read both tables again and again: how often, and how long it took at the most."""
    end, reads, longest, last = time.monotonic() + SECONDS, 0, 0.0, 0
    kept, total = pa.table({"amount": pa.array([], pa.int64())}), None
    while (start := time.monotonic()) < end:
        transaction = store.begin()
        bow, stern = (pa.table(transaction.scan(name, ["amount"])) for name in TABLES)
        version = transaction.version
        transaction.rollback()
        longest = max(longest, time.monotonic() - start)
        assert total_of(bow) == total_of(stern), f"version {version}"
        assert version >= last
        # A vacuum may have removed the files of what is mapped.
        assert total_of(kept) == total
        kept, total = bow, total_of(bow)
        last, reads = version, reads + 1
    return reads, longest


def total_of(table: pa.Table) -> int | None:
    """Add the amounts up."""
    total: int | None = pc.sum(table["amount"]).as_py()
    return total


def write(store: _core.Store, number: int) -> tuple[int, int, Model]:
    """Change both tables again and again: commits, conflicts, and the rows that this process has there."""
    chance = random.Random(number)  # noqa: S311  no secret
    model: Model = {}
    end, counts, serial = time.monotonic() + SECONDS, Counter[str](), 0
    while time.monotonic() < end:
        serial += 1
        chosen = chance.sample(sorted(model), len(model) // 4)
        new = {WRITERS * (serial * 100 + row) + number: chance.randrange(1000) for row in range(chance.randint(1, 20))}
        kind = chance.choice(("append", "upsert", "delete") if len(model) < 100 else ("delete",))
        changed = {"append": new, "upsert": {**new, **{row: chance.randrange(1000) for row in chosen}}}.get(kind, {})
        transaction = store.begin()
        try:
            for name in TABLES:
                if chance.random() < 0.2:
                    transaction.lock(name)
                    assert own(pa.table(transaction.scan(name)), number) == model
                change(transaction, name, kind, changed, chosen)
            transaction.commit()
        except OperationalError as error:
            assert error.sqlstate == CONFLICT, error  # noqa: PT017  in a process of its own
            transaction.rollback()
            counts["conflicts"] += 1
            continue
        counts["commits"] += 1
        model = {row: model[row] for row in model if row not in chosen} if kind == "delete" else {**model, **changed}
        if number == 0 and serial % 10 == 0:
            store.vacuum(0)
    return counts["commits"], counts["conflicts"], model


def change(transaction: _core.StoreTransaction, name: str, kind: str, changed: Model, chosen: list[int]) -> None:
    """Change a table: add or replace rows, or delete those that are chosen."""
    if kind == "append":
        transaction.append(name, rows(changed))
    elif kind == "upsert":
        transaction.upsert(name, ["id"], rows(changed))
    else:
        found = pa.table(transaction.scan(name, ["id"], positions=True))
        mask = pc.is_in(found["id"], pa.array(chosen, pa.int64()))
        transaction.delete(name, found.filter(mask).select(["longshore_position"]))


def own(table: pa.Table, number: int) -> Model:
    """Return the rows that a writer has written."""
    values = zip(table["id"].to_pylist(), table["amount"].to_pylist(), strict=True)
    return {row: amount for row, amount in values if row % WRITERS == number}


def test_readers_and_writers(tmp_path: Path) -> None:
    path = tmp_path / "lake"
    store = _core.Store.open(path)
    transaction = store.begin()
    for name in TABLES:
        transaction.create(name, SCHEMA, ["id"], None, replace=False)
    transaction.commit()
    said: list[list[Any]] = []
    with forks(work) as processes:
        for number in range(READERS + WRITERS):
            processes.start(path, number)
        while sum(words[0] == "ends" for _, *words in said) < READERS + WRITERS:
            said.append(processes.next())
    assert Counter(tuple(words) for _, *words in said if words[0] == "ends") == {("ends", 0): READERS + WRITERS}
    written = [words for _, *words in said if words[0] == "written"]
    readings = [words for _, *words in said if words[0] == "read"]
    assert [len(written), len(readings)] == [WRITERS, READERS]
    for _, commits, conflicts, _ in written:
        assert commits > SECONDS
        assert conflicts < commits
    for _, reads, longest in readings:
        assert reads > SECONDS
        assert longest < LONGEST_READ
    model = {row: amount for *_, items in written for row, amount in items}
    transaction = store.begin()
    for name in TABLES:
        table = pa.table(transaction.scan(name))
        assert dict(zip(table["id"].to_pylist(), table["amount"].to_pylist(), strict=True)) == model
    transaction.rollback()
    assert store.check() == []
    store.close()
