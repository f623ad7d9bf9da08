"""One read by one client, in a process of its own: prints its figures as JSON.

python -m benches.measure CLIENT FRAME QUERY URL
"""

import json
import resource
import sys
import time
from typing import Any

from benches.peers import PEERS

KIBIBYTE = 1024


def main(client: str, frame: str, query: str, url: str) -> None:
    """Read once and print wall and processor seconds, peak memory and the frame's size in bytes."""
    peer = next(peer for peer in PEERS if (peer.client, peer.frame) == (client, frame))
    peer.prepare()
    baseline = resource.getrusage(resource.RUSAGE_SELF)
    start = time.perf_counter()
    result = peer.read(query, url)
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_SELF)
    figures = {
        "wall": wall,
        "cpu": after.ru_utime + after.ru_stime - baseline.ru_utime - baseline.ru_stime,
        "peak": (after.ru_maxrss - baseline.ru_maxrss) * KIBIBYTE,
        "size": size(result),
    }
    print(json.dumps(figures))


def size(result: Any) -> int | None:
    """Return the bytes that a frame says it holds, where it says so."""
    if hasattr(result, "memory_usage"):
        return int(result.memory_usage(deep=True).sum())
    if hasattr(result, "estimated_size"):
        return int(result.estimated_size())
    return int(result.nbytes) if hasattr(result, "nbytes") else None


if __name__ == "__main__":
    main(*sys.argv[1:])
