"""Whatever the objects: Arrow has the type and the values that a slow reading in Python finds."""

import datetime as dt
import json
import uuid
import zoneinfo
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import longshore
from tests.objects.given import arrow, extension, plain, values_of

pytestmark = [pytest.mark.packages, pytest.mark.pythons]

SETTINGS = settings(max_examples=3 * settings().max_examples, deadline=None)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
KEYS = st.sampled_from(["a", "b", "c", "A", "é"])
INTEGERS = st.integers(-(2**63), 2**63 - 1)
#: The values of JSON.
PLAIN = st.none() | st.booleans() | INTEGERS | st.floats(allow_nan=False, allow_infinity=False) | TEXTS
#: A fold says nothing without a zone.
TIMESTAMPS = st.datetimes().map(lambda timestamp: timestamp.replace(fold=0))
SCALARS = PLAIN | st.dates() | TIMESTAMPS | st.uuids() | st.binary(max_size=3)

LEAVES: dict[type, Any] = {
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
    dt.date: pa.date32(),
    dt.datetime: pa.timestamp("us"),
    uuid.UUID: pa.binary(16),
    bytes: pa.binary(),
}
JSON = pa.large_string()


def nested(leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.recursive(
        leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=8
    )


class NoTypeError(Exception):
    """There is no exact form."""


def kind(values: list[Any], *, is_row: bool = False) -> Any:
    """Find the type of all values."""
    values = [value for value in values if value is not None]
    classes = {type(value) for value in values}
    if not classes:
        return pa.null()
    if classes == {int, float} and all(float(value) == value for value in values):
        return pa.float64()
    if len(classes) > 1 or (classes == {dict} and not is_struct(values)):
        if is_row and not classes & {dict, list}:
            raise NoTypeError
        return as_json(values)
    if classes == {list}:
        return pa.list_(kind([item for value in values for item in value]))
    if classes == {dict}:
        keys = dict.fromkeys(key for value in values for key in value)
        return pa.struct([(key, kind([value[key] for value in values if key in value])) for key in keys])
    return LEAVES[classes.pop()]


def is_struct(values: list[dict[str, Any]]) -> bool:
    keys = {key for value in values for key in value}
    return bool(keys) and keys.isdisjoint({"a"} if "A" in keys else {})


def as_json(values: list[Any]) -> Any:
    try:
        json.dumps(values, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise NoTypeError from error
    return JSON


def value_of(value: Any, found: Any) -> Any:
    """Give the value as Arrow should have it; that of JSON as itself, under its mark."""
    if value is None or pa.types.is_null(found):
        return None
    if found == JSON:
        return ("json", value)
    if pa.types.is_list(found):
        return [value_of(item, found.value_type) for item in value]
    if pa.types.is_struct(found):
        return {field.name: value_of(value.get(field.name), field.type) for field in found}
    if isinstance(value, uuid.UUID):
        return value.bytes
    return float(value) if found == pa.float64() else value


def parsed(value: Any, found: Any) -> Any:
    """Give Arrow's value with its JSON parsed, under its mark."""
    if value is None:
        return None
    if found == JSON:
        return ("json", json.loads(value))
    if pa.types.is_list(found):
        return [parsed(item, found.value_type) for item in value]
    if pa.types.is_struct(found):
        return {field.name: parsed(value[field.name], field.type) for field in found}
    return value


def check(values: list[Any]) -> None:
    try:
        expected = kind(values, is_row=True)
    except NoTypeError:
        with pytest.raises(longshore.DataError, match=r"row \d+: "):
            arrow(*values, nan_is_null=False)
        return
    field, array = arrow(*values, nan_is_null=False)
    array.validate(full=True)
    assert plain(field.type) == expected
    assert (extension(field) == "arrow.json") == (expected == JSON)
    found = [parsed(value, expected) for value in values_of(array)]
    assert repr(found) == repr([value_of(value, expected) for value in values])


@SETTINGS
@given(st.lists(SCALARS, max_size=6))
def test_mixed_scalars(values: list[Any]) -> None:
    check(values)


@SETTINGS
@given(st.sampled_from([st.booleans(), INTEGERS, st.floats(), TEXTS, st.dates(), st.uuids(), st.binary()]), st.data())
def test_scalars_of_one_type(of_type: st.SearchStrategy[Any], data: st.DataObject) -> None:
    check(data.draw(st.lists(st.none() | of_type, max_size=20)))


@SETTINGS
@given(st.lists(nested(PLAIN), max_size=6))
def test_ragged_values_that_json_has(values: list[Any]) -> None:
    check(values)


@SETTINGS
@given(st.lists(nested(SCALARS), max_size=6))
def test_ragged_values(values: list[Any]) -> None:
    check(values)


@SETTINGS
@given(
    st.lists(
        st.none() | st.dictionaries(KEYS, st.integers(-5, 5) | st.none() | st.lists(st.floats(-5, 5), max_size=2)),
        max_size=8,
    )
)
def test_ragged_dicts(values: list[Any]) -> None:
    check(values)


@SETTINGS
@given(
    st.recursive(
        st.none() | st.just(1),
        lambda inner: st.fixed_dictionaries({}, optional={"x": inner, "y": inner}) | st.lists(inner, max_size=2),
        max_leaves=20,
    )
)
def test_one_value_of_any_shape(value: Any) -> None:
    check([value])


class Day(dt.date):
    """A date that is asked for its parts."""


class Inherited(dt.datetime):
    """A datetime that is asked for its parts."""


ZONES = [dt.UTC, dt.timezone(dt.timedelta(hours=-23, seconds=-59, microseconds=-7)), zoneinfo.ZoneInfo("Europe/Berlin")]
EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001  of timestamps without a zone
MICROSECOND = dt.timedelta(microseconds=1)


def stored(values: list[Any]) -> Any:
    """Give the integers of an array of timestamps, days or times."""
    array = arrow(*values)[1]
    return array.view(pa.int32() if array.type == pa.date32() else pa.int64()).to_pylist()


@SETTINGS
@given(st.lists(st.dates(), min_size=1), st.lists(st.datetimes(), min_size=1), st.lists(st.times(), min_size=1))
def test_days_timestamps_and_times(days: list[dt.date], timestamps: list[dt.datetime], times: list[dt.time]) -> None:
    expected = [day.toordinal() - EPOCH.toordinal() for day in days]
    assert stored(days) == expected
    assert stored([days[0], *(Day(day.year, day.month, day.day) for day in days)]) == [expected[0], *expected]
    expected = [(timestamp - EPOCH) // MICROSECOND for timestamp in timestamps]
    assert stored(timestamps) == expected
    assert stored([timestamps[0], *map(inherited, timestamps)]) == [expected[0], *expected]
    midnight = dt.time()
    spans = [dt.datetime.combine(EPOCH, time) - dt.datetime.combine(EPOCH, midnight) for time in times]
    assert stored(times) == [span // MICROSECOND for span in spans]


@SETTINGS
@given(st.lists(st.datetimes(timezones=st.sampled_from(ZONES)), min_size=1))
def test_instants(timestamps: list[dt.datetime]) -> None:
    expected = [(timestamp - EPOCH.replace(tzinfo=dt.UTC)) // MICROSECOND for timestamp in timestamps]
    assert stored(timestamps) == expected
    assert stored([*map(inherited, timestamps), timestamps[0]]) == [*expected, expected[0]]


def inherited(timestamp: dt.datetime) -> Inherited:
    """Give the same timestamp as an object of a class that inherits."""
    return Inherited.combine(timestamp.date(), timestamp.timetz()).replace(fold=timestamp.fold)
