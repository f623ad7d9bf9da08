"""One read by one client, in a process of its own: prints its figures as JSON.

python -m benches.measure CLIENT FRAME QUERY URL [PARTS [COLUMN]]
"""

import json
import resource
import sys
import time
import warnings
from typing import Any

from benches.peers import DRIVER, peers

KIBIBYTE = 1024
PARTITION = {"partition_num": int, "partition_on": str}


def main(client: str, frame: str, query: str, url: str, *parts: str) -> None:
    """Read once, in parts if asked to, and print seconds, bytes and rows, and what the client warned of."""
    peer = next(peer for peer in (*peers(url), *DRIVER) if (peer.client, peer.frame) == (client, frame))
    partition = {name: kind(text) for (name, kind), text in zip(PARTITION.items(), parts, strict=False)}
    peer.prepare()
    baseline = resource.getrusage(resource.RUSAGE_SELF)
    with warnings.catch_warnings(record=True, action="always") as caught:
        # What a client's own code should do otherwise says nothing about the read.
        warnings.simplefilter("ignore", DeprecationWarning)
        start = time.perf_counter()
        result = peer.read(query, url, **partition)
        wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_SELF)
    figures = {
        "wall": wall,
        "cpu": after.ru_utime + after.ru_stime - baseline.ru_utime - baseline.ru_stime,
        "peak": (after.ru_maxrss - baseline.ru_maxrss) * KIBIBYTE,
        "size": size(result),
        "rows": len(result) if hasattr(result, "__len__") else None,
        "warnings": [f"{warning.category.__name__}: {warning.message}" for warning in caught],
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
