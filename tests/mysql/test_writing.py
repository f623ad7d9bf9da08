"""Rows into tables: every type, every mode, and what is refused."""

import datetime as dt
import decimal
import itertools
import uuid
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import longshore
from tests.mysql.reading import column, table, value
from tests.quirks import UUID
from tests.servers import MySQLEndpoint

Run = Callable[[str], None]
UTC = dt.UTC
D = decimal.Decimal


@pytest.fixture(params=["files", "statements"])
def way(request: pytest.FixtureRequest, server: MySQLEndpoint) -> str:
    """Give a URL by which rows go as files, and one by which they go as statements."""
    return server.url() if request.param == "files" else server.url(compression="zlib")


@pytest.fixture
def statements(server: MySQLEndpoint) -> str:
    """Give the URL by which rows go as statements alone; by files they go in `tests/contract/test_writing.py`."""
    return server.url(compression="zlib")


@pytest.fixture(scope="module", autouse=True)
def loading(server: MySQLEndpoint) -> None:
    assert server.sql("SELECT @@local_infile") == [(1,)]


def one(values: list[Any], kind: pa.DataType | None = None, name: str = "c") -> pa.Table:
    return pa.table({name: pa.array(values, kind)})


#: Arrow type, values, the server's own type.
KINDS: dict[str, tuple[pa.DataType, list[Any], str]] = {
    "bool": (pa.bool_(), [True, False], "tinyint(1)"),
    "int8": (pa.int8(), [-128, 127], "tinyint"),
    "int16": (pa.int16(), [-(2**15), 2**15 - 1], "smallint"),
    "int32": (pa.int32(), [-(2**31), 2**31 - 1], "int"),
    "int64": (pa.int64(), [-(2**63), 2**63 - 1, 0], "bigint"),
    "uint8": (pa.uint8(), [0, 255], "tinyint unsigned"),
    "uint16": (pa.uint16(), [2**16 - 1], "smallint unsigned"),
    "uint32": (pa.uint32(), [2**32 - 1], "int unsigned"),
    "uint64": (pa.uint64(), [2**64 - 1], "bigint unsigned"),
    "float": (pa.float32(), [0.10000000149011612, -1.5, 3.4028234663852886e38, 1.401298464324817e-45], "float"),
    "double": (pa.float64(), [0.1, -0.0, 1.7976931348623157e308, 2.2250738585072014e-308, 1 / 3], "double"),
    "decimal": (pa.decimal128(15, 2), [D("-1234567890123.45"), D("0.05")], "decimal(15,2)"),
    "decimal38": (pa.decimal128(38, 10), [D("9" * 28 + "." + "9" * 10)], "decimal(38,10)"),
    "decimal65": (pa.decimal256(65, 30), [D("-" + "9" * 35 + "." + "9" * 30)], "decimal(65,30)"),
    "text": (
        pa.string(),
        ["", "it's", 'tab\tline\nback\\slash\0nul"\r\x1a', "é€𝄞", "\\N", "NULL", " a ", "x" * 70_000],
        "longtext",
    ),
    "large": (pa.large_string(), ["a"], "longtext"),
    "view": (pa.string_view(), ["a"], "longtext"),
    "bytes": (pa.binary(), [b"", bytes(range(256)), b"\\N", b"\xff" * 70_000], "longblob"),
    "fixed": (pa.binary(3), [b"\0\1\2", b"a  ", b"a\0\0"], "binary(3)"),
    "date": (pa.date32(), [dt.date(1, 1, 1), dt.date(2024, 2, 29), dt.date(9999, 12, 31)], "date"),
    "timestamp": (
        pa.timestamp("us"),
        [dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999)],  # noqa: DTZ001
        "datetime(6)",
    ),
    "instant": (
        pa.timestamp("us", "UTC"),
        [dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), dt.datetime(2038, 1, 19, 3, 14, 7, 999999, tzinfo=UTC)],
        "timestamp(6)",
    ),
    "duration": (
        pa.duration("us"),
        [dt.timedelta(hours=-838, minutes=-59, seconds=-59), dt.timedelta(0, 1, 500)],
        "time(6)",
    ),
}


def without_width(words: str) -> str:
    """Old servers show how wide they would print an integer."""
    name, _, rest = words.partition("(")
    is_integer = name in {"smallint", "int", "bigint"} or (name == "tinyint" and "unsigned" in rest) or rest[:2] == "4)"
    return name + rest.partition(")")[2] if is_integer else words


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_table_has_the_datas_types_and_values(
    kind: str,
    way: str,
    server: MySQLEndpoint,
    tables: Run,
    is_mariadb: bool,  # noqa: FBT001
) -> None:
    tables("DROP TABLE IF EXISTS w")
    data_type, values, native = KINDS[kind]
    data = one([*values, None, *values], data_type)
    assert longshore.write_sql(data, "w", way) == len(data)
    (shown,) = server.sql("SHOW COLUMNS FROM w")
    assert without_width(shown[1]) == native
    options = {"tinyint1": "bool"} if kind == "bool" else {}
    got = table("SELECT c FROM w", way, options=options)
    wanted = {"large": pa.string(), "view": pa.string(), "fixed": pa.binary()}.get(kind, data_type)
    assert got.schema.field("c").type == wanted
    assert got.column("c").combine_chunks().equals(data.column("c").cast(wanted).combine_chunks())
    if kind == "double":
        # MariaDB has one zero, whatever it is told.
        assert str(got.column("c")[1].as_py()) == ("0.0" if is_mariadb else "-0.0")


def test_times_dictionaries_and_runs_are_their_values(way: str, tables: Run) -> None:
    tables("DROP TABLE IF EXISTS w")
    data = pa.table(
        {
            "t": pa.array([dt.time(23, 59, 59, 999999), None, dt.time(0)], pa.time64("us")),
            "s": pa.array([1, 2, 3], pa.time32("s")),
            "d": pa.array(["b", None, "b"]).dictionary_encode(),
            "r": pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array([7, None])),
            "n": pa.nulls(3),
        }
    )
    assert longshore.write_sql(data, "w", way) == 3
    got = table("SELECT * FROM w", way)
    assert got["t"].to_pylist() == [dt.timedelta(0, 86399, 999999), None, dt.timedelta(0)]
    assert got["s"].to_pylist() == [dt.timedelta(seconds=seconds) for seconds in (1, 2, 3)]
    assert got["d"].to_pylist() == ["b", None, "b"]
    assert got["r"].to_pylist() == [7, 7, None]
    assert got["n"].to_pylist() == [None] * 3


def test_uuids_and_json(way: str, tables: Run, is_mariadb: bool) -> None:  # noqa: FBT001
    tables("DROP TABLE IF EXISTS w")
    first = uuid.UUID("12345678-1234-5678-9abc-def012345678")
    ids = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([first.bytes, None], pa.binary(16)))
    text = pa.ExtensionArray.from_storage(pa.json_(pa.string()), pa.array(['{"é": "a\\"b"}', None]))
    longshore.write_sql(pa.table({"u": ids, "j": text}), "w", way)
    got = table("SELECT * FROM w", way)
    assert got["u"].to_pylist() == ([first, None] if is_mariadb else [first.bytes, None])
    assert got["j"].to_pylist() == ['{"é": "a\\"b"}', None]
    assert got.schema.field("j").type == pa.json_(pa.string()) or got.schema.field("j").metadata


#: The table's type, what is written, and what is read.
FITS: list[tuple[str, pa.DataType, Any, Any]] = [
    ("decimal(18,2)", pa.int64(), 12, D("12.00")),
    ("decimal(5,2)", pa.float64(), 0.1, D("0.10")),
    ("decimal(5,2)", pa.decimal128(20, 5), D("1.50000"), D("1.50")),
    ("decimal(5,2)", pa.string(), "1.5", D("1.50")),
    ("int", pa.bool_(), True, 1),
    ("int", pa.float64(), 3.0, 3),
    ("int", pa.decimal128(5, 2), D("3.00"), 3),
    ("int", pa.string(), "-7", -7),
    ("tinyint(1)", pa.bool_(), True, 1),
    ("bigint unsigned", pa.string(), "18446744073709551615", 2**64 - 1),
    ("bit(5)", pa.int64(), 31, 31),
    ("bit(64)", pa.uint64(), 2**64 - 1, 2**64 - 1),
    ("year", pa.int16(), 2024, 2024),
    ("year", pa.int16(), 0, 0),
    ("double", pa.int64(), 2**53, float(2**53)),
    ("double", pa.string(), "0.1", 0.1),
    ("float", pa.string(), "0.1", 0.10000000149011612),
    ("float", pa.float64(), 0.5, 0.5),
    ("varchar(3)", pa.string(), "é€𝄞", "é€𝄞"),
    ("varchar(20)", pa.int64(), -5, "-5"),
    ("varchar(20)", pa.decimal128(5, 2), D("-0.05"), "-0.05"),
    ("char(5)", pa.string(), " a", " a"),
    ("varchar(5) CHARACTER SET latin1", pa.string(), "é", "é"),
    ("varchar(5) CHARACTER SET utf8mb3", pa.string(), "€", "€"),
    ("varchar(5) CHARACTER SET utf16", pa.string(), "𝄞", "𝄞"),
    ("enum('a','B','it''s','x,y')", pa.string(), "it's", "it's"),
    ("enum('a','x,y')", pa.string(), "x,y", "x,y"),
    ("enum('1','0')", pa.string(), "0", "0"),
    ("enum('é') CHARACTER SET latin1", pa.string(), "é", "é"),
    ("set('a','b','c')", pa.string(), "a,c", "a,c"),
    ("set('a','b','c')", pa.string(), "", ""),
    ("json", pa.string(), '{"a": [1, 2]}', '{"a": [1, 2]}'),
    ("date", pa.string(), "2024-02-29", dt.date(2024, 2, 29)),
    ("date", pa.string(), "2024-02-29 00:00:00", dt.date(2024, 2, 29)),
    ("date", pa.timestamp("ns"), dt.datetime(2024, 2, 29), dt.date(2024, 2, 29)),  # noqa: DTZ001
    ("datetime", pa.date32(), dt.date(2024, 2, 29), dt.datetime(2024, 2, 29)),  # noqa: DTZ001
    ("datetime(3)", pa.string(), "2024-02-29 01:02:03.5", dt.datetime(2024, 2, 29, 1, 2, 3, 500000)),  # noqa: DTZ001
    ("time", pa.string(), "-838:59:59", -dt.timedelta(hours=838, minutes=59, seconds=59)),
    ("time(6)", pa.month_day_nano_interval(), pa.MonthDayNano([0, 2, 1000]), dt.timedelta(2, 0, 1)),
    ("binary(2)", pa.binary(), b"\0\0", b"\0\0"),
    ("varbinary(16)", UUID, uuid.UUID(int=7), uuid.UUID(int=7).bytes),
    ("char(36)", UUID, uuid.UUID(int=7), str(uuid.UUID(int=7))),
]


@pytest.mark.parametrize("case", FITS, ids=[f"{kind} from {source}" for kind, source, _, _ in FITS])
def test_what_fits_a_tables_type(case: tuple[str, pa.DataType, Any, Any], way: str, tables: Run) -> None:
    kind, source, given, wanted = case
    tables(f"DROP TABLE IF EXISTS w; CREATE TABLE w (c {kind})")
    array = (
        pa.ExtensionArray.from_storage(source, pa.array([given.bytes], pa.binary(16)))
        if source == UUID
        else pa.array([given], source)
    )
    assert longshore.write_sql(pa.table({"c": array}), "w", way, if_exists="append") == 1
    assert column("SELECT c FROM w", way) == [wanted]


#: The table's type and what it must not take.
MISFITS: list[tuple[str, pa.DataType, Any]] = [
    ("tinyint", pa.int64(), 128),
    ("int unsigned", pa.int64(), -1),
    ("mediumint", pa.int64(), 2**23),
    ("int", pa.float64(), 0.5),
    ("int", pa.string(), "1.0"),
    ("int", pa.string(), ""),
    ("int", pa.date32(), dt.date(2024, 1, 1)),
    ("decimal(18,2)", pa.decimal128(20, 3), D("0.001")),
    ("decimal(5,2)", pa.int64(), 1000),
    ("decimal(5,2) unsigned", pa.int64(), -1),
    ("decimal(5,2)", pa.float64(), float("nan")),
    ("double", pa.float64(), float("nan")),
    ("double", pa.float64(), float("-inf")),
    ("double", pa.int64(), 2**53 + 1),
    # The digits that a float's text ends with are zeros, and not its own.
    ("double", pa.int64(), 1234567890123456800),
    ("float", pa.int64(), 123456790000),
    ("float", pa.float64(), 0.1),
    ("double(5,2)", pa.float64(), 0.125),
    ("bit(3)", pa.int64(), 8),
    ("year", pa.int64(), 70),
    ("year", pa.bool_(), False),
    # Days whose microseconds are beyond 64 bits.
    ("datetime(6)", pa.date32(), 213503982),
    ("time(6)", pa.month_day_nano_interval(), pa.MonthDayNano([0, 213503982, 0])),
    ("varchar(3)", pa.string(), "abcd"),
    ("varchar(3)", pa.string(), "abc "),
    ("char(3)", pa.string(), "a "),
    ("tinytext", pa.string(), "é" * 128),
    ("text", pa.binary(), b"a"),
    ("blob", pa.string(), "a"),
    ("binary(3)", pa.binary(), b"a"),
    ("varbinary(3)", pa.binary(), b"abcd"),
    ("enum('a')", pa.string(), "A"),
    ("enum('a')", pa.string(), "1"),
    ("enum('a')", pa.string(), ""),
    ("set('a','b')", pa.string(), "a,x"),
    ("date", pa.string(), "2023-02-29"),
    ("date", pa.string(), "0000-00-00"),
    ("date", pa.timestamp("s"), dt.datetime(2024, 1, 1, 1)),  # noqa: DTZ001
    ("datetime", pa.timestamp("ms"), dt.datetime(2024, 1, 1, 0, 0, 0, 1000)),  # noqa: DTZ001
    ("datetime(6)", pa.timestamp("us", "UTC"), dt.datetime(2024, 1, 1, tzinfo=UTC)),
    ("timestamp(6) null", pa.timestamp("us"), dt.datetime(2024, 1, 1)),  # noqa: DTZ001
    ("timestamp(6) null", pa.timestamp("us", "UTC"), dt.datetime(1970, 1, 1, tzinfo=UTC)),
    ("timestamp(6) null", pa.timestamp("us", "UTC"), dt.datetime(2040, 1, 1, tzinfo=UTC)),
    ("time(6)", pa.duration("s"), dt.timedelta(hours=839)),
    ("time(6)", pa.month_day_nano_interval(), pa.MonthDayNano([1, 0, 0])),
    ("int not null", pa.int64(), None),
    ("timestamp not null default current_timestamp", pa.timestamp("s", "UTC"), None),
    ("text", pa.list_(pa.int64()), [1]),
]


@pytest.mark.parametrize("case", MISFITS, ids=[f"{kind} from {value!r}"[:40] for kind, _, value in MISFITS])
def test_what_does_not_fit_names_its_place(case: tuple[str, pa.DataType, Any], way: str, tables: Run) -> None:
    kind, source, given = case
    tables(
        f"DROP TABLE IF EXISTS w; CREATE TABLE w (id int primary key, c {kind}); INSERT INTO w (id) VALUES (99)"
        if "not null" not in kind
        else f"DROP TABLE IF EXISTS w; CREATE TABLE w (id int primary key, c {kind})"
    )
    before = table("SELECT * FROM w", way)
    good = pa.nulls(3, source) if given is not None else pa.array([1, 1, 1], pa.int64()).cast(source)
    data = pa.table({"id": range(4), "c": pa.chunked_array([good, pa.array([given], source)])})
    kinds = longshore.IntegrityError if given is None else longshore.DataError
    with pytest.raises(kinds) as caught:
        longshore.write_sql(data, "w", way, if_exists="append")
    assert (caught.value.column, caught.value.row) == ("c", 3)
    assert table("SELECT * FROM w", way).equals(before)


#: The errors that only the server finds.
FOUND_THERE: dict[str, tuple[str, list[Any], type[longshore.Error]]] = {
    "duplicate": ("c int unique", [1, 2, 1], longshore.IntegrityError),
    "check": ("c int, check (c < 5)", [1, 7], longshore.IntegrityError),
    "json": ("c json", ['{"a": 1}', "{"], longshore.Error),
    "charset": ("c varchar(9) character set latin1", ["é", "€𝄞"], longshore.DataError),
    "foreign key": ("c int, foreign key (c) references parent (id)", [1, 2], longshore.IntegrityError),
    "too long": ("c text character set utf16", ["a", "b" * 40_000], longshore.DataError),
}


@pytest.mark.parametrize("case", FOUND_THERE)
def test_what_the_server_would_change_is_refused(case: str, way: str, tables: Run, is_mariadb: bool) -> None:  # noqa: FBT001
    definition, values, kind = FOUND_THERE[case]
    tables("DROP TABLE IF EXISTS w, parent; CREATE TABLE parent (id int primary key); INSERT INTO parent VALUES (1)")
    tables(f"CREATE TABLE w ({definition})")
    if case == "check" and not is_mariadb:
        # MySQL 8.0.15 parses checks, and ignores them.
        assert longshore.write_sql(one(values), "w", way, if_exists="append") == len(values)
    else:
        with pytest.raises(kind) as caught:
            longshore.write_sql(one(values), "w", way, if_exists="append")
        assert caught.value.sqlstate
        assert value("SELECT count(*) FROM w", way) == 0
    tables("DROP TABLE w, parent")


def rows(conn: Any, name: str = "w") -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in table(f"SELECT * FROM `{name}` ORDER BY 1", conn).to_pylist()]


def pairs(*given: tuple[int, str]) -> pa.Table:
    schema = pa.schema({"id": pa.int64(), "word": pa.string()})
    return pa.table([[number for number, _ in given], [word for _, word in given]], schema=schema)


def leftovers(server: MySQLEndpoint) -> list[Any]:
    return server.sql("SELECT table_name FROM information_schema.tables WHERE table_name LIKE 'longshore%'")


def test_the_modes(statements: str, server: MySQLEndpoint, tables: Run) -> None:
    tables("DROP TABLE IF EXISTS w")
    for mode in ("append", "truncate", "upsert"):
        with pytest.raises(longshore.ProgrammingError, match="there is no table"):
            longshore.write_sql(
                pairs((1, "a")), "w", statements, if_exists=mode, key="id" if mode == "upsert" else None
            )
    assert longshore.write_sql(pairs((1, "a")), "w", statements, key="id") == 1
    with pytest.raises(longshore.ProgrammingError, match="is there already"):
        longshore.write_sql(pairs((2, "b")), "w", statements)
    assert longshore.write_sql(pairs((2, "b"), (3, "c")), "w", statements, if_exists="append") == 2
    assert rows(statements) == [(1, "a"), (2, "b"), (3, "c")]
    data = pairs((3, "old"), (4, "d"), (3, "C"), (5, "e"))
    assert longshore.write_sql(data, "w", statements, if_exists="upsert", key="id") == 4
    assert rows(statements) == [(1, "a"), (2, "b"), (3, "C"), (4, "d"), (5, "e")]
    with pytest.raises(longshore.IntegrityError, match="1062"):
        longshore.write_sql(pairs((9, "x"), (9, "y")), "w", statements, if_exists="truncate")
    assert len(rows(statements)) == 5
    assert longshore.write_sql(pairs((9, "x")), "w", statements, if_exists="truncate") == 1
    assert rows(statements) == [(9, "x")]
    with pytest.raises(longshore.IntegrityError):
        longshore.write_sql(pairs((1, "x"), (1, "y")), "w", statements, if_exists="replace", key="id")
    assert rows(statements) == [(9, "x")]
    other = pa.table({"only": pa.array([1.5])})
    assert longshore.write_sql(other, "w", statements, if_exists="replace") == 1
    assert rows(statements) == [(1.5,)]
    assert longshore.write_sql(other.slice(0, 0), "w", statements, if_exists="replace") == 0
    assert rows(statements) == []
    assert not leftovers(server)


def test_many_batches_are_one_write(way: str, tables: Run) -> None:
    tables("DROP TABLE IF EXISTS w; CREATE TABLE w (id int primary key, word longtext)")
    counter = itertools.count()
    sizes = [0, 1, 5, 30_000, 1, 0, 20_000]
    batches = [
        pairs(*((next(counter), f"word {number}" * (1 + number % 7)) for number in range(size))) for size in sizes
    ]
    assert longshore.write_sql(iter(batches), "w", way, if_exists="append") == sum(sizes)
    wanted = pa.concat_tables(batches)
    got = table("SELECT * FROM w ORDER BY id", way)
    assert got["id"].to_pylist() == wanted["id"].to_pylist()
    assert got["word"].to_pylist() == wanted["word"].to_pylist()
    # A row is counted over all batches.
    bad = [pairs(*((10**6 + number, "") for number in range(40_000))), pairs((1, ""), (2**31, ""))]
    with pytest.raises(longshore.DataError) as caught:
        longshore.write_sql(iter(bad), "w", way, if_exists="append")
    assert caught.value.row == 40_001
    assert value("SELECT count(*) FROM w", way) == sum(sizes)


@pytest.mark.costly
def test_a_large_value(way: str, tables: Run) -> None:
    tables("DROP TABLE IF EXISTS w")
    text, blob = "é\n" * 200_000, bytes(range(256)) * 70_000
    longshore.write_sql(pa.table({"t": [text, "b"], "b": [blob, b""]}), "w", way)
    got = table("SELECT * FROM w", way)
    assert got["t"].to_pylist() == [text, "b"]
    assert got["b"].to_pylist() == [blob, b""]


def test_columns_are_matched_by_name(statements: str, tables: Run) -> None:
    tables("""DROP TABLE IF EXISTS w; CREATE TABLE w (
        id int NOT NULL AUTO_INCREMENT PRIMARY KEY, `a``b "c" \\ é` int, D int DEFAULT 5, need int NOT NULL,
        twice int GENERATED ALWAYS AS (need * 2) STORED)""")
    data = pa.table({"need": [1, 2], 'a`b "c" \\ é': [7, 8], "ID": [0, 5]})
    assert longshore.write_sql(data, "w", statements, if_exists="append") == 2
    assert rows(statements) == [(0, 7, 5, 1, 2), (5, 8, 5, 2, 4)]

    def refused(data: pa.Table, *words: str) -> None:
        with pytest.raises(longshore.Error) as caught:
            longshore.write_sql(data, "w", statements, if_exists="append")
        assert all(word in str(caught.value) for word in words), caught.value
        assert len(rows(statements)) == 2

    refused(pa.table({"need": [1], "x": [1], "y": [2]}), '"x", "y"', "need")
    refused(pa.table({"need": [1], "twice": [1]}), "twice", "generates")
    refused(pa.table({"id": [9]}), "need", "no default")
    refused(pa.table({"need": [1], "d": [1], "D": [1]}), "two columns")


def test_any_name(statements: str, server: MySQLEndpoint, tables: Run) -> None:
    tables("DROP DATABASE IF EXISTS `o``ther`; CREATE DATABASE `o``ther`")
    for name in ("select", "Mixed Case", 'it\'s `quoted` "here"', "é€", "dot.dot", "x" * 64):
        data = pa.table({name[:64]: [1], "from": [2]})
        pair = ("o`ther", name)
        assert longshore.write_sql(data, pair, statements, key=name) == 1
        assert longshore.write_sql(data, pair, statements, if_exists="upsert", key=name) == 1
        assert longshore.write_sql(data, pair, statements, if_exists="replace") == 1
        quoted = "`" + name.replace("`", "``") + "`"
        assert server.sql(f"SELECT * FROM `o``ther`.{quoted}") == [(1, 2)]
    assert not leftovers(server)
    tables("DROP DATABASE `o``ther`")
    with pytest.raises(longshore.Error, match="64"):
        longshore.write_sql(pa.table({"y" * 65: [1]}), "w2", statements)
    with pytest.raises(longshore.Error):
        longshore.write_sql(pairs((1, "a")), ("no_such_database", "w"), statements)


def test_types_keys_and_nulls_of_a_new_table(way: str, server: MySQLEndpoint, tables: Run) -> None:
    tables("DROP TABLE IF EXISTS w")
    timestamp = dt.datetime(2500, 1, 1, tzinfo=UTC)
    schema = pa.schema(
        [
            pa.field("k", pa.string()),
            pa.field("n", pa.int32(), nullable=False),
            pa.field("at", pa.timestamp("us", "UTC")),
            pa.field("was", pa.timestamp("us", "UTC"), nullable=False),
        ]
    )
    data = pa.table(
        [["a", "a ", "A", "á"], [1, 2, 3, 4], [timestamp] * 4, [timestamp.replace(year=2000)] * 4], schema=schema
    )
    with pytest.raises(longshore.DataError, match=r'types=\{"at": "datetime\(6\)"\}'):
        longshore.write_sql(data, "w", way, key="k")
    with pytest.raises(longshore.ProgrammingError):
        longshore.write_sql(data, "w", way, types={"n": "nonsense"})
    is_old = server.sql("SELECT version()")[0][0].startswith("8.0.15")
    data = data.filter(pa.array([True, not is_old, True, True]))
    longshore.write_sql(data, "w", way, key="k", types={"at": "datetime(6)", "n": "decimal(9,2)"})
    shown = {name: (kind, null, key) for name, kind, null, key, *_ in server.sql("SHOW COLUMNS FROM w")}
    assert shown == {
        "k": ("varchar(255)", "NO", "PRI"),
        "n": ("decimal(9,2)", "NO", ""),
        "at": ("datetime(6)", "YES", ""),
        "was": ("timestamp(6)", "NO", ""),
    }
    got = table("SELECT * FROM w ORDER BY n", way)
    assert got["k"].to_pylist() == data["k"].to_pylist()
    assert got["at"].to_pylist() == [timestamp.replace(tzinfo=None)] * len(data)
    server.sql("UPDATE w SET n = n + 1")
    assert set(column("SELECT was FROM w", way)) == {timestamp.replace(year=2000)}
    with pytest.raises(longshore.DataError, match="key"):
        longshore.write_sql(pa.table({"k": [None, "b"], "n": [1, 2]}), "w", way, if_exists="replace", key="k")
    with pytest.raises(longshore.NotSupportedError, match="no type"):
        longshore.write_sql(pa.table({"l": [[1]]}), "w3", way)


def test_what_depends_on_the_table(way: str, server: MySQLEndpoint, tables: Run) -> None:
    tables("""DROP VIEW IF EXISTS v; DROP TABLE IF EXISTS child, w;
        CREATE TABLE w (id int primary key, word text); INSERT INTO w VALUES (1, 'a');
        CREATE VIEW v AS SELECT x.word AS shown FROM w AS x""")
    with pytest.raises(longshore.IntegrityError, match=r"test\.v"):
        longshore.write_sql(pa.table({"id": [1]}), "w", way, if_exists="replace")
    assert rows(way) == [(1, "a")]
    assert longshore.write_sql(pairs((2, "b")), "w", way, if_exists="replace", key="id") == 1
    assert server.sql("SELECT * FROM v") == [("b",)]
    tables(
        "CREATE TABLE child (id bigint, FOREIGN KEY (id) REFERENCES w (id) ON DELETE CASCADE); "
        "INSERT INTO child VALUES (2)"
    )
    for mode in ("replace", "truncate"):
        with pytest.raises(longshore.IntegrityError, match=r"test\.child"):
            longshore.write_sql(pairs((2, "c")), "w", way, if_exists=mode)
    with pytest.raises(longshore.NotSupportedError, match="not a table"):
        longshore.write_sql(pa.table({"shown": ["a"]}), "v", way, if_exists="append")
    assert longshore.write_sql(pairs((2, "c")), "w", way, if_exists="upsert", key="id") == 1
    assert rows(way) == [(2, "c")]
    tables("DROP VIEW v; DROP TABLE child")


def test_engines_that_take_nothing_back_are_refused(way: str, tables: Run) -> None:
    tables("DROP TABLE IF EXISTS w; CREATE TABLE w (id int, word text) ENGINE=MyISAM; INSERT INTO w VALUES (1, 'a')")
    for mode in ("append", "truncate"):
        with pytest.raises(longshore.NotSupportedError, match="MyISAM"):
            longshore.write_sql(pairs((2, "b")), "w", way, if_exists=mode)
    assert rows(way) == [(1, "a")]
    assert longshore.write_sql(pairs((2, "b")), "w", way, if_exists="replace") == 1
    assert rows(way) == [(2, "b")]


def test_the_key_of_an_upsert(way: str, tables: Run) -> None:
    def upsert(key: Any, data: pa.Table) -> int:
        return longshore.write_sql(data, "w", way, if_exists="upsert", key=key)

    tables("DROP TABLE IF EXISTS w; CREATE TABLE w (id int primary key, word varchar(20), UNIQUE other (word))")
    with pytest.raises(longshore.ProgrammingError, match=r"other \(word\)"):
        upsert("id", pairs((1, "a")))
    tables("ALTER TABLE w DROP INDEX other, ADD UNIQUE part (word(5))")
    with pytest.raises(longshore.ProgrammingError, match="unique index over just"):
        upsert("word", pairs((1, "a")))
    tables("ALTER TABLE w DROP INDEX part, ADD UNIQUE wider (word, id)")
    assert upsert("id", pairs((1, "a"), (1, "b"))) == 2
    with pytest.raises(longshore.ProgrammingError, match="unique index over just"):
        upsert(["word"], pairs((1, "a")))
    with pytest.raises(longshore.DataError, match="key"):
        upsert("id", pa.table({"id": pa.array([None], pa.int32()), "word": ["x"]}))
    assert rows(way) == [(1, "b")]
    # A number that the server counts finds no one; texts that are one to the column are one key.
    tables(
        "DROP TABLE w; CREATE TABLE w (n int auto_increment primary key, "
        "mail varchar(20) COLLATE utf8mb4_general_ci UNIQUE, v int DEFAULT 3)"
    )
    assert upsert("mail", pa.table({"mail": ["a", "b"], "v": [1, 2]})) == 2
    assert upsert("mail", pa.table({"mail": ["A", "c"]})) == 2
    assert [row[1:] for row in rows(way)] == [("A", 1), ("b", 2), ("c", 3)]


@pytest.mark.parametrize("mode", ["append", "truncate", "upsert"])
def test_an_open_transaction_is_joined(mode: Any, statements: str, tables: Run, server: MySQLEndpoint) -> None:
    tables(
        "DROP TABLE IF EXISTS w; CREATE TABLE w (id int primary key, word varchar(5)); INSERT INTO w VALUES (1, 'a')"
    )
    key = "id" if mode == "upsert" else None
    with longshore.connect(statements) as connection:
        connection.execute("INSERT INTO w VALUES (2, 'b')")
        assert longshore.write_sql(pairs((3, "c")), "w", connection, if_exists=mode, key=key) == 1
        inside = rows(connection)
        with pytest.raises(longshore.Error):
            longshore.write_sql(pairs((4, "d"), (5, "too long")), "w", connection, if_exists=mode, key=key)
        with pytest.raises(longshore.Error):
            longshore.write_sql(pairs((4, "d"), (4, "e"), (2**31, "f")), "w", connection, if_exists=mode, key=key)
        assert rows(connection) == inside
        with pytest.raises(longshore.ProgrammingError, match="commit the open transaction"):
            longshore.write_sql(pairs((3, "c")), "w_new", connection)
        assert server.sql("SELECT * FROM w") == [(1, "a")]
        assert value("SELECT @@sql_mode", connection) == server.sql("SELECT @@sql_mode")[0][0]
        connection.rollback()
    assert rows(statements) == [(1, "a")]
    assert inside == ([(3, "c")] if mode == "truncate" else [(1, "a"), (2, "b"), (3, "c")])


@pytest.mark.parametrize("mode", ["fail", "replace"])
def test_a_new_table_over_a_connection_commits_by_itself(mode: Any, way: str, tables: Run) -> None:
    tables("DROP TABLE IF EXISTS w")
    with longshore.connect(way) as connection:
        assert longshore.write_sql(pairs((1, "a")), "w", connection, if_exists=mode) == 1
        assert not connection.in_transaction
        connection.rollback()
    assert rows(way) == [(1, "a")]


def test_a_session_keeps_its_own_settings(way: str, tables: Run) -> None:
    tables("DROP TABLE IF EXISTS w; CREATE TABLE w (id int, word text)")
    with longshore.connect(way) as connection:
        for mode in ("ANSI_QUOTES,NO_BACKSLASH_ESCAPES", ""):
            connection.execute(f"SET sql_mode = '{mode}'")
            data = pairs((1, "a\\'b\""), (2, "c\\n"))
            assert longshore.write_sql(data, "w", connection, if_exists="truncate") == 2
            assert rows(connection) == [(1, "a\\'b\""), (2, "c\\n")]
            assert value("SELECT @@sql_mode", connection) == mode


def test_a_server_without_files(server: MySQLEndpoint, tables: Run) -> None:
    tables("DROP TABLE IF EXISTS w; SET GLOBAL local_infile = 0")
    try:
        assert longshore.write_sql(pairs((1, "a"), (2, "b")), "w", server.url()) == 2
        assert rows(server.url()) == [(1, "a"), (2, "b")]
    finally:
        tables("SET GLOBAL local_infile = 1")


def test_other_time_zones(server: MySQLEndpoint, tables: Run) -> None:
    tables("DROP TABLE IF EXISTS w")
    timestamp = dt.datetime(2024, 3, 31, 1, 30, tzinfo=UTC)
    longshore.write_sql(one([timestamp], pa.timestamp("us", "UTC")), "w", server.url(time_zone="+05:30"))
    assert column("SELECT c FROM w", server.url()) == [timestamp]
    with longshore.connect(server.url()) as connection:
        connection.execute("SET time_zone = 'SYSTEM'")
        with pytest.raises(longshore.InterfaceError, match="time_zone"):
            longshore.write_sql(one([timestamp], pa.timestamp("us", "UTC")), "w", connection, if_exists="append")


def test_leftovers_of_a_crash_go(server: MySQLEndpoint, tables: Run) -> None:
    tables(
        "DROP TABLE IF EXISTS w, longshore_w_new, longshore_w_old; CREATE TABLE longshore_w_new (x int); "
        "CREATE TABLE longshore_w_old (x int)"
    )
    assert longshore.write_sql(pairs((1, "a")), "w", server.url(), if_exists="replace") == 1
    assert not leftovers(server)
