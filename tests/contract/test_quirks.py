"""Quirks, what the sources cannot do, are counted: one more is a decision."""

import re
from collections.abc import Collection
from pathlib import Path

import pytest

from tests.quirks import SOURCES, Quirks

_TEXTS = {path.stem: path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_*.py")}
#: The contract's modules and the tests of each, but for modules that do not run for every source.
TESTS = {
    module: {*re.findall(r"^def (test_\w+)", text, re.MULTILINE)}
    for module, text in _TEXTS.items()
    if re.search(r"\b(database|target): Database", text)
}


def modules_of(name: str, left_out: Collection[str] = ()) -> list[str]:
    """Return the modules that a name of a quirk is about, but for those that are left out anyway."""
    return [module for module in TESTS if module not in left_out and name in TESTS[module]]


@pytest.mark.parametrize("quirks", SOURCES, ids=str)
def test_a_quirk_is_about_a_test_that_there_is(quirks: Quirks) -> None:
    of_tests = [name for name in quirks.cannot if name.startswith("test_")]
    # One of PEP 249's suite comes after the name of the test that runs it, and one of a module after that.
    unknown = [
        name for name in of_tests if not modules_of(name.rpartition(".")[2]) and not modules_of(name.partition(".")[0])
    ]
    for is_long, names in ((True, quirks.left_out), (False, quirks.in_the_long_run)):
        not_run = quirks.not_run(is_long=is_long)
        unknown += [name for name in names if name not in TESTS and not modules_of(name, not_run)]
    assert [*unknown, *(quirks.in_the_long_run & {*quirks.left_out})] == []


def test_the_quirks_are_counted() -> None:
    assert {quirks.source: len(quirks.cannot) + len(quirks.left_out) for quirks in SOURCES} == {
        "postgresql": 0,
        "mariadb": 6,
        "mysql": 8,
        "sqlite": 9,
        "duckdb": 9,
        "store": 10,
        "clickhouse": 40,
        "trino": 35,
        "bigquery": 37,
        "oracle": 27,
        "adbc_postgresql": 9,
        "odbc_postgresql": 5,
        "odbc_mariadb": 14,
        "served_duckdb": 8,
        "served_store": 9,
        "served_postgresql": 7,
    }
