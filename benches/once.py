"""Read TPC-H's lineitem into a DataFrame once, in a process whose memory is the reader's alone, and print the figures.

python -m benches.once URL
"""

import resource
import sys
import time

import pandas  # noqa: F401, ICN001  its memory belongs to the baseline

import longshore

QUERY = "SELECT * FROM lineitem"
MEBIBYTE = 1 << 20


def main(url: str) -> None:
    """Read, and print the figures."""
    before = peak_memory()
    start = time.perf_counter()
    frame = longshore.read_sql(QUERY, url)
    seconds = time.perf_counter() - start
    peak = peak_memory() - before
    size = int(frame.memory_usage(deep=True).sum())
    print(f'longshore.read_sql("{QUERY}", url)')
    print(f"{'rows':>12}  {len(frame):,}")
    print(f"{'seconds':>12}  {seconds:.2f}")
    print(f"{'rows/s':>12}  {len(frame) / seconds:,.0f}")
    print(f"{'peak memory':>12}  {peak / MEBIBYTE:,.0f} MiB, of which the frame is {size / MEBIBYTE:,.0f} MiB")
    print(frame.dtypes.to_string())
    print(frame.head().to_string())


def peak_memory() -> int:
    """Return the most memory that this process has had, in bytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


if __name__ == "__main__":
    main(sys.argv[1])
