"""The shim, and where files are fast."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile what is preloaded into processes whose calls are recorded or fail."""
    library = tmp_path_factory.mktemp("shim") / "shim.so"
    source = Path(__file__).with_name("shim.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", library, source], check=True)
    return library


@pytest.fixture
def memory() -> Iterator[Path]:
    """Give a directory whose files are in memory, if the machine has one: thousands of stores are made in it."""
    shared = Path("/dev/shm")  # noqa: S108  in a directory of its own
    path = Path(tempfile.mkdtemp(dir=shared if shared.is_dir() else None)).resolve()
    yield path
    shutil.rmtree(path)
