"""The Parquet files of the measurements of `sql`, made once and kept in the cache."""

import subprocess
from pathlib import Path

from benches.lineitem import say, tpchgen
from tests.servers import cache

_EVERYDAY = (
    "WatchID, EventTime, EventDate, CounterID, RegionID, UserID, URL, SearchPhrase, ResolutionWidth, AdvEngineID"
)
#: A title, the table, and the columns that are exported; of all its columns, hits has a million rows.
EXPORTS = {
    "hits, 10 columns": ("hits", _EVERYDAY),
    "lineitem, 6 million rows": ("lineitem", "*"),
    "hits, 105 columns, 1 million rows": ("hits", "*"),
}


def lineitem() -> Path:
    """Return TPC-H's lineitem at scale factor 1; where it is not there yet, make it."""
    folder = cache() / "tpch-parquet"
    file = folder / "lineitem.parquet"
    if not file.exists():
        say("making lineitem")
        command = [tpchgen(), "parquet", "--scale-factor=1", "--tables=lineitem", f"--output-dir={folder}", "--quiet"]
        subprocess.run(command, check=True)
    return file
