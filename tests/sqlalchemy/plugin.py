"""A plugin for pytest that readies SQLAlchemy's suite for dialects; for a process of its own, see ``test_suite``."""

import importlib
import zlib

import pytest
from sqlalchemy.testing import provision

from tests.long import IS_LONG
from tests.sqlalchemy import register

pytest.register_assert_rewrite("sqlalchemy.testing.assertions")
register()
for _database in ("postgresql", "mysql", "sqlite"):
    # What prepares a database for the suite, which is found by the names of SQLAlchemy's own dialects only.
    importlib.import_module(f"sqlalchemy.dialects.{_database}.provision")

# It would make extensions that PostgreSQL's wheel does not have, and that no test of the suite's needs.
provision.post_configure_engine.for_db("postgresql")(lambda *_arguments: None)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave to each database a third of the suite's tests; in the long run each has them all."""
    if IS_LONG:
        return
    turn = next(n for n, name in enumerate(("postgresql", "mariadb", "sqlite")) if name in config.option.dburi[0])
    items[:] = [item for item in items if zlib.crc32(item.name.encode()) % 3 == turn]
