"""A plugin for pytest that runs SQLAlchemy's suite for dialects; for a process of its own, see ``test_suite``."""

import importlib
from typing import Any

import pytest
from sqlalchemy.testing import config, provision

from tests.sqlalchemy import register
from tests.sqlalchemy.requirements import left_out

pytest.register_assert_rewrite("sqlalchemy.testing.assertions")
register()
for _database in ("postgresql", "mysql", "sqlite"):
    # What prepares a database for the suite, and is found by the name of a dialect of SQLAlchemy's own only.
    importlib.import_module(f"sqlalchemy.dialects.{_database}.provision")

# It would make extensions that PostgreSQL's wheel does not have, and that no test of the suite's needs.
provision.post_configure_engine.for_db("postgresql")(lambda *_arguments: None)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out what a database cannot do."""
    engine: Any = config.db
    reasons = left_out(engine.name)
    for item in items:
        parent = item.getparent(pytest.Class)
        name = getattr(parent.cls, "_sa_orig_cls_name", parent.name) if parent else ""
        reason = reasons.get(f"{name}.{getattr(item, 'originalname', item.name)}")
        if reason:
            item.add_marker(pytest.mark.skip(reason=f"left out: {reason}"))
