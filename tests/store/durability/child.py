"""A process whose calls `shim.c` records or fails: `child DIRECTORY`, then `trace`, `faults KIND STRIDE` or `full`."""

import ctypes
import errno
import functools
import itertools
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from longshore import OperationalError, _core
from tests.store.durability.workload import STORY, State, Step, problem, state_of, steps

SEED = 18
NONE, SYNC, WRITE = range(3)
FAULTS = {
    "sync": (SYNC, False, errno.EIO),
    "syncs": (SYNC, True, errno.EIO),
    "write": (WRITE, False, errno.EIO),
    "full": (WRITE, True, errno.ENOSPC),
}


def trace(root: Path, shim: ctypes.CDLL) -> None:
    """Record the story: each step is a note, once it is acknowledged."""
    shim.shim_watch(os.fsencode(root), os.fsencode(root.with_suffix(".trace")))
    store = _core.Store.open(root / "lake")
    for number, step in enumerate(steps(SEED, STORY)):
        store = _done(store, step)
        shim.shim_note(str(number).encode())
    shim.shim_watch(b"", b"")
    assert state_of(_core.Store.open(root / "lake")) == step.after


def _done(store: _core.Store, step: Step) -> _core.Store:
    """Do a step."""
    if step.kind in {"reopen", "close"}:
        path = store.path
        store.close()
        return store if step.kind == "close" else _core.Store.open(path)
    step.apply(store)
    return store


def faults(root: Path, shim: ctypes.CDLL) -> None:
    """Have every call of a kind fail, one in each run; say in which step, of which file, and what was wrong then."""
    shim.shim_watch(os.fsencode(root), b"")
    shim.shim_failed.restype = ctypes.c_char_p
    kind, stays, code = FAULTS[sys.argv[3]]
    for nth in itertools.count(1, int(sys.argv[4])):
        run = _Run(root / str(nth), shim)
        shim.shim_fail(kind, nth, stays, code)
        run.go()
        if not run.failed:
            return
        _say(run.kind, Path(run.failed).name, "; ".join(filter(None, run.problems)))
        shutil.rmtree(run.path, ignore_errors=True)


class _Run:
    """The story with a fault in it."""

    def __init__(self, path: Path, shim: ctypes.CDLL) -> None:
        self.path, self.shim = path, shim
        self.kind, self.failed = "open", ""
        self.problems: list[str | None] = []

    def go(self) -> None:
        before: State = {}
        store, error = self._attempt(lambda: _core.Store.open(self.path))
        if self.failed:
            self.problems = [self._lacks(error), problem(self.path, [{}])]
            return
        for step in steps(SEED, STORY):
            self.kind = step.kind
            assert store is not None
            after, error = self._attempt(functools.partial(_done, store, step))
            if self.failed:
                self.problems = list(self._examined(store, step, before, error))
                return
            store, before = after, step.after

    def _attempt(self, work: Callable[[], _core.Store]) -> tuple[_core.Store | None, Exception | None]:
        store, error = None, None
        try:
            store = work()
        except Exception as caught:  # noqa: BLE001  whatever it is
            error = caught
        self.failed = os.fsdecode(self.shim.shim_failed())
        if self.failed:
            self.shim.shim_fail(NONE, 0, 0, 0)
        return store, error

    def _examined(self, store: _core.Store, step: Step, before: State, error: Exception | None) -> Iterator[str | None]:
        """Look at the store from here and another session, as a crash would leave it, and after a repetition."""
        allowed = [before, step.after]
        if step.kind in {"reopen", "close"}:
            # What a close could not write into the catalogue's file is in its log.
            yield problem(self.path, allowed)
            return
        yield self._lacks(error)
        yield self._crashed("crashed at once", allowed)
        found = _seen(store)
        if found not in [*allowed, None]:
            yield "the session sees another state"
        other = _core.Store.open(self.path)
        if state_of(other) not in allowed:
            yield "another session sees another state"
        yield "; ".join(other.check())
        yield self._crashed("crashed after another session has opened it", allowed)
        other.close()
        if found is None:
            store.close()
            store = _core.Store.open(self.path)
        if state_of(store) == before:
            step.apply(store)
        if state_of(store) != step.after:
            yield "it was not repeated"
        yield self._crashed("crashed after it was repeated", [step.after])
        store.close()
        yield problem(self.path, [step.after])

    def _lacks(self, error: Exception | None) -> str | None:
        # SQLite goes on when it cannot sync the name of its log, which the store's own sync of the directory does, too.
        return None if error is None and Path(self.failed) == self.path else _lacks(error)

    def _crashed(self, when: str, allowed: list[State]) -> str | None:
        copy = self.path.with_name("crashed")
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self.path, copy, ignore=shutil.ignore_patterns("*-shm"))
        found = problem(copy, allowed)
        return f"{when}: {found}" if found else None


def _seen(store: _core.Store) -> State | None:
    """Read all; None of a session that refuses to, as what failed could not be undone, and keeps its files."""
    try:
        return state_of(store)
    except OperationalError as refusal:
        if "open the store again" in str(refusal):
            return None
        raise


def _lacks(error: Exception | None) -> str | None:
    if isinstance(error, OperationalError):
        return None
    return f"no OperationalError, but {type(error).__name__}: {error}"


def full(root: Path, _: ctypes.CDLL) -> None:
    """Do the story on a disk with less and less room left, until it is full from the start; then with room again."""
    space = os.statvfs(root)
    room = space.f_bavail * space.f_frsize
    for left in range(0, 1 << 20, 12 << 10):
        path, filler = root / "lake", root / "filler"
        filler.write_bytes(bytes(room - left))
        kind, before, allowed, store, error = "open", State(), [State()], None, None
        try:
            store = _core.Store.open(path)
            for step in steps(SEED, STORY):
                kind, allowed = step.kind, [before, step.after]
                store = _done(store, step)
                before = step.after
        except Exception as caught:  # noqa: BLE001  whatever it is
            error = caught
        wrong = _lacks(error) if error else ""
        if "writing " in str(error) and getattr(error, "sqlstate", None) != "53100":
            wrong = f"no SQLSTATE of a full disk: {error}"
        if error and store and _seen(store) not in [*allowed, None]:
            wrong = "the session sees another state"
        filler.unlink()
        if store:
            store.close()
        _say(left, kind if error else "", wrong or problem(path, allowed))
        shutil.rmtree(path)
        if not error:
            return


def _say(*result: object) -> None:
    sys.stdout.write(json.dumps(result) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    work = {"trace": trace, "faults": faults, "full": full}[sys.argv[2]]
    work(Path(sys.argv[1]), ctypes.CDLL(os.environ["LD_PRELOAD"]))
