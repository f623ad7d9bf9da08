"""`write_sql`: every mode, in every session, and nothing left behind of a write that fails."""

import contextlib
import itertools
import re
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

import longshore
from tests.contract.conftest import Database
from tests.quirks import COLUMNS

pytestmark = pytest.mark.usefixtures("leaves_nothing")

Rows = list[tuple[Any, ...]]
MODES = ("fail", "append", "replace", "truncate", "upsert")
#: Modes that write into a table that must be there, and those that make one.
INTO, MAKING = ("append", "truncate", "upsert"), ("fail", "replace")


def boats(*rows: tuple[int | None, str | None]) -> pa.Table:
    """Give rows of an id and a name."""
    schema = pa.schema({"id": pa.int64(), "name": pa.string()})
    return pa.table([[each for each, _ in rows], [each for _, each in rows]], schema=schema)


def make(database: Database, table: str, more: str = "") -> None:
    """Make a table with two boats, and a column that a write may leave out."""
    default = "" if database.quirks.default is None else f"DEFAULT {database.quirks.default}"
    columns = (
        database.column("id", "int64", database.quirks.primary_key),
        f"name varchar(20){more}",
        database.column("berth", "int32", default),
    )
    database.execute(
        f"CREATE TABLE {table} ({', '.join(columns)})", f"INSERT INTO {table} (id, name) VALUES (1, 'Ada'), (2, 'Bob')"
    )


def kept(database: Database, *more: tuple[int, str | None]) -> Rows:
    """Give the rows that `make` has made, and others, with the column that is left out."""
    return [(*row, database.quirks.default) for row in ((1, "Ada"), (2, "Bob"), *more)]


def write(database: Database, data: Any, table: str, conn: Any, mode: Any, **arguments: Any) -> int:
    """Write by the key `id`, where the mode has one."""
    return longshore.write_sql(data, table, conn, if_exists=mode, **{"key": key_of(database, mode, "id"), **arguments})


def key_of(database: Database, mode: str, column: str) -> str | None:
    """Give the column as the key, where the mode and the source have one."""
    has_key = mode == "upsert" or (mode in MAKING and "a key" not in database.quirks.cannot)
    return column if has_key else None


def an(mode: str) -> str:
    """Give what a source may be unable to do of a mode."""
    return f"an {mode}" if mode in {"append", "upsert"} else f"a {mode}"


def test_append(database: Database, table: str) -> None:
    make(database, table)
    # By the columns' names, in any order and case; a column that is left out has its default.
    data = boats((3, "Cid"), (4, None)).select(["name", "id"])
    assert write(database, data, table, database.url, "append") == 2
    assert database.rows(table) == kept(database, (3, "Cid"), (4, None))
    data = pa.table({"ID": [9], "Berth": pa.array([None], pa.int32())})
    if database.source in {"postgresql", "served_postgresql", "oracle"}:
        # Names are as they are written, not as an unquoted one would be read.
        with pytest.raises(longshore.ProgrammingError, match=r"""has no column ("ID", "Berth"|'ID', 'Berth')"""):
            write(database, data, table, database.url, "append")
        return
    assert write(database, data, table, database.url, "append") == 1
    assert database.rows(f"SELECT * FROM {table} WHERE id = 9", database.control) == [(9, None, None)]


def test_truncate_keeps_the_table(database: Database, table: str) -> None:
    make(database, table)
    assert write(database, boats((2, "Zoe")), table, database.url, "truncate") == 1
    assert database.rows(table) == [(2, "Zoe", database.quirks.default)]


def test_replace_makes_another_table(database: Database, table: str) -> None:
    make(database, table)
    data = pa.table({"id": [7, 8], "note": ["new", None]})
    for _ in range(2):
        assert write(database, data, table, database.url, "replace") == 2
        assert database.rows(table) == [(7, "new"), (8, None)]
    # The key is the new table's.
    with database.refuses_a_key():
        write(database, data, table, database.url, "append")
    # Of any other columns, and without rows.
    assert write(database, pa.table({"only": [1.5]}).slice(1), table, database.url, "replace", key=None) == 0
    assert database.rows(table) == []


@pytest.mark.parametrize("mode", MAKING)
def test_a_new_table(database: Database, table: str, mode: str) -> None:
    schema = pa.schema({"id": pa.int64(), "price": pa.string(), "need": pa.int32()})
    schema = schema.set(2, schema.field(2).with_nullable(nullable=False))
    data = pa.table({"id": [1, 2], "price": ["1.50", None], "need": [7, 8]}, schema=schema)
    price = database.quirks.types.get("decimal") or database.quirks.types["text"]
    types = {"price": price.native}
    assert write(database, data, table, database.url, mode, types=types) == 2
    text = "1.5000000000" if price.arrow != pa.string() else "1.50"
    assert [(each, cell and str(cell)) for each, cell, _ in database.rows(table)] == [(1, text), (2, None)]
    found = longshore.schema(f"SELECT price FROM {table}", database.control)
    assert found.field(0).type == price.arrow
    with pytest.raises(longshore.Error):
        database.execute(f"INSERT INTO {table} (id, need) VALUES (3, NULL)")


def test_fail_needs_a_free_name(database: Database, table: str) -> None:
    make(database, table)
    with pytest.raises(longshore.ProgrammingError, match=r"there already|already exists") as caught:
        write(database, boats((1, "Ada")), table, database.url, "fail")
    assert "append" in (caught.value.hint or "")
    assert caught.value.sqlstate in {"42P07", "42S01", None}
    assert database.rows(table) == kept(database)


def test_upsert_replaces_and_adds(database: Database, table: str) -> None:
    make(database, table)
    data = boats((2, "Bea"), (5, "Eve"), (5, "Fay"), (1, None))
    with database.can(an("upsert")):
        # The last of equal keys is the one that stays.
        assert write(database, data, table, database.url, "upsert") == 4
        assert database.rows(table) == [(1, None, 5), (2, "Bea", 5), (5, "Fay", 5)]
        keys = boats((1, ""), (8, "")).select(["id"])
        assert write(database, keys, table, database.url, "upsert") == 2
        assert database.rows(table) == [(1, None, 5), (2, "Bea", 5), (5, "Fay", 5), (8, None, 5)]


def test_upsert_by_several_columns(database: Database, table: str) -> None:
    unique = database.quirks.unique and f", {database.quirks.unique} (n, word)"
    database.execute(
        f"CREATE TABLE {table} (word varchar(9) NOT NULL, n int NOT NULL, v int{unique})",
        f"INSERT INTO {table} VALUES ('x', 1, 0), ('y', 1, 0)",
    )
    data = pa.table({"v": [1, 2, 3], "word": ["x", "z", "x"], "n": [1, 1, 1]})
    with database.can(an("upsert")):
        # In any order.
        assert write(database, data, table, database.url, "upsert", key=["word", "n"]) == 3
        assert database.rows(table) == [("x", 1, 3), ("y", 1, 0), ("z", 1, 2)]
        for key in ("word", ["n", "word", "v"]) if database.quirks.enforces_keys else ():
            with pytest.raises(longshore.ProgrammingError, match="unique index"):
                write(database, data, table, database.url, "upsert", key=key)


def test_a_key_cannot_be_null(database: Database, table: str) -> None:
    make(database, table)
    for mode in ("upsert", "replace"):
        with database.can(an(mode), "a key"):
            with pytest.raises(longshore.DataError) as caught:
                write(database, boats((3, "Cid"), (None, "Dan")), table, database.url, mode, key="id")
            assert (caught.value.column, caught.value.row) == ("id", 1)
    assert database.rows(table) == kept(database)


def test_a_missing_table_is_said(database: Database, table: str) -> None:
    missing = f"there is no table .*({table}|{table.upper()})"
    for mode in INTO:
        with database.can(an(mode)), pytest.raises(longshore.ProgrammingError, match=missing):
            write(database, boats((1, "Ada")), table, database.url, mode)


def test_columns_that_the_table_has_not_are_named(database: Database, table: str) -> None:
    make(database, table)
    data = pa.table({"speed": [2], "id": [1], "draught": ["x"]})
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["id", "id"])
    for mode in INTO:
        with database.can(an(mode)), pytest.raises(longshore.ProgrammingError, match=r"no columns? .*speed.*draught"):
            write(database, data, table, database.url, mode)
        with pytest.raises(longshore.Error, match=r"two columns|twice"):
            write(database, twice, table, database.url, mode)
        assert database.rows(table) == kept(database)


def test_a_column_that_must_have_a_value_is_named(database: Database, table: str) -> None:
    database.execute(f"CREATE TABLE {table} (id int, need int NOT NULL)")
    without = [pa.table({"id": [1]})] if database.quirks.asks_for_values else []
    for data in (*without, pa.table({"id": [1], "need": pa.nulls(1, pa.int32())})):
        with pytest.raises(longshore.Error, match=r"need|NEED"):
            write(database, data, table, database.url, "append")
    assert database.rows(table) == []


def test_generated_columns_are_the_tables_own(database: Database, table: str) -> None:
    with database.can("a generated column"):
        database.execute(
            f"CREATE TABLE {table} (id int, twice int GENERATED ALWAYS AS (id * 2) {database.quirks.generated})"
        )
        assert write(database, pa.table({"id": [4]}), table, database.url, "append") == 1
        assert database.rows(table) == [(4, 8)]
        with pytest.raises(longshore.ProgrammingError, match=r"generates .*twice"):
            write(database, pa.table({"id": [4], "twice": [8]}), table, database.url, "append")


@pytest.mark.parametrize("mode", MODES)
def test_any_name(database: Database, table: str, mode: str) -> None:
    name = f'{table} Größe "select" `x` \' ; --'
    column = "order \"by\" '?' `$1` :a \\ €"
    quoted, key, own = database.quirks.name(name), database.quirks.name(column), key_of(database, mode, column)
    # A name that is more than a word is quoted, as SQL's standard does it.
    standard = '"' + name.replace('"', '""') + '"'
    with database.can("any name", an(mode)):
        if mode != "fail" and "any name" not in database.quirks.cannot:
            declared = database.column(column, "int64", database.quirks.primary_key)
            database.execute(f"CREATE TABLE {quoted} ({declared}, n int)")
        try:
            assert write(database, pa.table({column: [1], "n": [2]}), standard, database.url, mode, key=own) == 1
            assert database.rows(f"SELECT {key}, n FROM {quoted}", database.control) == [(1, 2)]
        finally:
            database.execute(f"DROP TABLE IF EXISTS {quoted}")


SHAPES: dict[str, pa.Array] = {
    "dictionary": pa.array(["a", None, "b"]).dictionary_encode(),
    "runs": pa.RunEndEncodedArray.from_arrays([2, 3], pa.array(["a", None])),
    "large": pa.array(["a", None, "b" * 70_000], pa.large_string()),
    "view": pa.array(["a", None, "more than twelve bytes"], pa.string_view()),
    "slice": pa.array(["no", "a", None, "b", "no"]).slice(1, 3),
    "chunks": pa.chunked_array([["a"], [], [None, "b"]]),
    "nulls": pa.nulls(3),
}


def test_texts_in_any_arrow_layout(database: Database, table: str) -> None:
    limit = "a long text in a new table"
    apart = ["chunks", *(["large"] if limit in database.quirks.cannot else [])]
    for shapes in ([shape for shape in SHAPES if shape not in apart], *([shape] for shape in apart)):
        data = pa.table({"n": range(3), **{f"c_{shape}": SHAPES[shape] for shape in shapes}})
        database.execute(f"DROP TABLE IF EXISTS {table}")
        with database.can(limit) if shapes == ["large"] else contextlib.nullcontext():
            assert write(database, data, table, database.url, "fail", key=None) == 3
            expected = zip(range(3), *(SHAPES[shape].to_pylist() for shape in shapes), strict=True)
            assert database.rows(table) == [*expected]


def column_of(name: str) -> pa.Array:
    """Give NULL and the two values of a shared column in its Arrow type."""
    column = COLUMNS[name]
    if name == "uuid":
        return pa.array([None, *(value.bytes for value in column.held)], pa.binary(16)).cast(column.arrow)
    array = pa.array([None, *column.held], getattr(column.arrow, "storage_type", column.arrow))
    is_extension = isinstance(column.arrow, pa.BaseExtensionType)
    return pa.ExtensionArray.from_storage(column.arrow, array) if is_extension else array


@pytest.mark.parametrize("mode", ["fail", "append"])
def test_each_type_comes_back(database: Database, table: str, mode: str) -> None:
    quirks = database.quirks
    place = "in a new table" if mode == "fail" else "in a table"
    whats = {name: [name, f"{name} in a frame", f"{name} {place}"] for name in COLUMNS}
    refusals = {name: next((each for each in whats[name] if each in quirks.cannot), "") for name in COLUMNS}
    is_written = {name: name in quirks.holds_otherwise or not refusals[name] for name in COLUMNS}
    together = [name for name in COLUMNS if is_written[name] and (mode == "fail" or name in quirks.types)]
    for names in (together, *([name] for name in COLUMNS if name not in together)):
        kinds = {name: quirks.types.get(name) for name in names}
        has_table = mode == "append" and None not in kinds.values()
        database.execute(f"DROP TABLE IF EXISTS {table}")
        if has_table:
            natives = ", ".join(f"c_{name} {kind.native}" for name, kind in kinds.items() if kind)
            database.execute(f"CREATE TABLE {table} (n int, {natives})")
        data = pa.table({"n": range(3), **{f"c_{name}": column_of(name) for name in names}})
        with contextlib.nullcontext() if is_written[names[0]] else database.can(refusals[names[0]]):
            write(database, data, table, database.url, mode if has_table else "fail", key=None)
            found = longshore.read_sql(f"SELECT * FROM {table} ORDER BY n", database.url, return_type="arrow")
            for name, kind, column in zip(names, kinds.values(), found.columns[1:], strict=True):
                assert kind is not None or name in quirks.holds_otherwise
                held = COLUMNS[name].held
                assert column.to_pylist() == [None, *(map(kind.cell, held) if kind else held)], name


@pytest.mark.costly
@pytest.mark.parametrize("mode", MODES)
def test_many_batches_are_one_write(database: Database, table: str, mode: str) -> None:
    if mode != "fail":
        make(database, table)
    counter = itertools.count(10)
    sizes = [0, 1, 5, 3000, 1, 0, 2000]
    batches = [boats(*((next(counter), f"boat {number}") for number in range(size))) for size in sizes]
    with database.can(an(mode)):
        assert write(database, iter(batches), table, database.url, mode) == sum(sizes)
        wanted = [(row["id"], row["name"]) for row in pa.concat_tables(batches).to_pylist()]
        found = database.rows(f"SELECT id, name FROM {table} WHERE id >= 10 ORDER BY id", database.control)
        assert found == wanted


@pytest.mark.parametrize("mode", MODES)
def test_no_rows(database: Database, table: str, mode: str) -> None:
    if mode != "fail":
        make(database, table)
    with database.can(an(mode)):
        assert write(database, boats(), table, database.url, mode) == 0
        found = database.rows(f"SELECT id, name FROM {table} ORDER BY id", database.control)
        assert found == ([row[:2] for row in kept(database)] if mode in {"append", "upsert"} else [])


def fails(data: pa.Table) -> Iterator[pa.Table]:
    """Give rows, and then an error."""
    yield data
    message = "the source is gone"
    raise RuntimeError(message)


MANY = boats(*((number, "x") for number in range(10, 5_010)))
DIGITS = MANY.set_column(0, "id", MANY["id"].cast(pa.string()))
#: The row that is written after 5000 good ones, and the error.
LATE: dict[str, tuple[Callable[[], Any], type[Exception]]] = {
    "an iterator that raises": (lambda: fails(MANY), RuntimeError),
    "other columns": (lambda: iter([MANY, pa.table({"other": [1]})]), longshore.Error),
    "a key that is NULL": (lambda: iter([MANY, boats((6, "a"), (None, "b"))]), longshore.DatabaseError),
    "a value that does not fit": (
        lambda: iter([DIGITS, pa.table({"id": ["6", "x"], "name": ["a", "b"]})]),
        longshore.DataError,
    ),
    "a key that is there": (lambda: iter([MANY, boats((5_010, "a"), (10, "b"))]), longshore.IntegrityError),
}


@pytest.mark.parametrize("session", ["url", "connection"])
@pytest.mark.parametrize("late", LATE)
@pytest.mark.parametrize("mode", MODES)
def test_a_failure_on_the_way_undoes_all(database: Database, table: str, mode: str, late: str, session: str) -> None:
    data, error = LATE[late]
    if (refusal := database.quirks.cannot.get(an(mode))) is not None:
        error = refusal.error
    types = {"id": database.quirks.types["int64"].native} if mode in MAKING else None
    if mode != "fail":
        make(database, table)
    takes_key = {
        "a key that is there": mode == "upsert" or not database.quirks.enforces_keys,
        "a key that is NULL": "a key" in database.quirks.cannot
        or (mode in {"append", "truncate"} and not database.quirks.primary_key),
    }
    if not refusal and takes_key.get(late):
        assert write(database, data(), table, database.url, mode) == 5_002
        assert len(database.rows(table)) == {"append": 5_004, "upsert": 5_003}.get(mode, 5_002)
        return
    before = database.tables()
    if session == "url":
        with pytest.raises(error) as caught:
            write(database, data(), table, database.url, mode, types=types)
    else:
        with longshore.connect(database.url, autocommit=True) as connection:
            with pytest.raises(error) as caught:
                write(database, data(), table, connection, mode, types=types)
            assert database.rows("SELECT 7 AS n", connection) == [(7,)]
    if refusal:
        assert re.search(refusal.reason, str(caught.value))
    elif late == "a key that is NULL" or (late == "a value that does not fit" and database.quirks.tells_failed_casts):
        # Counted over all batches.
        told: Any = caught.value
        assert (told.column, told.row) == ("id", 5_001)
    assert database.tables() == before
    assert mode == "fail" or database.rows(table) == kept(database)


@pytest.mark.parametrize("mode", MODES)
def test_an_open_transaction_is_joined(database: Database, table: str, mode: str) -> None:
    if mode != "fail":
        make(database, table)
    before = database.tables()
    with longshore.connect(database.url) as connection:
        assert connection.execute("SELECT 1") is not None
        with database.can("a new table in a transaction" if mode in MAKING else "a transaction", an(mode)):
            assert write(database, boats((3, "Cid")), table, connection, mode) == 1
            inside = database.rows(f"SELECT id, name FROM {table} ORDER BY id", connection)
            with pytest.raises(longshore.Error):
                write(database, pa.table({"id": ["4", "x"]}), table, connection, "append")
            # What failed has undone itself alone.
            assert database.rows(f"SELECT id, name FROM {table} ORDER BY id", connection) == inside
            assert inside == [*([(1, "Ada"), (2, "Bob")] if mode in {"append", "upsert"} else []), (3, "Cid")]
        connection.rollback()
    assert database.tables() == before
    assert mode == "fail" or database.rows(table) == kept(database)


def test_a_transaction_commits_what_was_written(database: Database, table: str) -> None:
    make(database, table)
    with database.can("a write in a transaction"), longshore.connect(database.url) as connection:
        assert write(database, boats((3, "Cid")), table, connection, "append") == 1
        connection.execute(f"DELETE FROM {table} WHERE id = 1")
        assert connection.in_transaction
        assert database.rows(table) == kept(database)
        connection.commit()
        assert database.rows(table) == [(2, "Bob", 5), (3, "Cid", 5)]


def test_a_pool_has_its_session_back(database: Database, table: str) -> None:
    make(database, table)
    bad: Any = (boats((1, "Ada")), longshore.IntegrityError)
    if not database.quirks.enforces_keys:
        bad = (pa.table({"id": ["x"]}), longshore.DataError)
    with longshore.Pool(database.url, size=1) as pool:
        for _ in range(3):
            with pytest.raises(bad[1]):
                write(database, bad[0], table, pool, "append")
            assert (pool.in_use, pool.idle) == (0, 1)
        assert write(database, boats((3, "Cid")), table, pool, "append") == 1
    assert database.rows(table) == kept(database, (3, "Cid"))


@pytest.mark.parametrize("mode", MODES)
def test_several_connections_write_the_same(database: Database, table: str, mode: str) -> None:
    data = boats(*((number, f"boat {number % 7}") for number in range(10, 1_010)))
    if mode != "fail":
        make(database, table)
    with database.can("writes over several connections"):
        assert write(database, data, table, database.url, mode, parallel=3, batch_size=50) == 1_000
        found = database.rows(f"SELECT id, name FROM {table} WHERE id >= 10 ORDER BY id", database.control)
        assert found == [(row["id"], row["name"]) for row in data.to_pylist()]


@pytest.mark.parametrize("mode", MODES)
def test_what_several_connections_fail_at_undoes_all(database: Database, table: str, mode: str) -> None:
    bad = pa.concat_tables([MANY, boats((None, "a")), MANY])
    if mode != "fail":
        make(database, table)
    before = database.tables()
    with database.can("writes over several connections"), pytest.raises(longshore.DatabaseError):
        write(database, bad, table, database.url, mode, parallel=3, batch_size=500)
    assert database.tables() == before
    assert mode == "fail" or database.rows(table) == kept(database)
