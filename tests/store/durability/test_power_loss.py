"""Every prefix of what a process has written, on a disk that loses what was not synced: what is acknowledged stays."""

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.long import IS_LONG
from tests.store.durability.child import SEED
from tests.store.durability.disk import LOSSES, Disk, Event, events
from tests.store.durability.workload import STORY, State, problem, steps

#: How often each prefix is tried with each kind of loss that chance has a part in.
REPEATS = 20 if IS_LONG else 1


def recorded(memory: Path, shim: Path) -> list[Event]:
    """Record the story. Its events make the very files that the process has left."""
    root = memory / "recorded"
    root.mkdir()
    command = [sys.executable, "-m", "tests.store.durability.child", str(root), "trace"]
    subprocess.run(command, env={**os.environ, "LD_PRELOAD": str(shim)}, check=True)
    found = list(events(root.with_suffix(".trace")))
    disk = Disk()
    for event in found:
        disk.apply(event)
    files = [path for path in root.rglob("*") if not path.name.endswith("-shm")]
    left = {str(path): None if path.is_dir() else path.read_bytes() for path in files}
    assert disk.left("kept", random.Random(SEED), found[-1]) == left  # noqa: S311  no secret
    return found


def test_power_is_lost_after_every_call(memory: Path, shim: Path) -> None:
    found = recorded(memory, shim)
    states: list[State] = [{}, *(step.after for step in steps(SEED, STORY))]
    disk, acknowledged = Disk(), 0
    seen: set[int] = set()
    failures = []
    for number, event in enumerate(found):
        disk.apply(event)
        if event.what == "note":
            acknowledged += 1
        for losses in LOSSES:
            for repeat in range(1 if losses in {"lost", "kept"} else REPEATS):
                seed = f"{number} {losses} {repeat}"
                left = disk.left(losses, random.Random(seed), event)  # noqa: S311  no secret
                key = hash((acknowledged, *left.items()))
                if key in seen:
                    continue
                seen.add(key)
                wrong = problem(replayed(left, memory), states[acknowledged : acknowledged + 2])
                if wrong:
                    failures.append(f"{seed}, after {acknowledged} steps: {wrong}")
    assert failures == []
    assert acknowledged == len(STORY)
    assert len(seen) > 2 * len(found)


def replayed(left: dict[str, bytes | None], memory: Path) -> Path:
    """Make the files that a loss of power has left."""
    root = memory / "replayed"
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    for name, contents in left.items():
        path = root / Path(name).relative_to(memory / "recorded")
        if contents is None:
            path.mkdir()
        else:
            path.write_bytes(contents)
    return root / "lake"


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="what is preloaded is Linux's")
