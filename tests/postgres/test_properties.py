"""Whatever the value: what arrives says what the server's own text of the same value says."""

import datetime as dt
import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import longshore
from tests.conformance import plain
from tests.servers import Endpoint

# One query a case, of one session for all of them.
SETTINGS = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
PROTOCOLS = pytest.mark.parametrize("protocol", ["binary", "text"])

NUMERICS = st.builds(
    lambda sign, digits, exponent: f"{sign}{digits}e{exponent}",
    st.sampled_from(["", "-"]),
    st.integers(0, 10**45),
    st.integers(-30, 15),
)
FLOATS = st.floats(width=64)
WORDS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)
#: All days, and all microseconds, that PostgreSQL has.
DAYS = st.integers(-2_440_588, 2_145_042_905)
MICROSECONDS = st.integers(-210_866_803_200_000_000, 2**63 - 1)
INTERVALS = st.tuples(
    st.integers(-(2**31) + 1, 2**31 - 2),
    st.integers(-(2**31) + 1, 2**31 - 2),
    st.integers(-(2**63) // 1000 + 1, 2**63 // 1000 - 1),
)


@pytest.fixture(scope="module")
def session(postgres: Endpoint) -> Iterator[longshore.Connection]:
    """Give a session of the shared server."""
    with longshore.connect(postgres.url(), autocommit=True) as connection:
        yield connection


FIRST, LAST = dt.datetime(1, 1, 2), dt.datetime(9999, 12, 30)  # noqa: DTZ001  naive they are


def both(
    type_: str,
    literals: list[str | None],
    session: longshore.Connection,
    protocol: str,
    returning: str = "v::text",
    **options: Any,
) -> pa.Table:
    """Read values next to the server's own text of them."""
    cast = f"unnest($1::text[]) WITH ORDINALITY AS u (w, n), LATERAL (SELECT w::{type_} AS v) AS x"
    query = f"SELECT v, {returning} AS t FROM {cast} ORDER BY n"
    return longshore.read_sql(
        query, session, return_type="arrow", params=[literals], options={"protocol": protocol, **options}
    )


def texts(table: pa.Table) -> list[Any]:
    result: list[Any] = table["t"].to_pylist()
    return result


@PROTOCOLS
@SETTINGS
@given(st.lists(st.one_of(st.none(), NUMERICS), max_size=20))
def test_numeric(protocol: str, session: longshore.Connection, literals: list[str | None]) -> None:
    values = [None if literal is None else Decimal(literal) for literal in literals]
    wide = [value for value in values if value is not None and value != 0]
    scale = max((-_exponent(value) for value in wide), default=0)
    whole = max((value.adjusted() + 1 for value in wide), default=0)
    if max(scale, 0) + max(whole, 0) > 76:
        with pytest.raises(longshore.DataError, match="76 are the limit"):
            both("numeric", literals, session, protocol)
        return
    table = both("numeric", literals, session, protocol)
    assert [None if value is None else Decimal(str(value)) for value in table["v"].to_pylist()] == values
    assert [None if text is None else Decimal(text) for text in texts(table)] == values
    assert table.schema.field("v").type.scale == max(scale, 0)


def _exponent(value: Decimal) -> int:
    """Give the place of the last digit that is not zero."""
    sign, digits, exponent = value.as_tuple()
    del sign
    text = "".join(map(str, digits))
    return int(exponent) + len(text) - len(text.rstrip("0"))


@PROTOCOLS
@SETTINGS
@given(st.lists(NUMERICS, min_size=1, max_size=20))
@pytest.mark.filterwarnings("ignore:numeric values:longshore.DataWarning")
def test_numeric_as_the_nearest_double(protocol: str, session: longshore.Connection, literals: list[str]) -> None:
    query = "SELECT v::numeric AS v FROM unnest($1::text[]) WITH ORDINALITY AS u (v, n) ORDER BY n"
    frame = longshore.read_sql(query, session, params=[literals], options={"protocol": protocol})
    assert frame["v"].tolist() == [float(literal) for literal in literals]


@PROTOCOLS
@SETTINGS
@given(st.lists(st.one_of(st.none(), st.integers(-99_999_999_999, 99_999_999_999)), max_size=20))
def test_declared_numeric(protocol: str, session: longshore.Connection, cents: list[int | None]) -> None:
    literals = [None if number is None else str(Decimal(number).scaleb(-2)) for number in cents]
    table = both("numeric(11, 2)", literals, session, protocol)
    assert [None if value is None else str(value) for value in table["v"].to_pylist()] == texts(table)


def day(days: int) -> str:
    """Write a day as the server does: NumPy knows all years, and counts one before Christ as 0."""
    year, rest = str(np.datetime64(days, "D")).rsplit("-", 2)[0], str(np.datetime64(days, "D"))[-5:]
    number = int(year)
    return f"{number:04}-{rest}" if number > 0 else f"{1 - number:04}-{rest} BC"


def timestamp(microseconds: int) -> str:
    days, time = divmod(microseconds, 86_400_000_000)
    seconds, fraction = divmod(time, 1_000_000)
    date, _, era = day(days).partition(" ")
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return date + " " + clock + (f".{fraction:06}".rstrip("0") if fraction else "") + (" BC" if era else "")


@PROTOCOLS
@SETTINGS
@given(st.lists(st.one_of(st.none(), DAYS), max_size=20))
def test_date(protocol: str, session: longshore.Connection, days: list[int | None]) -> None:
    table = both("date", [None if number is None else day(number) for number in days], session, protocol)
    assert plain.values(table["v"]) == days
    assert texts(table) == [None if number is None else day(number) for number in days]


@PROTOCOLS
@SETTINGS
@given(st.lists(st.one_of(st.none(), MICROSECONDS), max_size=20))
def test_timestamp(protocol: str, session: longshore.Connection, timestamps: list[int | None]) -> None:
    table = both(
        "timestamp", [None if number is None else timestamp(number) for number in timestamps], session, protocol
    )
    assert plain.values(table["v"]) == timestamps
    assert texts(table) == [None if number is None else timestamp(number) for number in timestamps]


@PROTOCOLS
@pytest.mark.parametrize("zone", ["Europe/Amsterdam", "Asia/Kathmandu", "America/St_Johns", "Pacific/Apia", "UTC"])
@SETTINGS
@given(timestamps=st.lists(MICROSECONDS, min_size=1, max_size=20))
def test_timestamptz_in_any_session(protocol: str, zone: str, url: str, timestamps: list[int]) -> None:
    query = "SELECT v::timestamptz AS v FROM unnest($1::text[]) WITH ORDINALITY AS u (v, n) ORDER BY n"
    # The era comes last: 0044-03-15 12:00:00+00 BC.
    literals = [
        "+00 ".join(timestamp(number).rsplit(" ", 1)) if timestamp(number).endswith("BC") else timestamp(number) + "+00"
        for number in timestamps
    ]
    before = f"SET TimeZone = '{zone}'"
    table = longshore.read_sql(
        query, url, return_type="arrow", params=[literals], pre_execution_query=before, options={"protocol": protocol}
    )
    assert plain.values(table["v"]) == timestamps


@PROTOCOLS
@SETTINGS
@given(st.lists(st.integers(0, 86_399_999_999), max_size=20))
def test_time(protocol: str, session: longshore.Connection, times: list[int]) -> None:
    table = both("time", [timestamp(number)[11:] for number in times], session, protocol)
    assert plain.values(table["v"]) == times
    assert texts(table) == [timestamp(number)[11:] for number in times]


@PROTOCOLS
@SETTINGS
@given(st.lists(INTERVALS, max_size=20))
def test_interval(protocol: str, session: longshore.Connection, intervals: list[tuple[int, int, int]]) -> None:
    literals: list[str | None] = [
        f"{months} mons {days} days {microseconds} microseconds" for months, days, microseconds in intervals
    ]
    # The server tells the three parts: whole months, days, and seconds with six decimals.
    parts = (
        "(extract(year FROM v) * 12 + extract(month FROM v))::int8::text || ' ' || extract(day FROM v)::int8::text "
        "|| ' ' || (extract(hour FROM v)::numeric * 3600000000 + extract(minute FROM v)::numeric * 60000000 "
        "+ extract(microseconds FROM v)::numeric)::int8::text"
    )
    table = both("interval", literals, session, protocol, parts)
    assert plain.values(table["v"]) == [(months, days, 1000 * microseconds) for months, days, microseconds in intervals]
    assert texts(table) == [f"{months} {days} {microseconds}" for months, days, microseconds in intervals]


def number(text: str) -> str:
    return repr(float(text))


@PROTOCOLS
@SETTINGS
@given(st.lists(st.one_of(st.none(), FLOATS), max_size=20))
def test_float_arrays(protocol: str, session: longshore.Connection, values: list[float | None]) -> None:
    query = "SELECT v, v::text[] AS t, v::float4[] AS f, v::float4[]::text[] AS g FROM (SELECT $1::float8[] AS v) AS x"
    limit = 3.4e38
    small = [
        None if value is None or not math.isfinite(value) or not 1e-30 < abs(value) < limit else value
        for value in values
    ]
    for given_ in (values, small) if values != small else (small,):
        wanted = query if given_ is small else query.replace(", v::float4[] AS f, v::float4[]::text[] AS g", "")
        table = longshore.read_sql(
            wanted, session, return_type="arrow", params=[given_], options={"protocol": protocol}
        )
        assert plain.values(table["v"])[0] == [None if value is None else repr(value) for value in given_]
        for column, text in (("v", "t"), ("f", "g"))[: 2 if given_ is small else 1]:
            shown = table[text].to_pylist()[0]
            as_float = float if column == "v" else np.float32
            assert plain.values(table[column])[0] == [
                None if cell is None else repr(float(as_float(cell))) for cell in shown
            ]


@PROTOCOLS
@SETTINGS
@given(st.lists(st.lists(st.one_of(st.none(), WORDS), max_size=6), max_size=6))
def test_text_arrays(protocol: str, session: longshore.Connection, rows: list[list[str | None]]) -> None:
    arrays = "SELECT ARRAY(SELECT jsonb_array_elements_text(w)) AS v FROM jsonb_array_elements($1::jsonb) AS j (w)"
    query = f"SELECT v FROM ({arrays}) AS x"
    params = [[[cell for cell in row if cell is not None] for row in rows]]
    # jsonb has no zero byte, nor have we.
    table = longshore.read_sql(query, session, return_type="arrow", params=params, options={"protocol": protocol})
    assert table["v"].to_pylist() == params[0]
    for row in rows:
        got = longshore.read_sql(
            "SELECT $1::text[] AS v", session, return_type="arrow", params=[row], options={"protocol": protocol}
        )
        assert got["v"].to_pylist() == [row]


@PROTOCOLS
@SETTINGS
@given(
    st.lists(
        st.tuples(
            st.one_of(st.none(), st.integers(-(2**31), 2**31 - 1)),
            st.one_of(st.none(), WORDS),
            st.one_of(st.none(), DAYS),
            FLOATS,
        ),
        min_size=1,
        max_size=10,
    )
)
def test_composites(protocol: str, url: str, rows: list[tuple[int | None, str | None, int | None, float]]) -> None:
    columns = [list(column) for column in zip(*rows, strict=True)]
    columns[2] = [None if days is None else day(days) for days in columns[2]]
    query = (
        "SELECT ROW(a, b, c::date, d)::pg_temp.r AS v, a, b, c::date AS c, d "
        "FROM unnest($1::int[], $2::text[], $3::text[], $4::float8[]) AS u (a, b, c, d)"
    )
    for address in ("", ", e inet"):
        # With an inet, the whole composite comes as text.
        before = f"CREATE TYPE pg_temp.r AS (a int, b text, c date, d float8{address})"
        asked = query.replace("d)::", "d, NULL)::") if address else query
        table = longshore.read_sql(
            asked, url, return_type="arrow", params=columns, pre_execution_query=before, options={"protocol": protocol}
        )
        alone = [plain.values(table[name]) for name in "abcd"]
        assert [row[:4] for row in plain.values(table["v"])] == [list(row) for row in zip(*alone, strict=True)]
        assert alone[1] == columns[1]


@PROTOCOLS
@SETTINGS
@given(st.lists(st.one_of(st.none(), st.binary(max_size=40)), max_size=20))
def test_bytea(protocol: str, session: longshore.Connection, values: list[bytes | None]) -> None:
    query = "SELECT v, encode(v, 'hex') AS t FROM unnest($1::bytea[]) AS u (v)"
    for output in ("hex", "escape"):
        table = longshore.read_sql(
            query,
            session,
            return_type="arrow",
            params=[values],
            pre_execution_query=f"SET bytea_output = {output}",
            options={"protocol": protocol},
        )
        assert table["v"].to_pylist() == values
        assert texts(table) == [None if value is None else value.hex() for value in values]


@SETTINGS
@given(
    value=st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), WORDS),
        lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(WORDS, inner, max_size=4)),
        max_leaves=10,
    )
)
def test_json(session: longshore.Connection, value: Any) -> None:
    params = [{"value": value}]
    frame = longshore.read_sql(
        "SELECT $1::jsonb AS b, $1::json AS t", session, params=params, options={"json": "object"}
    )
    assert frame["b"].tolist() == params
    assert frame["t"].tolist() == params


@SETTINGS
@given(
    st.datetimes(min_value=FIRST, max_value=LAST),
    st.timedeltas(dt.timedelta(hours=-15), dt.timedelta(hours=15)),
)
def test_timestamps_as_params(session: longshore.Connection, naive: dt.datetime, offset: dt.timedelta) -> None:
    aware = naive.replace(tzinfo=dt.timezone(dt.timedelta(seconds=round(offset.total_seconds()))))
    table = longshore.read_sql(
        "SELECT $1::timestamptz AS a, $2::timestamp AS b", session, return_type="arrow", params=[aware, naive]
    )
    assert plain.values(table["a"]) == plain.expected([aware], table.schema.field("a").type)
    assert table["b"].to_pylist() == [naive]
