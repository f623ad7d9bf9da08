"""Arguments that are wrong: an ``InterfaceError`` that names them, before the server is asked."""

import sys
from collections.abc import Iterator
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from longshore import InterfaceError, read_sql
from tests.servers import Endpoint

pytestmark = [pytest.mark.packages, pytest.mark.pythons]

LONE = "\ud800"
FRAME = "params is a list, a tuple or a dict, not {}; write params=list(frame['column'])"
INDEX = "index_col is a column's name or a list of names, not {}"
SURROGATE = "{} holds a lone surrogate, '\\ud800', at character {}: UTF-8 cannot encode it"
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"schema": ["a"]}, "schema is a dict from column to type, not list"),
    ({"schema": "a"}, "schema is a dict from column to type, not str"),
    ({"schema": {1: "int64"}}, "schema names its columns by texts, not 1"),
    ({"schema": {f"a{LONE}": "int64"}}, SURROGATE.format("a column of schema", 2)),
    ({"schema": {"a": LONE}}, SURROGATE.format("schema['a']", 1)),
    ({"index_col": 5}, INDEX.format("5")),
    ({"index_col": ["a", 5]}, INDEX.format("['a', 5]")),
    ({"index_col": b"a"}, INDEX.format("bytes")),
    ({"query": f"SELECT '{LONE}'"}, SURROGATE.format("query", 9)),
    ({"query": ["SELECT 1", f"é😀{LONE}"]}, SURROGATE.format("query", 3)),
    ({"pre_execution_query": LONE}, SURROGATE.format("pre_execution_query", 1)),
    ({"params": {1: 2}}, "params names its values by texts, not 1"),
    ({"params": {f"a{LONE}": 2}}, SURROGATE.format("a name in params", 2)),
    ({"params": pd.DataFrame({"a": [1]})}, FRAME.format("DataFrame")),
    ({"params": pl.DataFrame({"a": [1]})}, FRAME.format("DataFrame")),
    ({"params": pa.table({"a": [1]})}, FRAME.format("Table")),
]


@pytest.mark.parametrize(
    ("given", "says"), WRONG, ids=[f"{next(iter(given))}-{at}" for at, (given, _) in enumerate(WRONG)]
)
def test_says_what_is_wrong(url: str, given: dict[str, Any], says: str) -> None:
    arguments = {"query": "SELECT 1 AS a", **given}
    with pytest.raises(InterfaceError) as raised:
        read_sql(arguments.pop("query"), url, **arguments)
    assert str(raised.value) == says


@pytest.fixture
def table(postgres: Endpoint) -> Iterator[str]:
    """Give the name of an empty table."""
    postgres.psql("CREATE TABLE of_arguments (a int)")
    yield "of_arguments"
    postgres.psql("DROP TABLE of_arguments")


def test_a_wrong_progress_inserts_nothing(postgres: Endpoint, url: str, table: str) -> None:
    with pytest.raises(InterfaceError, match=r"^progress is True, False or a callable, not 5$"):
        read_sql(f"INSERT INTO {table} VALUES (1) RETURNING a", url, progress=5)  # type: ignore[call-overload]
    assert postgres.psql(f"SELECT count(*) FROM {table}") == "0"


def test_a_missing_rich_inserts_nothing(
    postgres: Endpoint, url: str, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "rich.console", None)
    with pytest.raises(ImportError, match=r"^progress=True needs rich: pip install 'longshore\[progress\]'$"):
        read_sql(f"INSERT INTO {table} VALUES (1) RETURNING a", url, progress=True)
    assert postgres.psql(f"SELECT count(*) FROM {table}") == "0"
