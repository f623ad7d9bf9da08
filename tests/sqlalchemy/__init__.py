"""SQLAlchemy's dialects: its own suite of tests for dialects, and what a program with an engine does."""

import tomllib
from pathlib import Path

from sqlalchemy.dialects import registry

ROOT = Path(__file__).parents[2]


def entry_points() -> dict[str, str]:
    """Give the dialects of pyproject.toml, which a wheel's installation makes known to SQLAlchemy."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    points: dict[str, str] = project["entry-points"]["sqlalchemy.dialects"]
    return points


def register() -> None:
    """Make the dialects known where the package is not installed."""
    for name, place in entry_points().items():
        registry.register(name, *place.split(":"))
