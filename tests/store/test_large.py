"""Tables that are larger than the memory which a process may have, and, in the long run, of 100 million rows."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.long import IS_LONG
from tests.store.large import ROOM

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a limit of memory is Linux's")

ROWS = 100_000_000 if IS_LONG else 20_000_000


def test_a_table_is_larger_than_the_memory(lake: Path) -> None:
    command = [sys.executable, "-m", "tests.store.large", str(lake), str(ROWS)]
    try:
        run = subprocess.run(command, capture_output=True, text=True, check=False)
    finally:
        shutil.rmtree(lake, ignore_errors=True)
    assert run.returncode == 0, run.stderr
    said = json.loads(run.stdout)
    last = ROWS - 1
    assert said["rows"] == ROWS
    assert said["bytes"] == ROWS * 24 > ROOM
    assert said["totals"] == {"c": ROWS, "v": ROWS // 1000 * 499_500, "w": last * 7}
    assert said["groups_are_right"]
    assert said["streamed"] == [ROWS, ROWS * last // 2]
    assert said["last"] == {"n": last, "v": last % 1000, "w": last * 7}
    assert said["some"] == [{"n": n, "v": n % 1000, "w": n * 7} for n in range(1000, 1003)]
    # Mapped rows are not memory of the process's own: 1 % of the table, and what an import takes.
    assert said["map"]["grown"] < said["bytes"] / 100 + (8 << 20)
    assert said["stream"]["grown"] < said["bytes"] / 100 + (8 << 20)
