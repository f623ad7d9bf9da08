"""NumPy, pyarrow and polars: dtypes by schema, values exact."""

import datetime as dt
from typing import Any

import numpy as np
import pytest

from longshore import DataError, InterfaceError, NotSupportedError, read_sql
from tests.frames import cases
from tests.frames.cases import NULLS, expected, query

pytestmark = [pytest.mark.packages, pytest.mark.pythons]


def numpy(url: str, sql: str, **options: Any) -> "np.ma.MaskedArray[Any, Any]":
    """Read one column `c`."""
    columns: dict[str, np.ma.MaskedArray[Any, Any]] = read_sql(sql, url, return_type="numpy", **options)
    return columns["c"]


@pytest.mark.parametrize("nulls", NULLS)
@pytest.mark.parametrize(
    ("column", "held"),
    [(cases.DECIMAL, cases.DECIMALS), (cases.IDENTIFIER, cases.IDENTIFIERS), (cases.SPAN, cases.SPANS)],
    ids=["numeric", "uuid", "interval"],
)
def test_numpy_objects(url: str, column: tuple[str, tuple[str, str]], held: tuple[Any, Any], nulls: str) -> None:
    array = numpy(url, query(*column, nulls))
    assert array.dtype == object
    assert array.tolist() == expected(held, nulls)


def test_numpy_tells_nan_from_null(url: str) -> None:
    array = numpy(url, query("float8", ("NaN", "1")))
    assert np.isnan(array.data[0])
    assert np.ma.getmaskarray(array).tolist() == [False, False, True]


@pytest.mark.parametrize("sql", ["jsonb[]", "json[]", "uuid[]"])
def test_polars_has_no_extension_types_at_any_depth(url: str, sql: str) -> None:
    literal = "{12345678-1234-5678-1234-567812345678}" if sql == "uuid[]" else "{1}"
    frame = read_sql(query(sql, (literal,)), url, return_type="polars")
    assert str(frame["c"].dtype) == "List(String)"
    assert [None if row is None else list(row) for row in frame["c"]] == [[literal.strip("{}")], None]


def test_polars_refuses_intervals(url: str) -> None:
    with pytest.raises(NotSupportedError, match="interval"):
        read_sql(query(*cases.SPAN), url, return_type="polars")


def test_a_date_beyond_python_is_an_error_where_objects_are_made(url: str) -> None:
    far = "SELECT ARRAY[date '10000-01-01'] AS c"
    with pytest.raises(DataError, match=r'column "c", row 0 \(date\[\]\).*outside'):
        read_sql(far, url)
    assert numpy(url, "SELECT date '10000-01-01' AS c")[0] == np.datetime64("10000-01-01")
    assert read_sql("SELECT date '10000-01-01' AS c", url)["c"].to_numpy()[0] == np.datetime64("10000-01-01")


def test_options_of_another_frame_are_refused(url: str) -> None:
    for option in ({"dtype_backend": "numpy"}, {"index_col": "a"}):
        with pytest.raises(InterfaceError, match=next(iter(option))):
            read_sql("SELECT 1 AS a", url, return_type="arrow", **option)  # type: ignore[call-overload]


def test_results_of_many_batches(url: str) -> None:
    sql = (
        "SELECT NULLIF(n % 1000, 999) AS a, n::text AS b, date '2020-01-01' + n AS c FROM generate_series(0, 9999) AS n"
    )
    frame = read_sql(sql, url, batch_size=777)
    assert frame["a"].isna().sum() == 10
    assert (frame["a"][1000], frame["b"][9999]) == (0, "9999")
    assert frame["c"][9999] == dt.datetime(2020, 1, 1) + dt.timedelta(days=9999)  # noqa: DTZ001  naive
    arrays = read_sql(sql, url, return_type="numpy", batch_size=777)
    assert arrays["a"].mask.sum() == 10
    assert arrays["b"].tolist() == [str(number) for number in range(10_000)]
