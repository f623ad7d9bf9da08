"""A stream in a process of its own, whose memory does not grow with its rows."""

import subprocess
import sys

import pytest

from tests.contract.conftest import Database

pytestmark = pytest.mark.usefixtures("leaves_nothing")

MEMORY = """
import re
from pathlib import Path
import longshore

def most():
    # Not ru_maxrss, which begins with what the parent had when it forked.
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) >> 10

size = after = 0
for batch in longshore.read_sql({query!r}, {url!r}, return_type="arrow_stream"):
    size += batch.nbytes
    after = after or (most() if size > 40_000_000 else 0)
    if size > 90_000_000:
        break
print(most() - after, most())
"""


def test_a_long_stream_needs_no_more_memory_than_a_short_one(database: Database) -> None:
    script = MEMORY.format(query=database.quirks.streaming, url=database.url)
    database.close()
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=True)
    grown, most = map(int, done.stdout.split())
    assert grown < 32
    assert most < 512
