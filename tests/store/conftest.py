"""A store in a directory of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import longshore


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Give the path of a store that is not there yet."""
    return tmp_path / "lake"


@pytest.fixture
def store(lake: Path) -> Iterator[longshore.Store]:
    """Give an empty store."""
    with longshore.open(lake) as store:
        yield store
