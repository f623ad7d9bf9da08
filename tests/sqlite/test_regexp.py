"""REGEXP, which SQLite itself has no function for: it finds what Python's ``re.search`` finds."""

import re
from typing import Any

import pytest

import longshore
from tests.sqlite.conftest import Make

TEXTS = ["Anna", "größe", "GRÖSSE", "a\nb", "١٢", "x" * 5000, "", None, "7.5"]
PATTERNS = [
    "",
    "^a",
    "(?i)Größe",
    "n{2}",
    r"^\d+$",
    r"\bna",
    "a.b",
    "(?s)a.b",
    r"\w\s\w",
    "x$",
    "a|7",
    "[^a-z]",
    r"(\w)\w*",
]


def matching(query: str, pattern: Any, url: str) -> list[Any]:
    table: Any = longshore.read_sql(query, url, params=[pattern], return_type="arrow")
    found: list[Any] = table["found"].to_pylist()
    return found


@pytest.mark.parametrize("pattern", PATTERNS)
def test_it_finds_what_python_finds(pattern: str, make: Make) -> None:
    rows = ", ".join("(NULL)" if text is None else f"('{text}')" for text in TEXTS)
    url = make("CREATE TABLE t (v text, p text)", f"INSERT INTO t (v) VALUES {rows}")
    expected = [None if text is None else int(re.search(pattern, text) is not None) for text in TEXTS]
    assert matching("SELECT v REGEXP ? AS found FROM t ORDER BY rowid", pattern, url) == expected
    # A pattern in a column is another one for each row, to SQLite.
    with longshore.connect(url) as connection:
        connection.execute("UPDATE t SET p = ?", [pattern])
        connection.commit()
    assert matching("SELECT v REGEXP p AS found FROM t WHERE ? <> 0 ORDER BY rowid", 1, url) == expected


def test_other_values(make: Make) -> None:
    url = make("CREATE TABLE t (v)", "INSERT INTO t VALUES (12), (1.5), (x'ff61'), (x'')")
    assert matching("SELECT v REGEXP ? AS found FROM t ORDER BY rowid", "[a.2]", url) == [1, 1, 1, 0]
    assert matching("SELECT v REGEXP ? AS found FROM t", None, url) == [None] * 4
    assert matching("SELECT count(*) AS found FROM t WHERE v NOT REGEXP ?", "a", url) == [3]


@pytest.mark.parametrize("pattern", ["(", r"(a)\1", "a(?=b)", b"\xff"])
def test_a_pattern_that_cannot_be_searched_for_is_an_error(pattern: Any, make: Make) -> None:
    url = make("CREATE TABLE t (v)", "INSERT INTO t VALUES ('a')")
    with pytest.raises(longshore.Error, match="pattern"):
        matching("SELECT v REGEXP ? AS found FROM t", pattern, url)
