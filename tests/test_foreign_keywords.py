"""Keywords of pandas, ConnectorX, polars and drivers: a TypeError that says what to write here."""

import asyncio
import inspect
import typing
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import longshore
from longshore import foreign

pytestmark = pytest.mark.packages

SECRET = "rope walk"
URL = f"postgresql://me:{SECRET}@127.0.0.1:1/x"


def _asynchronous(verb: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args, **keywords: asyncio.run(verb(*args, **keywords))


VERBS: dict[str, tuple[Callable[..., Any], typing.Mapping[str, str]]] = {
    "read_sql": (longshore.read_sql, foreign.READ),
    "read_sql_async": (_asynchronous(longshore.read_sql_async), foreign.READ),
    "write_sql": (longshore.write_sql, foreign.WRITE),
    "copy": (longshore.copy, foreign.COPY),
    "connect": (longshore.connect, foreign.CONNECT),
    "Pool": (longshore.Pool, foreign.CONNECT),
    "AsyncPool": (longshore.AsyncPool, foreign.CONNECT),
}
CASES = [(verb, keyword) for verb, (_, keywords) in VERBS.items() for keyword in keywords]


@pytest.mark.parametrize(("verb", "keyword"), CASES)
def test_a_foreign_keyword(verb: str, keyword: str) -> None:
    call, sentences = VERBS[verb]
    # Whatever else is missing: its place may be what the foreign keyword stands for.
    for args in ((), (URL,), ("SELECT 1", URL)):
        with pytest.raises(TypeError) as caught:
            call(*args, **{keyword: SECRET})
        said = str(caught.value)
        assert said == f"{verb}() got an unexpected keyword argument {keyword!r}: {sentences[keyword]}"


@pytest.mark.parametrize("verb", VERBS)
def test_no_keyword_of_ours_is_foreign(verb: str) -> None:
    ours = inspect.signature(getattr(longshore, verb)).parameters
    assert not VERBS[verb][1].keys() & ours.keys()


def test_several_at_once_and_what_is_close() -> None:
    read: Any = longshore.read_sql
    with pytest.raises(
        TypeError, match=r"^read_sql\(\) got unexpected keyword arguments 'sql': .*; 'con': .*; 'nonsense'$"
    ):
        read(sql="SELECT 1", con=URL, nonsense=1)
    with pytest.raises(TypeError, match=r"'partition_nums': did you mean 'partition_num'\?"):
        read("SELECT 1", URL, partition_nums=2)
    with pytest.raises(TypeError, match=r"'numeric_nan': give options=\{\"numeric_nan\": \.\.\.\}"):
        read("SELECT 1", URL, numeric_nan="null")


def test_foreign_words() -> None:
    with pytest.raises(longshore.InterfaceError, match="truncate") as caught:
        longshore.write_sql({"a": [1]}, "t", URL, if_exists="delete_rows")  # type: ignore[arg-type]
    assert caught.value.hint is not None
    with pytest.raises(longshore.InterfaceError, match=r"pyarrow\.Table"):
        longshore.read_sql("SELECT 1", URL, return_type="arrow2")


def test_the_verbs_look_as_they_did() -> None:
    assert inspect.iscoroutinefunction(longshore.read_sql_async)
    assert not inspect.iscoroutinefunction(longshore.read_sql)
    parameters = inspect.signature(longshore.write_sql).parameters
    assert [*parameters][:4] == ["data", "table", "conn", "if_exists"]
    assert parameters["parallel"].default == 1
    assert longshore.read_sql.__doc__ is not None
    assert longshore.read_sql.__module__ == "longshore.read"


def test_warnings_happen_in_the_line_of_the_caller(url: str, tmp_path: Path) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        longshore.read_sql("SELECT 1 AS a LIMIT 1", url, partition_num=2)
        longshore.copy("SELECT 1 AS a LIMIT 1", url, "t", tmp_path / "a.db", partition_num=2)
        longshore.write_sql({"a": [1]}, "u", tmp_path / "a.db", parallel=2)
    assert [warning.category for warning in caught] == [
        longshore.SerialReadWarning,
        longshore.SerialReadWarning,
        longshore.SerialWriteWarning,
    ]
    assert {warning.filename for warning in caught} == {__file__}
