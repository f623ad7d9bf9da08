"""The limit of a client of SQLite: a query's rows are stepped through and every column is read, in C.

The C is compiled here against the SQLite that Longshore is built with, its settings the same.
"""

import ctypes
import json
import os
import subprocess
import tomllib
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.servers import cache as cache_folder

ROOT = Path(__file__).parents[1]
LOOP = Path(__file__).with_name("loop.c")


def drain(query: str, url: str, *, partition_num: int = 1) -> int:
    """Read every column of every row of ``query``, and return the number of rows.

    Several parts are ranges of the rowid, each read in a thread and over a connection of its own; the query is then
    ``SELECT ... FROM table``.
    """
    file = path(url)
    if partition_num == 1:
        return _drain(query, file)
    with ThreadPoolExecutor(partition_num) as threads:
        return sum(threads.map(partial(_drain, file=file), _parts(query, partition_num)))


def path(url: str) -> str:
    """Return the file that a URL names."""
    return urlsplit(url).path.removeprefix("/")


def _parts(query: str, number: int) -> list[str]:
    """Return the queries of the parts, whose bounds SQLite finds at the end of the table."""
    highest = f"(SELECT max(rowid) FROM {query.rpartition(' FROM ')[2]})"
    bounds = [f"{highest} * {part} / {number}" for part in range(1, number)]
    lower = ["", *(f"rowid > {bound}" for bound in bounds)]
    upper = [*(f"rowid <= {bound}" for bound in bounds), ""]
    return [f"{query} WHERE {' AND '.join(filter(None, both))}" for both in zip(lower, upper, strict=True)]


def _drain(query: str, file: str) -> int:
    rows: int = _library().drain(os.fsencode(file), query.encode())
    if rows < 0:
        message = f"SQLite answers with code {-rows}"
        raise RuntimeError(message)
    return rows


@cache
def _library() -> Any:
    loop = ctypes.CDLL(str(_built()))
    loop.drain.restype = ctypes.c_long
    return loop


def _built() -> Path:
    """Return where the compiled loop is, with the version of the binding that has SQLite's source."""
    locked = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    version = next(package["version"] for package in locked if package["name"] == "libsqlite3-sys")
    return cache_folder() / f"drain-sqlite-{version}.so"


def build() -> None:
    """Compile the loop where that has not been done."""
    built = _built()
    if built.exists() and built.stat().st_mtime > LOOP.stat().st_mtime:
        return
    new = built.with_suffix(".new")
    settings = tomllib.loads((ROOT / ".cargo" / "config.toml").read_text())
    flags = ["-DSQLITE_THREADSAFE=1", *settings["env"]["LIBSQLITE3_FLAGS"].split()]
    source = _source()
    command = ["cc", "-O3", "-w", "-fPIC", "-shared", *flags, f"-I{source}", LOOP, source / "sqlite3.c"]
    subprocess.run([*command, "-o", new, "-lm", "-ldl", "-lpthread"], check=True)
    new.rename(built)


def _source() -> Path:
    """Return the folder of SQLite's source that cargo has."""
    command = ["cargo", "metadata", "--format-version=1", "--locked", f"--manifest-path={ROOT / 'Cargo.toml'}"]
    packages = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["packages"]
    manifest = next(package["manifest_path"] for package in packages if package["name"] == "libsqlite3-sys")
    return Path(manifest).with_name("sqlite3")
