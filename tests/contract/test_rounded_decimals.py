"""pandas' float64 for decimals: a `DataWarning` once a column where a value does not come back to its own digits."""

import decimal
import warnings
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import longshore
from tests.contract.conftest import Database

D = decimal.Decimal

#: Decimals whose doubles read as they do, zeros at their ends aside.
KEPT = ["0", "0.1", "-0.1", "1234567890123.45", "0.30000000000000004", "9007199254740992", "0.123456789012345"]

#: Decimals that share their double with another number.
ROUNDED = [
    "9007199254740993",
    "-18446744073709551615",
    "0.900719925474099301",
    "12345678901234567.89",
    "0.333333333333333333",
]


@pytest.fixture
def decimals(database: Database, table: str) -> Any:
    """Give a function that fills the table with rows of texts, as decimals of 38 digits."""

    def fill(*columns: list[str | None]) -> str:
        kind = pa.decimal128(38, 18)
        arrays = [pa.array([None if text is None else D(text) for text in column], kind) for column in columns]
        numbers = pa.array(range(len(columns[0])))
        data = pa.table([numbers, *arrays], names=["n", *"ab"[: len(columns)]])
        longshore.write_sql(data, table, database.control)
        return f"SELECT {', '.join('ab'[: len(columns)])} FROM {table} ORDER BY n"

    return fill


def found(query: str, conn: Any, **arguments: Any) -> list[str]:
    """Read into a frame; give the texts of the warnings, each of which is raised for the line of the call."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        longshore.read_sql(query, conn, **arguments)
    assert all(warning.category is longshore.DataWarning for warning in caught)
    assert all(warning.filename == __file__ for warning in caught)
    return [str(warning.message) for warning in caught]


@pytest.mark.parametrize("protocol", ["binary", "text"])
def test_what_comes_back_is_not_told_of(database: Database, decimals: Any, protocol: str) -> None:
    query = decimals([*KEPT, None])
    frame = longshore.read_sql(query, database.control, options={"protocol": protocol})
    assert [D(repr(value)) for value in frame.iloc[:-1, 0]] == [D(text) for text in KEPT]


@pytest.mark.costly
@pytest.mark.parametrize("protocol", ["binary", "text"])
@pytest.mark.parametrize("value", ROUNDED)
def test_what_does_not_come_back_is_told_of(database: Database, decimals: Any, value: str, protocol: str) -> None:
    (text,) = found(decimals([None, "0.5", value]), database.control, options={"protocol": protocol})
    assert f'"{database.quirks.kept("a")}"' in text
    assert value in text
    assert 'dtype_backend="pyarrow"' in text
    assert "schema=" in text


def test_each_column_is_told_of_once(database: Database, decimals: Any) -> None:
    query = decimals(ROUNDED, [*reversed(ROUNDED)])
    first, second = found(query, database.control, batch_size=1)
    assert [f'"{database.quirks.kept(name)}"' in text for name, text in (("a", first), ("b", second))] == [True, True]
    parts = [query.replace("ORDER BY n", f"WHERE n % 2 = {rest}") for rest in (0, 1)]
    assert len(found(parts, database.url)) == 2  # type: ignore[arg-type]


@pytest.mark.costly
@pytest.mark.parametrize(
    "arguments",
    [
        {"schema": "float64"},
        {"schema": "string"},
        {"schema": "decimal128(38, 18)"},
        {"dtype_backend": "pyarrow"},
        {"return_type": "arrow"},
        {"return_type": "polars"},
    ],
    ids=str,
)
def test_who_asks_for_a_type_or_gets_all_digits_is_told_nothing(
    database: Database, decimals: Any, arguments: dict[str, Any]
) -> None:
    if "schema" in arguments:
        arguments = {"schema": {database.quirks.kept("a"): arguments["schema"]}}
    assert found(decimals(ROUNDED), database.control, **arguments) == []


def test_streams_in_pandas(database: Database, decimals: Any) -> None:
    query = decimals([*KEPT, *ROUNDED, *ROUNDED])
    stream = longshore.read_sql(query, database.url, return_type="arrow_stream", batch_size=5)
    with pytest.warns(longshore.DataWarning, match=r'"[aA]".*9007199254740993') as caught:
        frames = list(stream.pandas())
    assert len(caught) == 1
    assert pd.concat(frames).iloc[:, 0].dtype == "float64"


def test_an_error_where_the_filters_say_so(database: Database, decimals: Any) -> None:
    with pytest.raises(longshore.DataWarning):
        longshore.read_sql(decimals(ROUNDED), database.url)
