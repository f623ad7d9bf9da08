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


@pytest.mark.parametrize(("number", "name"), [("6969", "NFS"), ("fe534d42", "SMB"), ("ef53", None)])
def test_a_networks_file_system_is_refused(number: str, name: str | None, tmp_path: Path, shim: Path) -> None:
    script = (
        "import sys, longshore\n"
        "try: longshore.open(sys.argv[1]).write('t', {'a': [1]})\n"
        "except longshore.OperationalError as error: print(error.hint and str(error))"
    )
    environment = {**os.environ, "LD_PRELOAD": str(shim), "SHIM_FILE_SYSTEM": number}
    command = [sys.executable, "-c", script, str(tmp_path / "lake")]
    said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    assert (f"is on a network's file system, {name}" in said) if name else said == ""
