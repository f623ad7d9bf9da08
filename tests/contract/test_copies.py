"""`copy`: what leaves one database arrives in another.

Each database is source and target of a ring. Those that bring every type that any source has for a column go into each
target: two sources with the same Arrow type are the same to it.
"""

import datetime as dt
import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

import longshore
from tests.contract.conftest import Database, wait
from tests.quirks import COLUMNS

pytestmark = [pytest.mark.usefixtures("leaves_nothing"), pytest.mark.costly]


def since_midnight(value: Any) -> dt.timedelta:
    """Return a time of day as a span, whatever form a source has of it."""
    match value:
        case dt.time():
            return dt.datetime.combine(dt.date.min, value) - dt.datetime.combine(dt.date.min, dt.time())
        case str():
            hours, minutes, seconds = value.split(":")
            return dt.timedelta(hours=int(hours), minutes=int(minutes), seconds=float(seconds))
        case pa.MonthDayNano():
            return dt.timedelta(microseconds=value.nanoseconds // 1000)
        case _:
            span: dt.timedelta = value
            return span


def utc(value: dt.datetime) -> dt.datetime:
    """Return a timestamp with time zone, whether a source tells the zone or not."""
    return value.replace(tzinfo=dt.UTC) if value.tzinfo is None else value.astimezone(dt.UTC)


#: The part of a column's values that is the same in all sources.
SAME: dict[str, Callable[[Any], Any]] = {
    **{name: Decimal for name in COLUMNS if "int" in name or name in {"bool", "decimal"}},
    "time": since_midnight,
    "instant": utc,
    "uuid": lambda value: UUID(bytes=value) if isinstance(value, bytes) else UUID(str(value)),
    "json": json.loads,
}


@pytest.fixture
def held(database: Database, table: str) -> str:
    """Give a table of all columns that the source has, with a row of NULLs and two of values."""
    quirks = database.quirks
    names = ", ".join(f"{quirks.name(name)} {kind.native}" for name, kind in quirks.types.items())
    rows = [[None] * len(quirks.types), *zip(*(cells(database, name) for name in quirks.types), strict=True)]
    kinds = [kind.native for kind in quirks.types.values()]
    cells_of = (map(quirks.typed, map(quirks.literal, row), kinds) for row in rows)
    values = [", ".join(row) for row in cells_of]
    database.execute(
        f"CREATE TABLE {table} (n int, {names})",
        *(f"INSERT INTO {table} VALUES ({n}, {row})" for n, row in enumerate(values)),
    )
    return table


def cells(database: Database, name: str) -> list[Any]:
    """Return the values of a column as the source has them."""
    return [*map(database.quirks.types[name].cell, COLUMNS[name].held)]


def is_refused(database: Database, target: Database, name: str) -> bool:
    """Tell whether the target cannot hold the column; what has another type in the source may fit."""
    is_of_its_type = database.quirks.types[name].arrow == COLUMNS[name].arrow
    return name in target.quirks.cannot and name not in target.quirks.holds_otherwise and is_of_its_type


def test_each_type_arrives(database: Database, target: Database, held: str) -> None:
    quirks = database.quirks
    left_out = {name for name in quirks.types if is_text_in(database, target, name)}
    if "a duration" in target.quirks.cannot:
        left_out |= {name for name, kind in quirks.types.items() if pa.types.is_duration(kind.arrow)}
    names = [name for name in quirks.types if name not in left_out and not is_refused(database, target, name)]
    query = f"SELECT n, {', '.join(map(quirks.name, names))} FROM {held}"
    try:
        assert longshore.copy(f"{query} ORDER BY n", database.url, held, target.url) == 3
        found = longshore.read_sql(f"SELECT * FROM {held} ORDER BY n", target.url, return_type="arrow")
        for name in names:
            same = SAME.get(name, lambda value: value)
            none, *values = found[name].to_pylist()
            assert none is None, name
            assert [*map(same, values)] == [*map(same, cells(database, name))], name
        # Without rows, the new table is the same.
        assert longshore.copy(f"{query} WHERE n < 0", database.url, held, target.url, if_exists="replace") == 0
        assert longshore.schema(f"SELECT * FROM {held}", target.url).equals(found.schema)
    finally:
        target.execute(f"DROP TABLE IF EXISTS {held}")
    wait(lambda: not target.is_in_use())


def test_what_the_target_cannot_hold(database: Database, target: Database, held: str) -> None:
    before = target.tables()
    for name in filter(lambda name: is_refused(database, target, name), database.quirks.types):
        with target.can(name):
            longshore.copy(f"SELECT {database.quirks.name(name)} FROM {held}", database.url, f"of_{held}", target.url)
    for name in filter(lambda name: pa.types.is_duration(database.quirks.types[name].arrow), database.quirks.types):
        with target.can("a duration"):
            longshore.copy(f"SELECT {database.quirks.name(name)} FROM {held}", database.url, f"of_{held}", target.url)
            target.execute(f"DROP TABLE of_{held}")
    for name in filter(lambda name: is_text_in(database, target, name), ["binary"]):
        longshore.copy(f"SELECT {database.quirks.name(name)} AS v FROM {held}", database.url, f"of_{held}", target.url)
        with target.can(f"{name} in a new table"):
            longshore.read_sql(f"SELECT v FROM of_{held}", target.url)
        target.execute(f"DROP TABLE of_{held}")
    assert target.tables() == before


def is_text_in(database: Database, target: Database, name: str) -> bool:
    """Tell whether a column of bytes is one of texts in a new table of the target."""
    return "binary in a new table" in target.quirks.cannot and pa.types.is_binary(database.quirks.types[name].arrow)


@pytest.mark.parametrize("mode", ["append", "replace", "truncate", "upsert"])
def test_into_a_table_that_is_there(database: Database, target: Database, table: str, mode: Any) -> None:
    columns = f"{target.column('id', 'int64', target.quirks.primary_key)}, {target.column('k', 'int64')}"
    target.execute(f"CREATE TABLE {table} ({columns})", f"INSERT INTO {table} VALUES (1, -1), (9, -9)")
    place = database.quirks.places(1)
    low = 2 if mode == "append" else 1
    query = f"{database.quirks.series.format(rows=3)} SELECT i AS id, i * 10 AS k FROM series WHERE i >= {place}"
    try:
        key = "id" if mode == "upsert" else None
        if mode == "upsert" and "an upsert" in target.quirks.cannot:
            with target.can("an upsert"):
                longshore.copy(query, database.url, table, target.url, if_exists=mode, key=key, params=[low])
            return
        rows = longshore.copy(query, database.url, table, target.url, if_exists=mode, key=key, params=[low])
        assert rows == 4 - low
        old = {"append": [(1, -1), (9, -9)], "upsert": [(9, -9)]}.get(mode, [])
        assert target.rows(table) == sorted([*old, *((i, i * 10) for i in range(low, 4))])
    finally:
        target.execute(f"DROP TABLE {table}")
    wait(lambda: not target.is_in_use())
