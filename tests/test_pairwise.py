"""The cases that run are those in which two values meet first, or a value is new."""

from itertools import combinations, product

import pytest

from tests.long import IS_LONG
from tests.pairwise import pairwise

ALL = {*product("ab", "cd", [("e", 0), ("f", 0), ("f", 1)])}
run: set[tuple[str, str, tuple[str, int]]] = set()
costly: set[tuple[str, str]] = set()


@pytest.mark.parametrize("first", ["a", "b"])
@pytest.mark.parametrize("second", ["c", "d"])
@pytest.mark.parametrize(("third", "fourth"), [("e", 0), ("f", 0), ("f", 1)])
def test_a_case(first: str, second: str, third: str, fourth: int) -> None:
    run.add((first, second, (third, fourth)))
    assert run <= ALL


def test_all_values_have_met() -> None:
    assert {pair for case in run for pair in combinations(case, 2)} == {
        pair for case in ALL for pair in combinations(case, 2)
    }
    assert len(run) == (len(ALL) if IS_LONG else 6)


@pytest.mark.costly
@pytest.mark.parametrize("first", ["a", "b"])
@pytest.mark.parametrize("second", ["c", "d", "e"])
def test_a_costly_case(first: str, second: str) -> None:
    costly.add((first, second))
    assert costly <= {*product("ab", "cde")}


def test_each_value_has_been_there() -> None:
    assert [{*values} for values in zip(*costly, strict=True)] == [{*"ab"}, {*"cde"}]
    assert len(costly) == (6 if IS_LONG else 3)


def test_each_value_is_enough_where_tests_run_again(request: pytest.FixtureRequest) -> None:
    items = [item for item in request.session.items if item.name.startswith("test_a_case[")]
    kept = [item.callspec.id for item in pairwise(items, runs_again=True)]  # type: ignore[attr-defined]
    assert {name for case in kept for name in case.split("-")} == {*"abcdef01"}
    assert len(kept) == 3
