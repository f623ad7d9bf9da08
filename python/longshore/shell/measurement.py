"""One read in a process of its own, whose memory is the reader's alone; its figures go to standard output as JSON.

What to read comes over standard input: a URL may hold a password, and everybody can see a process's arguments.
"""

import importlib
import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

import longshore
from longshore.progress import Progress
from longshore.shell.arguments import parameters
from longshore.shell.errors import error_fields
from longshore.shell.output import collect_warnings
from longshore.shell.signals import listen, stop_repeating

#: The library that each return type needs.
LIBRARIES = {"pandas": "pandas", "arrow": "pyarrow", "polars": "polars", "numpy": "numpy", "arrow_stream": "pyarrow"}


def main() -> None:
    """Read as standard input says."""
    listen()
    read = json.load(sys.stdin)
    importlib.import_module(LIBRARIES[read["return_type"]])
    try:
        params = parameters(read.pop("params", None), read.pop("args", None))
        with collect_warnings(as_json=True) as warnings:
            figures = measure_read(params=params, **read)
        figures["warnings"] = warnings
    except Exception as error:  # noqa: BLE001  the parent process raises it
        figures = {"error": error_fields(error)}
    except KeyboardInterrupt:
        stop_repeating()
        # The parent process has been interrupted, and says so.
        return
    sys.stdout.write(json.dumps(figures))


def measure_read(return_type: str, **arguments: Any) -> dict[str, Any]:
    """Read once, and give the figures."""
    size = 0

    def listen_to(progress: Progress) -> None:
        nonlocal size
        size = progress.bytes

    before = _peak_bytes()
    began = time.perf_counter()
    result: Any = longshore.read_sql(return_type=return_type, progress=listen_to, **arguments)
    rows = _row_count(result)
    seconds = time.perf_counter() - began
    return {"rows": rows, "bytes": size, "seconds": seconds, "peak_bytes": _peak_bytes() - before}


def _row_count(result: Any) -> int:
    if isinstance(result, longshore.Stream):
        return sum(batch.num_rows for batch in result)
    if isinstance(result, dict):
        return len(next(iter(result.values()), ()))
    return int(getattr(result, "num_rows", None) or len(result))


def _peak_bytes() -> int:
    """Return the most memory that this process has had, in bytes."""
    status = Path("/proc/self/status")
    if status.exists():
        # On Linux the usage begins with that of the process that started this one.
        return int(status.read_text().partition("VmHWM:")[2].split()[0]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


if __name__ == "__main__":
    main()
