"""Which tests run in one process: those of a file, or of a source in the contract, whose database is made once.

So does a page of the guide that is a source's.
"""

import re
from typing import Any

from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

from tests.quirks import SOURCES

#: It takes longer to start than all of its tests: one process has them, and the copies to it.
_DEAR = "trino"
#: The tests that take longest begin first: by their number they would be the last, for which the others wait.
_FIRST = ("tests/sqlalchemy/test_suite.py", _DEAR, "tests/flight_server/test_load.py")
_NAMES = (_DEAR, *map(str, SOURCES))


def is_dear(nodeid: str) -> bool:
    """Tell whether a test is one of those that one process has."""
    return _scope(nodeid) == _DEAR


def _scope(nodeid: str) -> str:
    file, _, name = nodeid.partition("::")
    if file.startswith(f"tests/{_DEAR}/"):
        return _DEAR
    if name.removesuffix(".md") in _NAMES:
        return name.removesuffix(".md")
    if not file.startswith("tests/contract/"):
        return file
    words = re.split(r"[\[\]-]", name.replace("to_", ""))
    return next((name for name in _NAMES if name in words), file)


class Scheduler(LoadFileScheduling):  # type: ignore[misc]
    """The scheduler of pytest-xdist for `--dist=loadfile`."""

    def _split_scope(self, nodeid: str) -> str:
        return _scope(nodeid)

    def _assign_work_unit(self, node: Any) -> None:
        for scope in reversed(_FIRST):
            if scope in self.workqueue:
                self.workqueue.move_to_end(scope, last=False)
        super()._assign_work_unit(node)
