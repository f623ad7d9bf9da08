"""Values of every type in every frame: dtypes by the schema and never by the rows, NULLs and empty results included."""

import datetime as dt
import json
import warnings
from collections.abc import Iterator
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import longshore
from tests.contract.conftest import Database
from tests.frames.cases import TEXT, values
from tests.quirks import COLUMNS, JSON, Column

#: Which rows are read: two values, a NULL.
NULLS = {"first": (2, 0, 1), "last": (0, 1, 2), "all": (2,), "none": (0, 1), "empty": ()}
#: The dtypes of an Arrow type in pandas, in its nullable backend, in NumPy and in polars.
DTYPES = {
    "bool": ("boolean", "boolean", "bool", "Boolean"),
    "float": ("float32", "Float32", "float32", "Float32"),
    "double": ("float64", "Float64", "float64", "Float64"),
    "string": (TEXT, "string", "object", "String"),
    "extension<arrow.json>": (TEXT, "string", "object", "String"),
    "extension<arrow.uuid>": ("object", "object", "object", "String"),
    "binary": ("object", "object", "object", "Binary"),
    "large_binary": ("object", "object", "object", "Binary"),
    "fixed_size_binary[2]": ("object", "object", "object", "Binary"),
    "date32[day]": ("datetime64[s]", "datetime64[s]", "datetime64[D]", "Date"),
    "time64[us]": ("object", "object", "object", "Time"),
    "duration[us]": ("timedelta64[us]", "timedelta64[us]", "timedelta64[us]", "Duration(time_unit='us')"),
    "timestamp[us]": ("datetime64[us]", "datetime64[us]", "datetime64[us]", "Datetime(time_unit='us', time_zone=None)"),
    "timestamp[us, tz=UTC]": (
        "datetime64[us, UTC]",
        "datetime64[us, UTC]",
        "datetime64[us]",
        "Datetime(time_unit='us', time_zone='UTC')",
    ),
    "decimal128(20, 0)": ("float64", "Float64", "object", "Decimal(precision=20, scale=0)"),
    "decimal128(38, 10)": ("float64", "Float64", "object", "Decimal(precision=38, scale=10)"),
    "list<item: int32>": ("object", "object", "object", "List(Int32)"),
    "list<item: date32[day]>": ("object", "object", "object", "List(Date)"),
    "list<item: string>": ("object", "object", "object", "List(String)"),
    **{
        name.lower(): (name, name, name.lower(), name)
        for name in (f"{sign}Int{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64))
    },
}


@pytest.fixture(scope="module")
def columns(database: Database) -> dict[str, tuple[str, Column]]:
    """Give what the table `held` has: column by column the native type, and what is read of it."""
    quirks = database.quirks
    shared = {
        name: (kind.native, Column(kind.arrow, tuple(kind.cell(value) for value in COLUMNS[name].held)))
        for name, kind in quirks.types.items()
    }
    return shared | {f"c{at}": column for at, column in enumerate(quirks.more.items())}


@pytest.fixture(scope="module")
def held(database: Database, columns: dict[str, tuple[str, Column]]) -> Iterator[str]:
    """Give the table `held`: two rows of values, and one of NULLs."""
    quirks = database.quirks
    rows = [*zip(*(column.held for _, column in columns.values()), strict=True), (None,) * len(columns)]
    names = ", ".join(f"{quirks.name(name)} {native}" for name, (native, _) in columns.items())
    natives = [native for native, _ in columns.values()]
    literals = [
        ", ".join(quirks.typed(quirks.literal(cell), native) for cell, native in zip(row, natives, strict=True))
        for row in rows
    ]
    database.execute(
        f"CREATE TABLE held (n int, {names})",
        *(f"INSERT INTO held VALUES ({n}, {row})" for n, row in enumerate(literals)),
    )
    yield "held"
    database.execute("DROP TABLE held")


def test_every_column_is_held_or_has_a_reason(database: Database) -> None:
    assert {*COLUMNS} - {*database.quirks.types} == {*COLUMNS} & {*database.quirks.cannot}


@pytest.fixture(params=NULLS)
def nulls(request: pytest.FixtureRequest) -> tuple[int, ...]:
    """Give the rows that a test reads."""
    return NULLS[request.param]


class Reading:
    """Reads of the table `held`, and what must arrive."""

    def __init__(self, database: Database, columns: dict[str, tuple[str, Column]], rows: tuple[int, ...]) -> None:
        """Read these rows, in this order."""
        self.database, self.rows = database, rows
        order = f"ORDER BY CASE n WHEN 2 THEN {-1 if rows[:1] == (2,) else 3} ELSE n END"
        names = ", ".join(map(database.quirks.name, columns))
        wanted = ", ".join(map(str, rows)) or "-1"
        self.query = f"SELECT {names} FROM held WHERE n IN ({wanted}) {order}"
        self.columns = {name: column for name, (_, column) in columns.items()}

    def read(self, **arguments: Any) -> Any:
        """Read them; a stream keeps its session."""
        is_stream = arguments.get("return_type") == "arrow_stream"
        conn: Any = self.database.url if is_stream else self.database.control
        with warnings.catch_warnings():
            # Of decimals that doubles round: `test_rounded_decimals.py`.
            warnings.simplefilter("ignore", longshore.DataWarning)
            return longshore.read_sql(self.query, conn, **arguments)

    def check(self, dtypes: dict[str, str], values: dict[str, list[Any]], *, frame: int | None, cell: Any) -> None:
        """Compare all columns at once."""
        wanted = {
            name: str(column.arrow) if frame is None else DTYPES[str(column.arrow)][frame]
            for name, column in self.columns.items()
        }
        assert dtypes == wanted
        assert values == {
            name: [None if row == 2 else cell(column.held[row]) for row in self.rows]
            for name, column in self.columns.items()
        }


@pytest.fixture
def reading(database: Database, columns: dict[str, tuple[str, Column]], held: str, nulls: tuple[int, ...]) -> Reading:
    """Give what reads some rows of the table `held`."""
    assert held == "held"
    return Reading(database, columns, nulls)


def as_pandas(value: Any) -> Any:
    """Return what pandas has of a value: dates are timestamps, decimals doubles."""
    match value:
        case dt.datetime():
            return value
        case dt.date():
            return dt.datetime.combine(value, dt.time())
        case Decimal():
            return float(value)
        case _:
            return value


def split(frame: pd.DataFrame) -> tuple[dict[str, str], dict[str, list[Any]]]:
    return {n: str(d) for n, d in frame.dtypes.items()}, {n: values(frame[n]) for n in frame}  # type: ignore[misc]


def test_pandas(reading: Reading) -> None:
    dtypes, values = split(reading.read())
    reading.check(dtypes, values, frame=0, cell=as_pandas)


@pytest.mark.costly
def test_the_nullable_backend_of_pandas(reading: Reading) -> None:
    dtypes, values = split(reading.read(dtype_backend="numpy_nullable"))
    reading.check(dtypes, values, frame=1, cell=as_pandas)


@pytest.mark.costly
def test_the_arrow_backend_of_pandas(reading: Reading) -> None:
    frame = reading.read(dtype_backend="pyarrow")
    # JSON is text there.
    documents = {name for name, column in reading.columns.items() if column.arrow == JSON}
    dtypes = {name: str(frame[name].dtype.pyarrow_dtype) for name in frame}
    assert {dtypes[name] for name in documents} in (set(), {"string"}, {"large_string"})
    dtypes |= dict.fromkeys(documents, "extension<arrow.json>")
    values = {name: frame[name].array.__arrow_array__().to_pylist() for name in frame}
    reading.check(dtypes, values, frame=None, cell=lambda value: value)


@pytest.mark.costly
def test_the_numpy_backend_of_pandas(reading: Reading) -> None:
    if 2 in reading.rows:
        with pytest.raises(longshore.DataError, match="NULL") as caught:
            reading.read(dtype_backend="numpy")
        assert (caught.value.row, caught.value.column in reading.columns) == (reading.rows.index(2), True)
        return
    dtypes, values = split(reading.read(dtype_backend="numpy"))
    zone = {name for name, column in reading.columns.items() if str(column.arrow) == "timestamp[us, tz=UTC]"}
    days = {name for name, column in reading.columns.items() if str(column.arrow) == "date32[day]"}
    floats = {name for name, column in reading.columns.items() if pa.types.is_decimal(column.arrow)}
    for names, kind in ((zone, "datetime64[us, UTC]"), (days, "datetime64[s]"), (floats, "float64")):
        assert {dtypes[name] for name in names} == ({kind} if names else set())
        dtypes |= {name: DTYPES[str(reading.columns[name].arrow)][2] for name in names}
    reading.check(dtypes, values, frame=2, cell=as_pandas)


@pytest.mark.costly
def test_numpy(reading: Reading) -> None:
    columns = reading.read(return_type="numpy")
    assert all(isinstance(array, np.ma.MaskedArray) for array in columns.values())
    values = {name: array.tolist() for name, array in columns.items()}
    masks = {name: np.ma.getmaskarray(array).tolist() for name, array in columns.items()}
    for name, column in reading.columns.items():
        # Oracle's empty text is NULL.
        assert masks[name] == [row == 2 or column.held[row] is None for row in reading.rows]
    naive = {name: str(array.dtype) for name, array in columns.items()}
    reading.check(
        naive, values, frame=2, cell=lambda it: it.replace(tzinfo=None) if isinstance(it, dt.datetime) else it
    )


def test_arrow(reading: Reading) -> None:
    table = reading.read(return_type="arrow")
    assert table.num_rows == len(reading.rows)
    dtypes = {field.name: str(field.type) for field in table.schema}
    reading.check(dtypes, table.to_pydict(), frame=None, cell=lambda value: value)


@pytest.mark.costly
def test_polars(reading: Reading) -> None:
    frame = reading.read(return_type="polars")
    dtypes = {name: str(dtype) for name, dtype in frame.schema.items()}
    reading.check(
        dtypes, frame.to_dict(as_series=False), frame=3, cell=lambda it: str(it) if isinstance(it, UUID) else it
    )


@pytest.mark.costly
def test_streams_of_pandas(reading: Reading) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", longshore.DataWarning)
        frames = [split(frame) for frame in reading.read(return_type="arrow_stream", batch_size=1).pandas()]
    # One frame a row, and one without rows of an empty result.
    assert len(frames) == max(1, len(reading.rows))
    dtypes = frames[0][0]
    assert all(each == dtypes for each, _ in frames)
    values = {name: [value for _, pieces in frames for value in pieces[name]] for name in dtypes}
    reading.check(dtypes, values, frame=0, cell=as_pandas)


@pytest.mark.costly
def test_json_as_objects(database: Database, columns: dict[str, tuple[str, Column]], reading: Reading) -> None:
    for name, (_, column) in columns.items():
        if column.arrow == JSON:
            one = Reading(database, {name: (name, column)}, reading.rows)
            stream = one.read(return_type="arrow_stream", batch_size=2, options={"json": "object"})
            for frame in (one.read(options={"json": "object"}), pd.concat(stream.pandas())):
                assert str(frame[name].dtype) == "object"
                assert [*frame[name]] == [None if row == 2 else json.loads(column.held[row]) for row in reading.rows]


@pytest.mark.parametrize("nulls", ["none", "empty"])
def test_what_cannot_be_null_is_numpys_in_pandas(database: Database, table: str, nulls: str) -> None:
    kind = database.quirks.types["int32"]
    name = database.quirks.name("a")
    column = database.column("a", "int32", "NOT NULL")
    database.execute(f"CREATE TABLE {table} ({column})", f"INSERT INTO {table} VALUES (1), (2)")
    where = f"WHERE t.{name} > 5" if nulls == "empty" else ""
    plain = longshore.read_sql(f"SELECT {name} FROM {table} t {where}", database.control)
    assert str(plain["a"].dtype) == (
        str(kind.arrow) if database.quirks.tells_not_null else str(kind.arrow).capitalize()
    )
    # An outer join brings NULLs to it, whether there are any or not.
    joined = longshore.read_sql(
        f"SELECT o.{name} AS {name} FROM {table} t LEFT JOIN {table} o ON o.{name} = t.{name} + 1 {where}",
        database.control,
    )
    assert str(joined["a"].dtype) == str(kind.arrow).capitalize()


def test_names_that_repeat(database: Database) -> None:
    query = "SELECT 1 AS a, 2 AS a, 3 AS a_1, 4 AS a"
    with database.can("a name twice in one SELECT"):
        check_names(database, query)


def check_names(database: Database, query: str) -> None:
    assert longshore.read_sql(query, database.control, return_type="arrow").column_names == ["a", "a", "a_1", "a"]
    assert list(longshore.read_sql(query, database.control).columns) == ["a", "a", "a_1", "a"]
    for return_type in ("numpy", "polars"):
        frame: Any = longshore.read_sql(query, database.control, return_type=return_type)
        assert {name: int(frame[name][0]) for name in ("a", "a_2", "a_1", "a_3")} == {
            "a": 1,
            "a_2": 2,
            "a_1": 3,
            "a_3": 4,
        }


def test_the_text_protocol(database: Database, columns: dict[str, tuple[str, Column]], held: str) -> None:
    assert held == "held"
    refused = [name for name in columns if f"{name} as text" in database.quirks.cannot]
    together = [name for name in columns if name not in refused]
    for names in (together, *([name] for name in refused)):
        reading = Reading(database, {name: columns[name] for name in names}, NULLS["last"])
        with database.can(f"{names[0]} as text"):
            table = reading.read(return_type="arrow", options={"protocol": "text"})
            assert table.equals(reading.read(return_type="arrow"))
