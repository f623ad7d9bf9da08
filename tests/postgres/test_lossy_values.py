"""The losses of PostgreSQL's values on their way into lists and doubles: told once a column, in the caller's line."""

import decimal
import warnings
from typing import Any

import pytest

import longshore

pytestmark = pytest.mark.packages

D = decimal.Decimal


def warned(query: str, url: str, **arguments: Any) -> list[str]:
    """Read; give the texts of the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        longshore.read_sql(query, url, **{"return_type": "arrow", **arguments})
    assert all(warning.category is longshore.DataWarning for warning in caught)
    assert all(warning.filename == __file__ for warning in caught)
    return [str(warning.message) for warning in caught]


@pytest.mark.parametrize("protocol", ["binary", "text"])
@pytest.mark.parametrize(
    ("array", "values", "schema"),
    [
        ("'[2:4]={1,2,3}'::int[]", [1, 2, 3], None),
        ("'[-2:-2]={9}'::int[]", [9], None),
        ("'[0:1][5:5]={{1},{2}}'::int[]", [[1], [2]], {"a": "list<list<int32>>"}),
        ("'[1:1][-2:-1]={{1,2}}'::int[]", [[1, 2]], {"a": "list<list<int32>>"}),
        ("ROW('[3:3]={1}'::int[])::pg_temp.bounded", {"a": [1]}, None),
    ],
)
def test_lower_bounds_that_a_list_does_not_keep(
    array: str, values: Any, schema: dict[str, str] | None, protocol: str, url: str
) -> None:
    setup = "CREATE TYPE pg_temp.bounded AS (a int[])"
    query = f"SELECT CASE WHEN n > 1 THEN {array} END AS a, '{{1,2}}'::int[] AS b FROM generate_series(1, 3) AS n"
    arguments: dict[str, Any] = {"options": {"protocol": protocol}, "schema": schema, "pre_execution_query": setup}
    with pytest.warns(longshore.DataWarning):
        table = longshore.read_sql(query, url, return_type="arrow", **arguments)
    assert table["a"].to_pylist() == [None, values, values]
    (text,) = warned(query, url, batch_size=1, **arguments)
    assert '"a"' in text
    assert '"string"' in text
    assert "lower bound" in text
    assert warned(query, url, **{**arguments, "schema": {"a": "string"}}) == []


@pytest.mark.parametrize("protocol", ["binary", "text"])
def test_bounds_that_every_value_of_the_type_has(protocol: str, url: str) -> None:
    query = "SELECT '1 2'::int2vector AS a, '1 2'::oidvector AS b, '{}'::int[] AS c, '[1:2]={1,2}'::int[] AS d"
    assert warned(query, url, options={"protocol": protocol}) == []


@pytest.mark.parametrize("protocol", ["binary", "text"])
def test_decimals_in_arrays_and_composites(protocol: str, url: str) -> None:
    setup = "CREATE TYPE pg_temp.priced AS (price numeric)"
    query = "SELECT ARRAY[{0}, 0.1] AS a, ROW({0})::pg_temp.priced AS b"
    arguments: dict[str, Any] = {
        "return_type": "pandas",
        "options": {"protocol": protocol},
        "pre_execution_query": setup,
    }
    first, second = warned(query.format("12345678901234567.89"), url, **arguments)
    assert ('"a"' in first, '"b"' in second) == (True, True)
    assert warned(query.format("1234567890123.45"), url, **arguments) == []


@pytest.mark.parametrize("value", ["1e-400", "1.23456e-320", "1e-30 + 1e-50"])
def test_decimals_below_what_doubles_hold(value: str, url: str) -> None:
    (text,) = warned(f"SELECT {value}::numeric AS a", url, return_type="pandas")
    assert '"a"' in text


def test_doubles_of_the_engine() -> None:
    query = """SELECT 18446744073709551615::DECIMAL(20, 0) AS a, [12345678901234567.89::DECIMAL(20, 2)] AS b,
        {'p': 0.333333333333333333::DECIMAL(38, 18)} AS c, 1.5::DECIMAL(38, 20) AS d, 7::HUGEINT AS e,
        NULL::DECIMAL(38, 0) AS f"""
    with pytest.warns(longshore.DataWarning) as caught:
        longshore.sql(query)
    texts = [str(warning.message) for warning in caught]
    assert [text.split('"')[1] for text in texts] == ["a", "b", "c"]
    assert "18446744073709551615" in texts[0]
    assert all(warning.filename == __file__ for warning in caught)
    for arguments in ({"dtype_backend": "pyarrow"}, {"return_type": "arrow"}):
        longshore.sql(query, **arguments)  # type: ignore[call-overload]
    with pytest.warns(longshore.DataWarning, match="12345678901234567.89"):
        for _ in longshore.sql("SELECT 12345678901234567.89 AS a", return_type="arrow_stream").pandas():
            pass


def test_drop_in_asyncpg_keeps_its_silence(url: str) -> None:
    import asyncio

    from longshore import asyncpg

    async def fetch() -> Any:
        connection = await asyncpg.connect(url)
        try:
            return await connection.fetchval("SELECT '[2:4]={1,2,3}'::int[]")
        finally:
            await connection.close()

    assert asyncio.run(fetch()) == [1, 2, 3]


def test_a_cursor_has_the_options_of_a_read(url: str) -> None:
    query = "SELECT 'NaN'::numeric AS n, '24:00'::time AS t"
    with longshore.connect(url) as connection:
        with connection.cursor() as cursor, pytest.raises(longshore.DataError, match="time_24"):
            cursor.execute(query).fetchall()
        options = longshore.Options(numeric_nan="null", time_24="null")
        with connection.cursor(options=options) as cursor:
            assert cursor.execute(query).fetchall() == [(None, None)]
        with pytest.raises(longshore.InterfaceError, match="unknown option"):
            connection.cursor(options={"numeric": "null"})
