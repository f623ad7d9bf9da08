"""A writing process that is killed: the store opens to a committed state, with all that was acknowledged."""

import os
import random
import signal
import sys
import time
from pathlib import Path

import pytest

from longshore import _core
from tests.long import IS_LONG
from tests.store.durability.workload import State, problem, state_of, steps
from tests.store.forks import forks, say

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the store's locks are Linux's")

KILLS = 500 if IS_LONG else 60
#: After so many kills, another store and other changes.
KILLS_OF_A_STORE = 20


def change(path: str, seed: int, done: int) -> None:
    """Do the changes after those that are done, and acknowledge each."""
    store = _core.Store.open(path, timeout=5)
    for number, step in enumerate(steps(seed)):
        if number >= done:
            step.apply(store)
            say("done")


def states(seed: int, done: int) -> list[State]:
    """Return the state after so many changes, and after one more."""
    changes = steps(seed)
    return [State(), *(next(changes).after for _ in range(done + 1))][done:]


def test_a_writer_is_killed_at_any_time(memory: Path) -> None:
    seed = done = total = 0
    with forks(change) as writers:
        for kill in range(KILLS):
            if kill % KILLS_OF_A_STORE == 0:
                seed, done = int.from_bytes(os.urandom(4), "little"), 0
            path = memory / str(seed)
            writers.start(path, seed, done)
            process, *begins = writers.next()
            assert begins == ["begins"]
            # A slow machine does as many changes.
            for _ in range(random.randrange(5)):  # noqa: S311  no secret
                assert writers.next() == [process, "done"]
                done, total = done + 1, total + 1
            time.sleep(random.uniform(0, 0.03))  # noqa: S311  no secret
            os.kill(process, signal.SIGKILL)
            while (said := writers.next()) == [process, "done"]:
                done, total = done + 1, total + 1
            assert said == [process, "ends", -signal.SIGKILL]
            allowed = states(seed, done)
            wrong = problem(path, allowed, changes=False)
            assert wrong is None, f"seed {seed}, after {done} changes: {wrong}"
            # The change that was under way may have been committed. Of two states that are equal, either goes on.
            store = _core.Store.open(path)
            done += state_of(store) != allowed[0]
            store.close()
    assert total > KILLS
