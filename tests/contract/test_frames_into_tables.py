"""`write_sql` of pandas' floats and timestamps into columns of decimals and dates: each digit, or an error."""

import datetime as dt
import decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

import longshore
from tests.contract.conftest import Database

pytestmark = pytest.mark.packages

D = decimal.Decimal

#: Doubles whose shortest texts fit numeric(15,2), the largest of 15 digits among them.
PRICES = [0.07, -0.07, -0.0, 0.0, 0.1, 0.29, 1.1, 1234.5, -901.0, 1e12, 9_999_999_999_999.99, -9_999_999_999_999.99]


def written(database: Database, table: str, values: Any, native: str) -> list[Any]:
    """Write a column into a table that is there, and read it back."""
    if database.source == "sqlite":
        # What SQLite calls a DECIMAL holds doubles.
        native = native.replace("numeric(", "decimal_text(")
    database.execute(f"CREATE TABLE {table} (n int, a {native})")
    frame = pd.DataFrame({"n": range(len(values)), "a": values})
    assert longshore.write_sql(frame, table, database.url, if_exists="append") == len(values)
    result = longshore.read_sql(f"SELECT a FROM {table} ORDER BY n", database.control, return_type="arrow")
    column: list[Any] = result.column(0).to_pylist()
    return column


def test_floats_become_decimals_of_their_own_digits(database: Database, table: str) -> None:
    found = written(database, table, [*PRICES, np.nan], f"{database.quirks.numeric}(15,2)")
    assert found[-1] is None
    assert [D(value) for value in found[:-1]] == [D(repr(value)) for value in PRICES]


@pytest.mark.costly
@pytest.mark.parametrize("value", [0.001, 1.005, 0.1 + 0.2, 1e13])
def test_a_float_that_a_decimal_would_change_is_refused(database: Database, table: str, value: float) -> None:
    if database.source == "sqlite":
        # It keeps the text of any number.
        assert written(database, table, [value], "text") == [str(value)]
        return
    with pytest.raises(longshore.DataError) as caught:
        written(database, table, [1.0, value], f"{database.quirks.numeric}(15,2)")
    told = database.quirks.tells_failed_casts or value != 1e13
    assert (caught.value.column, caught.value.row) == (("a", 1) if told else (None, None))
    assert told or "numeric field overflow" in str(caught.value)


@pytest.mark.costly
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_timestamps_at_midnight_become_dates(database: Database, table: str, unit: str) -> None:
    days = [dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(2024, 2, 29), dt.date(1800, 3, 1), None]
    native = database.quirks.types["date"].native
    found = written(database, table, pd.Series(days).astype(np.dtype(f"M8[{unit}]")), native)
    assert found == days


def test_a_timestamp_with_a_time_of_day_is_not_a_date(database: Database, table: str) -> None:
    native = database.quirks.types["date"].native
    for second in ("1969-12-31 23:59:59", "2024-02-29 00:00:01", "2024-02-29 12:00"):
        database.execute(f"DROP TABLE IF EXISTS {table}")
        values = pd.Series(["2024-02-29", second]).astype("datetime64[ns]")
        with pytest.raises(longshore.DataError, match="time of day") as caught:
            written(database, table, values, native)
        assert (caught.value.column, caught.value.row) == ("a", 1)
        assert native.lower() in str(caught.value.native_type).lower()


def test_texts_of_pandas_keep_their_letters_and_chunks(database: Database, table: str) -> None:
    pieces = [pd.DataFrame({"a": [f"ü{n}", None, "", "x" * 20]}) for n in range(6)]
    values = pd.concat(pieces, ignore_index=True)["a"].astype("str" if pd.__version__ >= "3" else "string")
    found = written(database, table, values, "varchar(20)")
    assert found == [text for n in range(6) for text in (f"ü{n}", None, "", "x" * 20)]
