"""`write_sql` into PostgreSQL: every mode, every type, and what must not change."""

import datetime as dt
import decimal
import json
import uuid
from typing import Any

import pyarrow as pa
import pytest

import longshore
from tests.servers import Endpoint

pytestmark = pytest.mark.server

UTC = dt.UTC
D = decimal.Decimal
timestamp = dt.datetime.fromisoformat


def read(url: Any, query: str, **arguments: Any) -> pa.Table:
    return longshore.read_sql(query, url, return_type="arrow", **arguments)


def rows(url: Any, query: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in read(url, query).to_pylist()]


def bare(table: pa.Table) -> pa.Table:
    """Give the table without its metadata."""
    return table.replace_schema_metadata(None).cast(pa.schema([field.remove_metadata() for field in table.schema]))


EXACT = {
    "boolean": pa.array([True, False, None]),
    "int8": pa.array([-128, 127, None], pa.int8()),
    "int16": pa.array([-(2**15), 2**15 - 1, None], pa.int16()),
    "int32": pa.array([-(2**31), 2**31 - 1, None], pa.int32()),
    "int64": pa.array([-(2**63), 2**63 - 1, None], pa.int64()),
    "uint8": pa.array([0, 255, None], pa.uint8()),
    "uint16": pa.array([0, 2**16 - 1, None], pa.uint16()),
    "uint32": pa.array([0, 2**32 - 1, None], pa.uint32()),
    "uint64": pa.array([0, 2**64 - 1, None], pa.uint64()),
    "float16": pa.array([1.5, -0.0, None], pa.float32()).cast(pa.float16()),
    "float32": pa.array([0.1, float("inf"), None], pa.float32()),
    "float64": pa.array([0.1, -1e300, None], pa.float64()),
    "decimal": pa.array([D("-12345678901234567.89"), D("0.01"), None], pa.decimal128(19, 2)),
    "wide": pa.array([D("9" * 76), D(-1), None], pa.decimal256(76, 0)),
    "negative_scale": pa.array([D("12000"), D("-1000"), None], pa.decimal128(5, -3)),
    "string": pa.array(["", 'ü"\\\n\t', None]),
    "large_string": pa.array(["a", "b" * 70_000, None], pa.large_string()),
    "binary": pa.array([b"", bytes(range(256)), None]),
    "fixed": pa.array([b"abc", b"\0\1\2", None], pa.binary(3)),
    "date32": pa.array([dt.date(1, 1, 1), dt.date(9999, 12, 31), None]),
    "date64": pa.array([dt.date(1969, 12, 31), dt.date(2026, 1, 31), None], pa.date64()),
    "time32": pa.array([dt.time(0), dt.time(23, 59, 59), None], pa.time32("s")),
    "time64": pa.array([dt.time(0, 0, 0, 1), dt.time(23, 59, 59, 999_999), None], pa.time64("us")),
    "time64ns": pa.array([1_000, 86_399_999_999_000, None], pa.time64("ns")),
    "timestamp": pa.array([timestamp("0001-01-01"), timestamp("9999-12-31 23:59:59.999999"), None], pa.timestamp("us")),
    "timestamp_s": pa.array([-1, 1, None], pa.timestamp("s")),
    "timestamp_ns": pa.array([-1_000, 1_000, None], pa.timestamp("ns")),
    "instant": pa.array([-1, 253_402_300_799_999_999, None], pa.timestamp("us", "Europe/Berlin")),
    "duration": pa.array([dt.timedelta(days=-1, microseconds=1), dt.timedelta(0), None]),
    "interval": pa.array([pa.MonthDayNano([1, -2, 3_000]), pa.MonthDayNano([0, 0, 0]), None]),
    "dictionary": pa.array(["a", "b", None]).dictionary_encode(),
    "nothing": pa.nulls(3),
    "list": pa.array([[1, None], [], None], pa.list_(pa.int64())),
    "texts": pa.array([["a,b", '"', None, "NULL", "\\"], [""], None], pa.list_(pa.string())),
    "timestamps": pa.array([[timestamp("2026-01-31 01:02:03.000004")], [None], None], pa.list_(pa.timestamp("us"))),
}

#: The type that a column reads back as, where it is not the one that it was.
READ = {
    "int8": pa.int16(), "uint8": pa.int16(), "uint16": pa.int32(), "uint32": pa.int64(), "uint64": pa.decimal128(20, 0),
    "float16": pa.float32(), "negative_scale": pa.decimal128(8, 0), "large_string": pa.string(), "fixed": pa.binary(),
    "date64": pa.date32(), "time32": pa.time64("us"), "time64ns": pa.time64("us"), "timestamp_s": pa.timestamp("us"),
    "timestamp_ns": pa.timestamp("us"), "instant": pa.timestamp("us", "UTC"), "dictionary": pa.string(),
    "nothing": pa.string(),
}  # fmt: skip


@pytest.mark.parametrize("name", EXACT)
def test_each_type_comes_back(url: str, harbour: str, name: str) -> None:
    column = EXACT[name]
    data = pa.table({"n": pa.array(range(3)), "v": column})
    assert longshore.write_sql(data, f"{harbour}.t", url) == 3
    back = bare(read(url, f"SELECT v FROM {harbour}.t ORDER BY n"))["v"].combine_chunks()
    if name == "duration":
        assert back.to_pylist() == [pa.MonthDayNano([0, 0, -86_399_999_999_000]), pa.MonthDayNano([0, 0, 0]), None]
        return
    if name == "float16":
        column = column.cast(pa.float32())
    expected = column.cast(READ.get(name, column.type)) if name != "dictionary" else column.dictionary_decode()
    assert back.equals(expected), (back, expected)


@pytest.fixture
def table(url: str, harbour: str) -> str:
    """Give a table with three rows."""
    name = f"{harbour}.boats"
    with longshore.connect(url, autocommit=True) as connection:
        connection.execute(
            f"CREATE TABLE {name} (berth int PRIMARY KEY, name varchar(5), price numeric(6,2), "
            "built date DEFAULT '2020-01-01')"
        )
        connection.execute(f"INSERT INTO {name} VALUES (1, 'Ada', 1.50), (2, 'Bob', 2), (3, NULL, NULL)")
    return name


def boats(*values: tuple[Any, ...]) -> pa.Table:
    berths, names, prices = zip(*values, strict=True)
    return pa.table(
        {"berth": list(berths), "name": pa.array(names, pa.string()), "price": pa.array(prices, pa.float64())}
    )


BEFORE = [(1, "Ada", D("1.50")), (2, "Bob", D("2.00")), (3, None, None)]


def now(url: Any, table: str) -> list[tuple[Any, ...]]:
    return rows(url, f"SELECT berth, name, price FROM {table} ORDER BY berth")


def test_replace_makes_another_table(url: str, table: str, postgres: Endpoint) -> None:
    data = pa.table({"berth": [7], "note": ["new"]})
    assert longshore.write_sql(data, table, url, if_exists="replace", key="berth") == 1
    assert rows(url, f"SELECT * FROM {table}") == [(7, "new")]
    schema = table.partition(".")[0]
    indexes = postgres.psql(f"SELECT indexname FROM pg_indexes WHERE schemaname = '{schema}'")
    assert indexes == "boats_pkey"


def test_what_depends_on_the_table_is_named(url: str, table: str, harbour: str, postgres: Endpoint) -> None:
    postgres.psql(f"CREATE VIEW {harbour}.names AS SELECT name FROM {table}")
    postgres.psql(f"CREATE TABLE {harbour}.crew (berth int REFERENCES {table})")
    with pytest.raises(longshore.ProgrammingError, match=r"view .*names") as caught:
        longshore.write_sql(boats((1, "Ada", 1.0)), table, url, if_exists="replace")
    assert "crew" in str(caught.value)
    assert caught.value.sqlstate == "2BP01"
    assert now(url, table) == BEFORE


def test_an_upsert_spares_a_table_that_has_the_name_of_its_own(url: str, table: str) -> None:
    with longshore.connect(url) as connection:
        connection.execute("CREATE TEMPORARY TABLE longshore_stage AS SELECT 7 AS n")
        with pytest.raises(longshore.ProgrammingError, match="longshore_stage"):
            longshore.write_sql(boats((1, "Ada", 1.0)), table, connection, if_exists="upsert", key="berth")
        assert rows(connection, "SELECT n FROM longshore_stage") == [(7,)]


REFUSED = {
    "text too long": (boats((4, "Dorian", 1.0)), "name", 0, "6 characters"),
    "digits after the point": (boats((4, "D", 1.0), (5, "E", 0.125)), "price", 1, "round"),
    "digits before the point": (boats((4, "D", 10_000.0)), "price", 0, "4 digits before"),
    "an integer too large": (pa.table({"berth": [4, 2**31]}), "berth", 1, "from -2147483648 to 2147483647"),
    "a zero byte": (pa.table({"berth": [4], "name": ["a\0b"]}), "name", 0, "zero byte"),
    "a decimal with more digits": (
        pa.table({"berth": [4], "price": pa.array([D("1.001")], pa.decimal128(9, 3))}), "price", 0, "round"),
    "a text that is not a number": (pa.table({"berth": ["4", "x"]}), "berth", 1, "x"),
    "nanoseconds": (
        pa.table({"berth": [4], "built": pa.array([1], pa.timestamp("ns"))}), "built", 0, "time of day"),
    "a time of day": (
        pa.table({"berth": [4], "built": [timestamp("2026-01-01 12:00")]}), "built", 0, "time of day"),
    "an instant as a date": (
        pa.table({"berth": [4], "built": pa.array([0], pa.timestamp("us", "UTC"))}), "built", 0, "does not fit date"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_fit_is_refused_with_its_place(url: str, table: str, case: str) -> None:
    data, column, row, words = REFUSED[case]
    with pytest.raises(longshore.DataError, match=words) as caught:
        longshore.write_sql(data, table, url, if_exists="append")
    assert (caught.value.column, caught.value.row) == (column, row)
    assert caught.value.native_type is not None
    assert now(url, table) == BEFORE


def test_the_last_row_undoes_all(url: str, table: str) -> None:
    data = pa.table({"berth": [*range(10, 100_010), 1]})
    with pytest.raises(longshore.IntegrityError) as caught:
        longshore.write_sql(data, table, url, if_exists="append")
    assert caught.value.sqlstate == "23505"
    assert caught.value.row == 100_000
    assert now(url, table) == BEFORE


def test_texts_go_into_any_type(url: str, harbour: str) -> None:
    number = uuid.uuid4()
    types = {
        "a": "uuid", "b": "inet", "c": "jsonb", "d": "timestamptz", "e": "int4range", "f": "interval",
        "g": "numeric(4,1)", "h": "point", "i": "bit(3)", "j": "boolean", "k": "date", "l": "int[]",
        "m": "money", "n": "date", "o": "time",
    }  # fmt: skip
    values = {
        "a": str(number), "b": "10.0.0.1/8", "c": '{"a": 1.50}', "d": "2026-01-31 12:00:00.5+02", "e": "[1,5)",
        "f": "1 mon 2 days", "g": "-12.5", "h": "(1,2)", "i": "101", "j": "yes", "k": "2026-01-31", "l": "{1,NULL}",
        "m": "1.50", "n": "12026-01-31", "o": "24:00:00",
    }  # fmt: skip
    data = pa.table({name: [value, None] for name, value in values.items()})
    assert longshore.write_sql(data, f"{harbour}.t", url, types=types) == 2
    found = rows(url, f"SELECT a::text, b::text, c::text, d, e::text, g, k, l, n::text, o::text FROM {harbour}.t")
    assert found == [
        (str(number), "10.0.0.1/8", '{"a": 1.50}', dt.datetime(2026, 1, 31, 10, 0, 0, 500_000, tzinfo=UTC), "[1,5)",
         D("-12.5"), dt.date(2026, 1, 31), [1, None], "12026-01-31", "24:00:00"),
        (None,) * 10,
    ]  # fmt: skip


def test_the_types_of_the_catalogue(url: str, harbour: str, postgres: Endpoint) -> None:
    postgres.psql(
        f"CREATE TYPE {harbour}.mood AS ENUM ('sad', 'ok'); CREATE TYPE {harbour}.place AS (row int, name text); "
        f"CREATE DOMAIN {harbour}.small AS int CHECK (VALUE < 10); "
        f"CREATE TABLE {harbour}.t (m {harbour}.mood, p {harbour}.place, s {harbour}.small, j jsonb, u uuid[])"
    )
    place = pa.struct([("name", pa.string()), ("row", pa.int64())])
    data = pa.table(
        {
            "m": pa.array(["ok", None]).dictionary_encode(),
            "p": pa.array([{"name": 'a,"b"', "row": 1}, None], place),
            "s": [9, None],
            "j": pa.array([{"name": "x", "row": 2}, None], place),
            "u": pa.array([["00000000-0000-0000-0000-000000000001"], None]),
        }
    )
    assert longshore.write_sql(data, f"{harbour}.t", url, if_exists="append") == 2
    assert rows(url, f"SELECT m::text, p::text, s, j::text, u::text FROM {harbour}.t")[0] == (
        "ok", '(1,"a,""b""")', 9, '{"row": 2, "name": "x"}', "{00000000-0000-0000-0000-000000000001}",
    )  # fmt: skip
    with pytest.raises(longshore.DataError, match="not a label of the column") as caught:
        longshore.write_sql(pa.table({"m": ["ok", "angry"]}), f"{harbour}.t", url, if_exists="append")
    assert (caught.value.row, caught.value.column) == (1, "m")
    with pytest.raises(longshore.IntegrityError, match="small"):
        longshore.write_sql(pa.table({"s": [10]}), f"{harbour}.t", url, if_exists="append")


def test_a_new_table_of_documents(url: str, harbour: str) -> None:
    inner = pa.struct([("a", pa.decimal128(5, 2)), ("b", pa.list_(pa.timestamp("s", "UTC")))])
    data = pa.table({"v": pa.array([{"a": D("1.50"), "b": [dt.datetime(2026, 1, 1, tzinfo=UTC)]}, None], inner)})
    longshore.write_sql(data, f"{harbour}.t", url)
    found = rows(url, f"SELECT v FROM {harbour}.t")
    assert json.loads(found[0][0]) == {"a": "1.50", "b": ["2026-01-01 00:00:00Z"]}
    assert found[1] == (None,)


@pytest.mark.parametrize("name", ["Boats", "bo at", 'bo"at', "bö.at", "select", "x" * 63, "bo'at\\"])
def test_names_keep_their_case_and_quotes(url: str, harbour: str, name: str, postgres: Endpoint) -> None:
    data = pa.table({name[:60]: [1], "Key": [2]})
    assert longshore.write_sql(data, (harbour, name), url, key="Key") == 1
    assert longshore.write_sql(data, (harbour, name), url, if_exists="upsert", key="Key") == 1
    assert longshore.write_sql(data, (harbour, name), url, if_exists="replace", key="Key") == 1
    assert longshore.write_sql(data, (harbour, name), url, if_exists="truncate") == 1
    quoted = name.replace('"', '""')
    assert rows(url, f'SELECT * FROM {harbour}."{quoted}"') == [(1, 2)]
    assert postgres.psql(f"SELECT count(*) FROM pg_tables WHERE schemaname = '{harbour}'") == "1"


def test_not_null_and_the_key_of_a_new_table(url: str, harbour: str, postgres: Endpoint) -> None:
    schema = pa.schema(
        [pa.field("a", pa.int32(), nullable=False), pa.field("b", pa.int32()), pa.field("c", pa.int32())]
    )
    data = pa.table([[1, 2], [3, 4], [None, None]], schema=schema)
    longshore.write_sql(data, f"{harbour}.t", url, key=["b", "a"])
    nullable = postgres.psql(
        "SELECT string_agg(is_nullable, ',' ORDER BY ordinal_position) "
        f"FROM information_schema.columns WHERE table_schema = '{harbour}'"
    )
    assert nullable == "NO,NO,YES"
    with pytest.raises(longshore.IntegrityError):
        longshore.write_sql(pa.table({"k": [1, 1]}), f"{harbour}.u", url, key="k")
    assert postgres.psql(f"SELECT count(*) FROM pg_tables WHERE schemaname = '{harbour}'") == "1"


def test_a_connection_that_has_a_transaction_open(url: str, table: str) -> None:
    with longshore.connect(url) as connection:
        connection.execute(f"DELETE FROM {table}")
        assert longshore.write_sql(boats((9, "Zoe", 1.0)), table, connection, if_exists="append") == 1
        with pytest.raises(longshore.DataError):
            longshore.write_sql(boats((8, "Too long", 1.0)), table, connection, if_exists="append")
        # What came before the failed write is still there.
        assert now(connection, table) == [(9, "Zoe", D("1.00"))]
        assert connection.in_transaction
        assert now(url, table) == BEFORE
        connection.rollback()
        assert now(url, table) == BEFORE
        for mode in ("replace", "truncate", "upsert"):
            key = "berth" if mode == "upsert" else None
            longshore.write_sql(boats((7, "Gil", 1.0)), table, connection, if_exists=mode, key=key)
            connection.rollback()
        assert now(url, table) == BEFORE


def test_autocommit_commits(url: str, table: str) -> None:
    with longshore.connect(url, autocommit=True) as connection:
        longshore.write_sql(boats((9, "Zoe", 1.0)), table, connection, if_exists="append")
        assert len(now(url, table)) == 4
        with pytest.raises(longshore.DataError):
            longshore.write_sql(boats((8, "Too long", 1.0)), table, connection, if_exists="append")
        assert not connection.in_transaction
        assert len(now(connection, table)) == 4


def test_generated_and_identity_columns(url: str, harbour: str, postgres: Endpoint) -> None:
    name = f"{harbour}.t"
    postgres.psql(
        f"CREATE TABLE {name} (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, a int, "
        "b int GENERATED ALWAYS AS (a * 2) STORED)"
    )
    longshore.write_sql(pa.table({"a": [1]}), name, url, if_exists="append")
    longshore.write_sql(pa.table({"id": [5], "a": [2]}), name, url, if_exists="append")
    longshore.write_sql(pa.table({"id": [5], "a": [3]}), name, url, if_exists="upsert", key="id")
    assert rows(url, f"SELECT * FROM {name} ORDER BY id") == [(1, 1, 2), (5, 3, 6)]
    with pytest.raises(longshore.ProgrammingError, match=r'generates "b" itself'):
        longshore.write_sql(pa.table({"b": [1]}), name, url, if_exists="append")


def test_a_trigger_that_leaves_rows_out_is_heard(url: str, table: str, harbour: str, postgres: Endpoint) -> None:
    postgres.psql(
        f"CREATE FUNCTION {harbour}.skip() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; "
        f"CREATE TRIGGER skip BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION {harbour}.skip()"
    )
    with pytest.raises(longshore.DataError, match="of 1 rows the table took 0"):
        longshore.write_sql(boats((9, "Zoe", 1.0)), table, url, if_exists="append")


def test_no_rows_make_a_table(url: str, harbour: str) -> None:
    assert longshore.write_sql(boats((1, "Ada", 1.0)).slice(0, 0), f"{harbour}.t", url) == 0
    assert read(url, f"SELECT * FROM {harbour}.t").num_rows == 0


def test_a_row_that_the_server_cannot_store_is_not_counted_wrongly(url: str, harbour: str) -> None:
    data = pa.table({f"c{n}": pa.array([n, n, n], pa.int64()) for n in range(1600)})
    with pytest.raises(longshore.OperationalError, match="row is too big") as caught:
        longshore.write_sql(data, f"{harbour}.wide", url)
    assert caught.value.row is None
    assert "row 3" not in str(caught.value)
