"""SQLAlchemy's suite for dialects, for the process that ``test_suite`` starts."""

from sqlalchemy.testing.suite import *  # noqa: F403  its tests are all of its names
