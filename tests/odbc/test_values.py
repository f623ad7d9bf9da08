"""Values through each driver: as they were, or an error that names column and row."""

import ctypes
import datetime as dt
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import longshore
from longshore.odbc import drivers, manager
from longshore.sources import odbc
from tests.quirks import UUID
from tests.quirks.odbc import in_mariadb, in_postgresql, in_sqlite

US, UTC = pa.timestamp("us"), pa.timestamp("us", "UTC")
HALF = dt.datetime(2024, 2, 29, 12, 30, 1, 500_000)  # noqa: DTZ001  naive
LAST = dt.datetime(9999, 12, 31, 23, 59, 59, 999_999)  # noqa: DTZ001  likewise
PLACES: dict[str, Callable[..., Any]] = {"postgresql": in_postgresql, "mariadb": in_mariadb, "sqlite": in_sqlite}

#: The Arrow type and value of a database's expression.
VALUES: dict[str, dict[str, tuple[pa.DataType, Any]]] = {
    "postgresql": {
        "true": (pa.bool_(), True),
        "(-32768)::smallint": (pa.int16(), -32768),
        "2147483647": (pa.int32(), 2**31 - 1),
        "(-9223372036854775807 - 1)::bigint": (pa.int64(), -(2**63)),
        "4294967295::oid": (pa.uint32(), 2**32 - 1),
        "0.1::real": (pa.float32(), 0.10000000149011612),
        "0.1::float8 + 0.2": (pa.float64(), 0.1 + 0.2),
        "'NaN'::float8 IS NULL": (pa.bool_(), False),
        "1234567890.0123456789::numeric(38,10)": (pa.decimal128(38, 10), Decimal("1234567890.0123456789")),
        "1.500::numeric": (pa.decimal128(38, 1), Decimal("1.5")),
        "sum(2::bigint)": (pa.decimal128(38, 0), Decimal(2)),
        "123::numeric(50,0)": (pa.decimal256(50, 0), Decimal(123)),
        "'ä€𝄞'::text": (pa.string(), "ä€𝄞"),
        "'ä€𝄞'::varchar(3)": (pa.string(), "ä€𝄞"),
        "'a'::char(3)": (pa.string(), "a  "),
        "''::text": (pa.string(), ""),
        "repeat('ä€𝄞', 100000)": (pa.string(), "ä€𝄞" * 100_000),
        "repeat('y', 300)::varchar": (pa.string(), "y" * 300),
        "decode(repeat('00ff', 100000), 'hex')": (pa.binary(), b"\0\xff" * 100_000),
        "'\\x'::bytea": (pa.binary(), b""),
        "'0001-01-01'::date": (pa.date32(), dt.date(1, 1, 1)),
        "'24:00'::time = '24:00'": (pa.bool_(), True),
        "'12:30:01.5'::time": (pa.time64("us"), dt.time(12, 30, 1, 500_000)),
        "'2024-02-29 12:30:01.5'::timestamp": (US, HALF),
        "'9999-12-31 23:59:59.999999'::timestamp": (US, LAST),
        "'2024-02-29 14:30:01.5+02'::timestamptz": (UTC, HALF.replace(tzinfo=dt.UTC)),
        "'12:30:01+02'::timetz": (pa.string(), "12:30:01+02"),
        "'1 mon 2 days'::interval": (pa.string(), "1 mon 2 days"),
        "'12345678-1234-5678-1234-567812345678'::uuid::text": (pa.string(), "12345678-1234-5678-1234-567812345678"),
        "'{1,NULL}'::int[]": (pa.string(), "{1,NULL}"),
        "'{}'::jsonb": (pa.string(), "{}"),
        "12.5::money": (pa.string(), "$12.50"),
        "NULL::int": (pa.int32(), None),
        "NULL": (pa.string(), None),
    },
    "mariadb": {
        "CAST(18446744073709551615 AS UNSIGNED)": (pa.uint64(), 2**64 - 1),
        "CAST(-9223372036854775808 AS SIGNED)": (pa.int64(), -(2**63)),
        "tiny": (pa.int8(), -128),
        "small": (pa.uint16(), 65535),
        "medium": (pa.uint32(), 2**24 - 1),
        "plain": (pa.uint32(), 2**32 - 1),
        "flag": (pa.bool_(), True),
        "bits": (pa.binary(), b"\x05"),
        "0.1e0 + 0.2e0": (pa.float64(), 0.1 + 0.2),
        "CAST(0.1 AS FLOAT)": (pa.float32(), 0.10000000149011612),
        "CAST('12345678901234567890123456789012345.1' AS DECIMAL(65,30))": (
            pa.decimal256(65, 30),
            Decimal("12345678901234567890123456789012345.1"),
        ),
        "CAST(-1.50 AS DECIMAL(10,2))": (pa.decimal128(10, 2), Decimal("-1.50")),
        "'ä€𝄞'": (pa.string(), "ä€𝄞"),
        "repeat('ä€𝄞', 100000)": (pa.string(), "ä€𝄞" * 100_000),
        "repeat(x'00ff', 100000)": (pa.binary(), b"\0\xff" * 100_000),
        "CAST('9999-12-31' AS DATE)": (pa.date32(), dt.date(9999, 12, 31)),
        "CAST('12:30:01.5' AS TIME(6))": (pa.time64("us"), dt.time(12, 30, 1, 500_000)),
        "CAST('2024-02-29 12:30:01.5' AS DATETIME(6))": (US, HALF),
        "instant": (UTC, HALF.replace(tzinfo=dt.UTC)),
        "document": (pa.string(), "{}"),
        "NULL": (pa.string(), None),
        # The driver's own: it tells nothing of what was there.
        "CAST('0000-00-00' AS DATE)": (pa.date32(), None),
    },
    "sqlite": {
        "n": (pa.int64(), 2**63 - 1),
        "r": (pa.float64(), 0.5),
        "t": (pa.string(), "ä€𝄞"),
        "long": (pa.string(), "y" * 8000),
        "b": (pa.binary(), b"\0\xff"),
        "d": (pa.date32(), dt.date(2024, 2, 29)),
        "ts": (US, HALF),
        "typed": (pa.string(), "longer than it was declared"),
        "NULL": (pa.string(), None),
    },
}
FROM = {
    "mariadb": "CREATE TABLE v (tiny tinyint, small smallint unsigned, medium mediumint unsigned, plain int unsigned, "
    "flag bit(1), bits bit(5), instant timestamp(6) NULL, document json);"
    "INSERT INTO v VALUES (-128, 65535, 16777215, 4294967295, 1, 5, '2024-02-29 12:30:01.5', '{}')",
    "sqlite": "CREATE TABLE v (n bigint, r real, t text, long text, b blob, d date, ts timestamp, typed varchar(5));"
    "INSERT INTO v VALUES (9223372036854775807, 0.5, 'ä€𝄞', printf('%.8000c', 'y'), x'00ff', '2024-02-29', "
    "'2024-02-29 12:30:01.500', 'longer than it was declared')",
}


@pytest.fixture(params=VALUES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, str]]:
    """Give a database's name, and its address through its driver."""
    with PLACES[request.param](request, tmp_path) as url:
        yield request.param, f"{url};rounded_floats=true" if request.param == "sqlite" else url


def table(query: str, url: str | longshore.Connection, **arguments: Any) -> pa.Table:
    """Read."""
    found: pa.Table = longshore.read_sql(query, url, return_type="arrow", **arguments)
    return found


def test_each_value(place: tuple[str, str]) -> None:
    name, url = place
    with longshore.connect(url, autocommit=True) as connection:
        for statement in filter(None, FROM.get(name, "").split(";")):
            connection.execute(statement)
        columns = ", ".join(f"{expression} AS c{at}" for at, expression in enumerate(VALUES[name]))
        found = table(f"SELECT {columns} {'FROM v' if name in FROM else ''}", connection)
        expected = {f"c{at}": each for at, each in enumerate(VALUES[name].values())}
        assert {field.name: field.type for field in found.schema} == {n: kind for n, (kind, _) in expected.items()}
        assert found.to_pylist() == [{column: value for column, (_, value) in expected.items()}]


def test_a_uuid(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    with in_postgresql(request, tmp_path) as url:
        found = table("SELECT '12345678-1234-5678-9abc-def012345678'::uuid AS u", url).column("u")
    assert found.type == UUID
    assert str(found[0].as_py()).replace("-", "").endswith("123456789abcdef012345678")


#: Values that the driver gives as others, and a part of the error.
CHANGED = {
    "postgresql": {
        "'infinity'::timestamp": "infinity",
        "'-infinity'::timestamptz": "BC cannot be a timestamp",
        "'0044-03-15 BC'::timestamp": "BC cannot be a timestamp",
        "'12345-01-01'::timestamp": "0000-00-00 00:00:00 cannot be a timestamp",
        "'infinity'::date": "0000-00-00 cannot be a date",
        "'12345-01-01'::date": "1234-00-00 cannot be a date",
        "'24:00'::time": "24:00:00 cannot be a time",
        "'NaN'::numeric(10,2)": "NaN has no exact decimal",
    },
    "mariadb": {"CAST('-838:59:59' AS TIME)": "-838:59:59 cannot be a time"},
    "sqlite": {"t": "x cannot be a int64"},
}


def test_what_the_driver_would_change_is_an_error(place: tuple[str, str]) -> None:
    name, url = place
    series = "(SELECT 1 AS i UNION ALL SELECT 2 UNION ALL SELECT 3) AS s"
    with longshore.connect(url, autocommit=True) as connection:
        if name == "sqlite":
            connection.execute("CREATE TABLE v (t integer)")
            connection.execute("INSERT INTO v VALUES ('x')")
            series += ", v"
        for expression, text in CHANGED[name].items():
            query = f"SELECT i, CASE WHEN i = 3 THEN {expression} END AS c FROM {series} ORDER BY i"
            query = query.replace("CASE WHEN i = 3 THEN t END AS c", "t AS c") if name == "sqlite" else query
            with pytest.raises(longshore.DataError, match=text) as caught:
                table(query, connection)
            assert (caught.value.column, caught.value.row) == ("c", 0 if name == "sqlite" else 2)


def test_a_value_longer_than_the_limit(place: tuple[str, str]) -> None:
    name, url = place
    text = "printf('%.101c', 'x')" if name == "sqlite" else "repeat('x', 101)"
    series = "(SELECT 1 AS i UNION ALL SELECT 2 UNION ALL SELECT 3) AS s"
    query = f"SELECT i, CASE WHEN i = 3 THEN {text} ELSE 'x' END AS lengthy FROM {series} ORDER BY i"
    assert [len(each) for each in table(query, f"{url};max_text_size=101")["lengthy"].to_pylist()] == [1, 1, 101]
    with pytest.raises(longshore.DataError, match="longer than max_text_size=100") as caught:
        table(query, f"{url};max_text_size=100")
    assert (caught.value.column, caught.value.row) == ("lengthy", 2)
    assert "max_text_size=" in (caught.value.hint or "")
    with pytest.raises(longshore.InterfaceError, match="max_text_size is a number"):
        table(query, f"{url};max_text_size=many")


def test_dates_of_today(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    # The driver takes today's month and day for what it cannot read of a date.
    query = "SELECT d, d::text AS t FROM (SELECT CURRENT_DATE - 365 * i AS d FROM generate_series(0, 40) AS i) AS days"
    with in_postgresql(request, tmp_path) as url:
        found = table(query, url)
        assert [str(day) for day in found["d"].to_pylist()] == found["t"].to_pylist()


def test_long_and_short_values_in_many_blocks(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    texts = [("€" * (n % 7)) if n % 500 else "𝄞" * 3000 for n in range(1, 6001)]
    query = (
        "SELECT CASE WHEN i % 500 = 0 THEN repeat('𝄞', 3000) WHEN i % 11 = 0 THEN NULL ELSE repeat('€', i % 7) END "
        "AS t FROM generate_series(1, 6000) AS i"
    )
    with in_postgresql(request, tmp_path) as url:
        wanted = [None if n % 11 == 0 and n % 500 else text for n, text in enumerate(texts, 1)]
        assert table(query, url)["t"].to_pylist() == wanted


def test_parameters_of_each_kind(place: tuple[str, str]) -> None:
    _, url = place
    values = [7, -(2**62), 0.1, "ä€𝄞'; --", b"\0\xff", dt.date(2024, 2, 29), HALF, Decimal("1.50"), None, True]
    kinds = ["bigint", "bigint", "double precision", "varchar(20)", "{}", "date", "{}", "decimal(9,2)", "int", "int"]
    own = {"postgresql": ("bytea", "timestamp"), "mariadb": ("blob", "datetime(6)"), "sqlite": ("blob", "timestamp")}
    binary, timestamp = own[place[0]]
    kinds[4], kinds[6] = binary, timestamp
    if place[0] == "postgresql":
        kinds[9] = "boolean"
    columns = ", ".join(f"c{at} {kind}" for at, kind in enumerate(kinds))
    with longshore.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE p ({columns})")
        assert connection.execute(f"INSERT INTO p VALUES ({', '.join('?' * len(values))})", values) == 1
        found = [*table("SELECT * FROM p", connection).to_pylist()[0].values()]
        assert [str(each) for each in found[7:8]] == ["1.50"] if place[0] != "sqlite" else ["1.5"]
        del found[7], values[7]
        assert found == values
        # A number is compared as one, and not as its text.
        assert connection.cursor().execute("SELECT count(*) AS n FROM p WHERE c0 = ?", [7]).fetchall() == [(1,)]
        with pytest.raises(longshore.ProgrammingError, match="the statement has 1 parameters, and params 2"):
            connection.execute("SELECT ?", [1, 2])
        with pytest.raises(longshore.NotSupportedError, match="give its text"):
            connection.execute("SELECT ?", [dt.timedelta(1)])


def test_a_named_parameter_within_brackets(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """They hold elements, and a name in SQLite alone."""
    for opened, query in ((in_postgresql, "SELECT (ARRAY[:a::int])[1] AS n"), (in_sqlite, "SELECT :a AS [n:m]")):
        with opened(request, tmp_path) as url:
            assert longshore.read_sql(query, url, params={"a": 7}, return_type="arrow").column(0).to_pylist() == [7]


def test_the_settings() -> None:
    with pytest.raises(longshore.InterfaceError, match="key=value with semicolons between"):
        table("SELECT 1 AS n", "odbc:nonsense")
    with pytest.raises(longshore.OperationalError, match="no-such-driver") as caught:
        table("SELECT 1 AS n", "odbc:Driver=/no-such-driver.so;PWD={a;secret}")
    assert caught.value.sqlstate == "01000"


def test_a_password_with_a_semicolon(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    server = request.getfixturevalue("mariadb")
    server.sql("CREATE OR REPLACE USER odbc_me@'%' IDENTIFIED BY 'a;b}c'")
    try:
        with in_mariadb(request, tmp_path, user="odbc_me", password="{a;b}}c}", database="") as url:
            assert table("SELECT 1 AS n", url).to_pylist() == [{"n": 1}]
    finally:
        server.sql("DROP USER odbc_me@'%'")


def test_a_statement_that_mariadb_refuses_is_undone_alone(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    with in_mariadb(request, tmp_path) as url, longshore.connect(url) as connection:
        connection.execute("CREATE TABLE boats (n int PRIMARY KEY)")
        connection.execute("INSERT INTO boats VALUES (1)")
        # The first quotes that are tried for the name are those of a text there.
        found = longshore.sql("SELECT n FROM q.boats", attach={"q": connection}, return_type="arrow")
        assert found["n"].to_pylist() == [1]
        with pytest.raises(longshore.IntegrityError):
            connection.execute("INSERT INTO boats VALUES (1)")
        connection.commit()
        connection.rollback()
        assert table("SELECT n FROM boats", connection)["n"].to_pylist() == [1]
        connection.rollback()


def test_floats_of_four_bytes_in_a_block(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    # MariaDB's driver takes eight bytes for each: all but the first were others, and it wrote beyond the buffer.
    values = [0.1, None, 3.4028234663852886e38, 1.5, -2.25] * 20
    with in_mariadb(request, tmp_path) as url, longshore.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE f (n int, v float)")
        rows = ", ".join(f"({n}, {'NULL' if value is None else value})" for n, value in enumerate(values))
        connection.execute(f"INSERT INTO f VALUES {rows}")
        found = table("SELECT v FROM f ORDER BY n", connection)["v"]
        assert found.to_pylist() == pa.array(values, pa.float32()).to_pylist()
        assert found.type == pa.float32()


def test_a_database_without_a_dialect_is_not_written(place: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drivers, "_DATABASES", {})
    with pytest.raises(longshore.NotSupportedError, match="no dialect here"):
        longshore.write_sql(pa.table({"n": [1]}), "boats", place[1])


def test_a_transaction(place: tuple[str, str]) -> None:
    _, url = place
    with longshore.connect(url) as connection:
        connection.execute("CREATE TABLE boats (n int)")
        connection.commit()
        connection.execute("INSERT INTO boats VALUES (1)")
        assert connection.in_transaction
        assert table("SELECT n FROM boats", connection).num_rows == 1
        connection.rollback()
        assert table("SELECT n FROM boats", connection).num_rows == 0
        connection.execute("INSERT INTO boats VALUES (2)")
        connection.commit()
    assert table("SELECT n FROM boats", url).to_pylist() == [{"n": 2}]


LONG = {
    "postgresql": "SELECT pg_sleep(60)::text AS t",
    "mariadb": "SELECT sleep(60) AS t",
    "sqlite": "WITH RECURSIVE r (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r) SELECT count(*) AS t FROM r",
}


def test_a_deadline_stops_the_statement(place: tuple[str, str]) -> None:
    name, url = place
    with longshore.connect(url, autocommit=True) as connection:
        with pytest.raises(longshore.TimeoutError):
            table(LONG[name], connection, timeout=0.2)
        # The connection waits until the driver has obeyed.
        assert table("SELECT 5 AS n", connection, timeout=5).to_pylist() == [{"n": 5}]


def test_a_cancel_frees_no_result_that_a_thread_may_fetch_from(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    with in_mariadb(request, tmp_path) as url:
        session = odbc.connect(url.partition(":")[2], {})
        cursor = session._run("SELECT 1 AS a", None)  # noqa: SLF001  what a read runs
        session.cancel()
        # MariaDB's driver has the row, and would have freed it.
        assert manager.function("SQLFetch", ctypes.c_void_p)(cursor.value) == manager.SUCCESS
        with pytest.raises(manager.OdbcError, match="cancelled"):
            cursor.fetch()
        session.close()


@pytest.mark.parametrize(("source", "target"), [(in_sqlite, in_postgresql), (in_mariadb, in_sqlite)])
def test_from_one_into_another(request: pytest.FixtureRequest, tmp_path: Path, source: Any, target: Any) -> None:
    with source(request, tmp_path) as there, target(request, tmp_path) as here:
        with longshore.connect(there, autocommit=True) as connection:
            connection.execute("CREATE TABLE boats (n bigint, t text)")
            connection.execute("INSERT INTO boats VALUES (1, 'Ada'), (2, NULL)")
        assert longshore.copy("SELECT * FROM boats", there, "boats", here, if_exists="fail") == 2
        assert table("SELECT * FROM boats ORDER BY n", here).to_pylist() == [{"n": 1, "t": "Ada"}, {"n": 2, "t": None}]


def test_a_table_by_its_name_in_sql(place: tuple[str, str]) -> None:
    name, url = place
    with longshore.connect(url, autocommit=True) as harbour:
        harbour.execute("CREATE TABLE boats (n bigint, t varchar(20))")
        harbour.execute("INSERT INTO boats VALUES (1, 'Ada'), (2, 'ada'), (3, NULL)")
        query = "SELECT n FROM harbour.boats WHERE t = 'ada' AND n > 0"
        # MariaDB's collation finds two, of which the engine leaves one.
        assert longshore.sql(query, return_type="arrow", harbour=harbour).to_pylist() == [{"n": 2}]
        quote = "`" if name == "mariadb" else '"'
        asked = longshore.sql(query, explain=True, harbour=harbour).splitlines()[1]
        wanted = """SELECT "n", "t" FROM "boats" WHERE ("t" = 'ada') AND ("n" > 0)"""
        assert asked == wanted.replace('"', quote)


def filled(sql_type: int, values: Any, lengths: list[int], whole: bytes = b"", size: int = 10) -> pa.Array:
    """Return the column that a driver's buffers make; ``whole`` is a value that is asked for by itself."""
    from longshore.odbc.columns import Column
    from longshore.odbc.drivers import Driver
    from longshore.odbc.manager import Description

    class Statement(manager.Statement):
        def __init__(self) -> None:
            """Have no handle."""

        def long_value(self, *_: Any) -> bytes:
            return whole

    described = Description("d", sql_type, "native", size, 0, is_unsigned=False)
    column = Column(1, described, Driver(has_long_values=True))
    column.statement, column.lengths = Statement(), np.array(lengths, "i8")
    column.values = np.zeros(len(lengths), column.dtype)
    for row, value in enumerate(values):
        column.values[row] = value
    return column.array(len(lengths), 10)


def dates(*parts: tuple[int, int, int] | None) -> pa.Array:
    """Return the column that a driver's dates make; of a NULL it has left anything."""
    from longshore.odbc.columns import DATE

    values = [part or (7, 0, 99) for part in parts]
    return filled(DATE, values, [manager.NULL_DATA if part is None else 6 for part in parts])


def wide(text: str, room: int) -> Any:
    return np.frombuffer(text.encode("utf-16-le").ljust(2 * room, b"\0"), "u2")


def test_texts_at_the_border_of_their_buffer() -> None:
    from longshore.odbc.columns import WVARCHAR

    whole = "𝄞" * 11
    texts = ["x" * 20, "x" * 18 + "𝄞", "", "x" * 19, "x" * 19]
    values = [wide(text, 21) for text in texts]
    lengths = [40, 40, 0, manager.NO_TOTAL, manager.NULL_DATA]
    found = filled(WVARCHAR, values, lengths, whole.encode("utf-16-le"))
    assert found.to_pylist() == ["x" * 20, "x" * 18 + "𝄞", "", whole, None]
    # One unit more than there is room for, whose first half is in the buffer.
    assert filled(WVARCHAR, [wide("x" * 20, 21)], [42], ("x" * 19 + "𝄞").encode("utf-16-le")).to_pylist() == [
        "x" * 19 + "𝄞"
    ]
    for length in (-3, 7, -(2**63)):
        with pytest.raises(longshore.DataError, match=f"{length} is not a length") as caught:
            filled(WVARCHAR, [wide("x", 21)] * 2, [2, length])
        assert (caught.value.column, caught.value.row) == ("d", 11)
    with pytest.raises(longshore.DataError, match="half a character") as caught:
        filled(WVARCHAR, [wide("x", 21), np.array([0xD834] + [0] * 20, "u2")], [2, 2])
    assert caught.value.row == 11


def test_bytes_and_numbers_at_the_border_of_their_buffer() -> None:
    from longshore.odbc.columns import DECIMAL, VARBINARY

    room = [np.frombuffer(bytes(range(20)), "u1")] * 3
    found = filled(VARBINARY, room, [20, 21, 0], b"longer")
    assert found.to_pylist() == [bytes(range(20)), b"longer", b""]
    digits = np.frombuffer(b"1" * 44, "u1")
    assert filled(DECIMAL, [digits] * 2, [43, 44], b"2" * 44).to_pylist() == ["1" * 43, "2" * 44]


def test_days_at_the_ends_of_months() -> None:
    ends = [(1, 1, 1), None, (1900, 2, 28), (2000, 2, 29), (2024, 2, 29), (2023, 4, 30), (9999, 12, 31)]
    assert dates(*ends).to_pylist() == [each and dt.date(*each) for each in ends]


@pytest.mark.parametrize("wrong", [(1900, 2, 29), (2023, 4, 31), (2023, 1, 32), (2023, 13, 1), (2023, 1, 0), (0, 1, 1)])
def test_a_date_that_is_none_names_its_row(wrong: tuple[int, int, int]) -> None:
    with pytest.raises(longshore.DataError, match="not a date that the driver can mean") as caught:
        dates((2024, 2, 29), None, wrong)
    assert (caught.value.column, caught.value.row) == ("d", 12)


def test_what_is_not_there_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    from longshore.odbc import manager

    monkeypatch.setattr("ctypes.util.find_library", lambda _: None)
    monkeypatch.setattr(manager, "library", manager.library.__wrapped__)
    monkeypatch.setattr(manager, "function", manager.function.__wrapped__)
    with pytest.raises(longshore.InterfaceError, match=r"no ODBC driver manager\nHint: .*apt install unixodbc"):
        table("SELECT 1 AS n", "odbc:DSN=none")
