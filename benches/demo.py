"""Read TPC-H's lineitem out of a real PostgreSQL into a DataFrame, and tell how long it took: `make demo`.

The scale factor is the argument, or else SCALE, or else 1 (6 million rows).
"""

import argparse
import os
import subprocess
import sys

from benches.lineitem import loaded, measured_server
from tests.servers import Missing


def main() -> None:
    """Load what is not loaded yet, and read it in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scale", nargs="?", type=float, default=float(os.environ.get("SCALE") or 1))
    scale: float = parser.parse_args().scale
    try:
        with measured_server() as server:
            print(f"PostgreSQL {server.version}, TPC-H at scale factor {scale:g}", flush=True)
            url = loaded(scale, server)
            subprocess.run([sys.executable, "-m", "benches.once", url], check=True)
    except (Missing, subprocess.CalledProcessError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
