"""Which cases of a test run: each in which two values meet for the first time, of a costly test each with a new value.

Few faults need three values to meet, and most cases are of three: the long run has them all. So it is with the lanes of
a marker, which run tests again elsewhere: there each value is enough.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations

import pytest

_Value = tuple[tuple[str, ...], tuple[int, ...]]
_Case = tuple[pytest.Item, set[frozenset[_Value]]]


def pairwise(items: Sequence[pytest.Item], *, runs_again: bool) -> list[pytest.Item]:
    """Return, of each test, about as few of its cases as have each pair of values, or each value, in their order."""
    tests = defaultdict(list)
    for item in items:
        size = 1 if runs_again or item.get_closest_marker("costly") else 2
        tests[item.nodeid.partition("[")[0]].append((item, set(map(frozenset, combinations(_values(item), size)))))
    kept = {item for cases in tests.values() for item in _covering(cases)}
    return [item for item in items if item in kept]


def _covering(cases: list[_Case]) -> Iterator[pytest.Item]:
    kept: set[pytest.Item] = set()
    met: set[frozenset[_Value]] = set()
    # Those first that have the most pairs that none before has.
    for count in range(max(len(pairs) for _, pairs in cases), 0, -1):
        for item, pairs in cases:
            if len(pairs - met) >= count:
                kept.add(item)
                met |= pairs
    yield from (item for item, pairs in cases if not pairs or item in kept)


def _values(item: pytest.Item) -> Iterator[_Value]:
    """Yield the values of a case, each with its parameters' names; those of one list belong together."""
    callspec = getattr(item, "callspec", None)
    # They are the same objects in each case.
    left = {name: id(value) for name, value in callspec.params.items()} if callspec else {}
    for marker in item.iter_markers("parametrize"):
        names = marker.args[0]
        names = tuple(each.strip() for each in names.split(",")) if isinstance(names, str) else tuple(names)
        yield names, tuple(left.pop(name) for name in names if name in left)
    yield from (((name,), (value,)) for name, value in left.items())
