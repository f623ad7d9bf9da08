"""SQLAlchemy's suite for dialects, for the process that ``test_suite`` starts."""

from typing import Any

from sqlalchemy.testing import suite
from sqlalchemy.testing.suite import *  # noqa: F403  its tests are all of its names


class ServerSideCursorsTest(suite.ServerSideCursorsTest):
    """Its tests, which know the cursors of some drivers by name."""

    def _is_server_side(self, cursor: Any) -> bool:
        return cursor.streams
