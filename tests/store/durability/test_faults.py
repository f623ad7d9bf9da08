"""Calls of the system that fail: an error, a committed state, and a store that goes on when the fault is gone."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.long import IS_LONG
from tests.store.durability.workload import STORY

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="what is preloaded is Linux's")

#: Which call of a kind fails: each, or every seventh, as the writes to a log are pairs.
STRIDE = 1 if IS_LONG else 7

MOUNT = 'mount -t tmpfs -o size=2M none "$0" && exec "$@"'


def may_mount() -> bool:
    """Whether a small disk can be made without being the machine's root."""
    command = ["unshare", "-rm", "sh", "-c", MOUNT, "/tmp", "true"]  # noqa: S108  seen by this process alone
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def results(shim: Path, *arguments: object, before: Sequence[object] = ()) -> list[list[str]]:
    """Run the child, which says a line of each fault."""
    command = [*map(str, before), sys.executable, "-m", "tests.store.durability.child", *map(str, arguments)]
    environment = {**os.environ, "LD_PRELOAD": str(shim)}
    output = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True).stdout
    return [json.loads(line) for line in output.splitlines()]


@pytest.mark.parametrize(
    ("kind", "stride"),
    [("sync", 1), ("write", STRIDE), ("full", STRIDE), *([("syncs", 1)] if IS_LONG else [])],
)
def test_each_call_fails(kind: str, stride: int, memory: Path, shim: Path) -> None:
    found = results(shim, memory, "faults", kind, stride)
    assert [result for result in found if result[-1]] == []
    assert {step for step, *_ in found} >= ({"open", *STORY} if stride == 1 else {"open", "append", "upsert", "vacuum"})


@pytest.mark.parametrize("disk", ["tmpfs"] if may_mount() else [])
def test_a_disk_is_full(disk: str, memory: Path, shim: Path) -> None:
    small = memory / disk
    small.mkdir()
    found = results(shim, small, "full", before=["unshare", "-rm", "sh", "-c", MOUNT, small])
    assert [result for result in found if result[-1]] == []
    assert {step for _, step, _ in found} >= {"open", "create", "append", "upsert", ""}
