"""Read TPC-H's lineitem out of a real PostgreSQL and out of SQLite into DataFrames, and tell how long each took.

`make demo`. Where no PostgreSQL can be had, SQLite is read alone, which needs no server. The scale factor is the
argument, or else SCALE, or else 1 (6 million rows).
"""

import argparse
import os
import sqlite3
import subprocess
import sys

from benches import lineitem, lineitem_sqlite
from tests.servers import Missing


def main() -> None:
    """Load what is not loaded yet, and read each in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scale", nargs="?", type=float, default=float(os.environ.get("SCALE") or 1))
    scale: float = parser.parse_args().scale
    try:
        try:
            from_postgresql(scale)
        except Missing as missing:
            print(f"PostgreSQL is left out: {missing}", flush=True)
        from_sqlite(scale)
    except (Missing, subprocess.CalledProcessError) as error:
        sys.exit(str(error))


def from_postgresql(scale: float) -> None:
    """Read from a private server."""
    with lineitem.measured_server() as server:
        read(f"PostgreSQL {server.version}", scale, lineitem.loaded(scale, server))


def from_sqlite(scale: float) -> None:
    """Read from a file."""
    read(f"SQLite, a file written by {sqlite3.sqlite_version}", scale, lineitem_sqlite.loaded(scale))


def read(name: str, scale: float, url: str) -> None:
    """Read in a process whose memory is the reader's alone."""
    print(f"{name}, TPC-H at scale factor {scale:g}", flush=True)
    subprocess.run([sys.executable, "-m", "benches.once", url], check=True)


if __name__ == "__main__":
    main()
