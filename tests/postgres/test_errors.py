"""The parts of a failure: its class, its place, and never a secret."""

import traceback
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import longshore
from tests.servers import Endpoint, PostgreSQL, free_port

SECRET = "s3cr3t-päss"


@pytest.mark.server
@pytest.mark.parametrize(
    ("query", "kind", "sqlstate"),
    [
        ("SELEC 1", longshore.ProgrammingError, "42601"),
        ("SELECT * FROM nowhere", longshore.ProgrammingError, "42P01"),
        ("SELECT nothing FROM pg_class", longshore.ProgrammingError, "42703"),
        ("SELECT 1 / 0", longshore.DataError, "22012"),
        ("SELECT 'x'::int", longshore.DataError, "22P02"),
        ("SELECT 2147483647 + 1", longshore.DataError, "22003"),
        ("SELECT (SELECT i FROM generate_series(1, 2) AS i)", longshore.DataError, "21000"),
        ("SELECT DISTINCT ON (1) 1 FROM pg_class FOR UPDATE", longshore.NotSupportedError, "0A000"),
        ("INSERT INTO pg_temp.one VALUES (1) RETURNING i", longshore.IntegrityError, "23505"),
        ("INSERT INTO pg_temp.one VALUES (NULL) RETURNING i", longshore.IntegrityError, "23502"),
        ("SELECT pg_temp.fail('P0001')", longshore.OperationalError, "P0001"),
        ("SELECT pg_temp.fail('40001')", longshore.OperationalError, "40001"),
        ("SELECT pg_temp.fail('XX001')", longshore.InternalError, "XX001"),
        ("SELECT pg_temp.fail('44000')", longshore.IntegrityError, "44000"),
        ("SELECT pg_temp.fail('53100')", longshore.OperationalError, "53100"),
        ("SELECT pg_temp.fail('3F000')", longshore.ProgrammingError, "3F000"),
    ],
)
def test_the_class_is_that_of_the_sqlstate(query: str, kind: type[longshore.Error], sqlstate: str, url: str) -> None:
    before = [
        "CREATE TEMP TABLE one (i int PRIMARY KEY); INSERT INTO one VALUES (1)",
        """CREATE FUNCTION pg_temp.fail(state text) RETURNS int LANGUAGE plpgsql AS
        $$BEGIN RAISE EXCEPTION 'failed' USING ERRCODE = state, DETAIL = 'the detail', HINT = 'the hint'; END$$""",
    ]
    with pytest.raises(longshore.DatabaseError) as caught:
        longshore.read_sql(query, url, pre_execution_query=before)
    assert (type(caught.value), caught.value.sqlstate) == (kind, sqlstate)
    assert f"[SQLSTATE {sqlstate}]" in str(caught.value)
    if "fail(" in query:
        assert "the detail" in str(caught.value.detail)
        assert caught.value.hint == "the hint"
        assert "Detail: the detail" in str(caught.value)
        assert "Hint: the hint" in str(caught.value)


def test_the_position_is_in_characters(url: str) -> None:
    with pytest.raises(longshore.ProgrammingError) as caught:
        longshore.read_sql("SELECT 'größe', nothing", url)
    assert caught.value.position == len("SELECT 'größe', ") + 1
    assert f"(at character {caught.value.position})" in str(caught.value)
    assert (caught.value.column, caught.value.row) == (None, None)


@pytest.mark.parametrize("return_type", ["pandas", "arrow", "polars", "numpy"])
@pytest.mark.parametrize("protocol", ["binary", "text"])
def test_a_values_place(return_type: str, protocol: str, url: str) -> None:
    value = "CASE WHEN i = 70000 THEN 'NaN' ELSE i::numeric(9,2) END::numeric(9,2)"
    query = f"SELECT 1 AS a, {value} AS b FROM generate_series(0, 99999) AS i"
    with pytest.raises(longshore.DataError) as caught:
        longshore.read_sql(query, url, return_type=return_type, options={"protocol": protocol})
    error = caught.value
    assert (error.column, error.row, error.native_type) == ("b", 70_000, "numeric(9,2)")
    assert str(error).startswith('column "b", row 70000 (numeric(9,2)): NaN has no exact decimal')


@pytest.mark.parametrize("protocol", ["binary", "text"])
@pytest.mark.parametrize(
    ("expression", "row"),
    [
        ("ARRAY[1, CASE WHEN i = 1500 THEN 'NaN'::numeric ELSE 2 END]::numeric(9,2)[]", 1500),
        ("ARRAY[1, CASE WHEN i = 1500 THEN 'NaN'::numeric ELSE 2 END]::numeric[]", 1500),
        ("ARRAY[ARRAY[1, CASE WHEN i = 1500 THEN 'NaN'::numeric ELSE 2 END]]::numeric[]", 0),
        ("ROW(1, CASE WHEN i = 1500 THEN 'NaN'::numeric ELSE 2 END)::pg_temp.r", 1500),
        ("ARRAY[ROW(1, 2), ROW(1, CASE WHEN i = 1500 THEN 'NaN'::numeric ELSE 2 END)]::pg_temp.r[]", 1500),
    ],
)
def test_the_place_of_a_value_in_a_value(expression: str, row: int, protocol: str, url: str) -> None:
    with pytest.raises(longshore.DataError) as caught:
        longshore.read_sql(
            f"SELECT {expression} AS v FROM generate_series(0, 2000) AS i",
            url,
            return_type="arrow",
            pre_execution_query="CREATE TYPE pg_temp.r AS (a int, n numeric)",
            options={"protocol": protocol},
        )
    assert (caught.value.column, caught.value.row) == ("v", row)


def test_a_numeric_that_no_decimal_holds_names_its_column(url: str) -> None:
    with pytest.raises(longshore.DataError) as caught:
        longshore.read_sql("SELECT ARRAY['1e-100'::numeric] AS v", url, return_type="arrow")
    assert caught.value.column == "v"
    assert 'schema={"v"' in str(caught.value.hint)


@pytest.mark.parametrize("return_type", ["pandas", "arrow", "polars", "numpy", "arrow_stream"])
def test_an_error_after_many_rows(return_type: str, url: str) -> None:
    query = "SELECT 1 / (1000000 - i) AS a FROM generate_series(1, 1000001) AS i"
    with pytest.raises((longshore.DataError, pa.ArrowException, OSError), match="division by zero"):  # noqa: PT012  either
        result = longshore.read_sql(query, url, return_type=return_type)
        pa.RecordBatchReader.from_stream(result).read_all()


def test_text_that_is_no_utf8(make_server: Callable[..., PostgreSQL]) -> None:
    server = make_server()
    server.psql("CREATE DATABASE ascii TEMPLATE template0 ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C'")
    with pytest.raises(longshore.DataError, match="invalid byte sequence") as caught:
        longshore.read_sql("SELECT convert_from('\\xff', 'SQL_ASCII') AS t", server.url(database="ascii"))
    assert caught.value.sqlstate == "22021"


# The way there.


def test_a_wrong_password(make_server: Callable[..., PostgreSQL]) -> None:
    server = make_server(hba=("host all all all scram-sha-256",))
    server.psql(f"CREATE ROLE somebody LOGIN PASSWORD '{SECRET}'")
    assert longshore.read_sql("SELECT 1 AS a", server.url(user="somebody", password=SECRET))["a"].tolist() == [1]
    wrong = server.url(user="somebody", password="wrong-" + SECRET)
    with pytest.raises(longshore.OperationalError) as caught:
        longshore.read_sql("SELECT 1", wrong)
    assert caught.value.sqlstate == "28P01"
    assert_no_secret(caught.value, SECRET)


def test_a_refused_port() -> None:
    port = free_port()
    with pytest.raises(longshore.OperationalError, match=f"cannot connect to 127.0.0.1:{port}") as caught:
        longshore.read_sql("SELECT 1", f"postgresql://me:{SECRET}@127.0.0.1:{port}/db")
    assert caught.value.hint
    assert_no_secret(caught.value, SECRET)


def test_an_unknown_host() -> None:
    with pytest.raises(longshore.OperationalError, match=r"cannot find the host of nowhere\.invalid") as caught:
        longshore.read_sql("SELECT 1", f"postgresql://me:{SECRET}@nowhere.invalid/db")
    assert_no_secret(caught.value, SECRET)


@pytest.mark.parametrize(
    "conn",
    [
        f"postgresql://me:{SECRET}@localhost:port/db",
        f"postgresql://me:{SECRET}@localhost/db?nonsense=1",
        f"postgresql://me:{SECRET}@localhost/db?sslmode=sometimes",
        f"postgresql://me:{SECRET}@[::1/db",
        f"postgresql://me:{SECRET}%ZZ@localhost/db",
        f"nonsense://me:{SECRET}@localhost/db",
        f"me:{SECRET}@localhost/db",
        f"host=localhost password={SECRET}",
        {"host": "localhost", "password": SECRET, "nonsense": 1},
        {"scheme": "nonsense", "password": SECRET},
        "",
    ],
)
def test_a_url_that_is_none(conn: Any) -> None:
    with pytest.raises(longshore.InterfaceError) as caught:
        longshore.read_sql("SELECT 1", conn)
    assert_no_secret(caught.value, SECRET)


def assert_no_secret(error: BaseException, secret: str) -> None:
    """Look where a log would: the texts of the error and of all that led to it, and what objects show of themselves."""
    from longshore.target import target

    texts = ["".join(traceback.format_exception(error)), repr(error), str(getattr(error, "__dict__", ""))]
    frame = error.__traceback__
    while frame is not None:
        # Our own frames may hold what the caller gave; what they made of it must not show it.
        texts += [
            repr(value) for value in frame.tb_frame.f_locals.values() if type(value).__module__.startswith("longshore")
        ]
        frame = frame.tb_next
    assert secret not in "\n".join(texts[:2] + texts[3:])
    assert secret not in repr(target(f"postgresql://me:{secret}@localhost/db"))
    assert secret not in repr(target({"password": secret}))


# The server.


def test_a_server_that_is_killed(make_server: Callable[..., PostgreSQL]) -> None:
    server = make_server()
    stream = longshore.read_sql(
        "SELECT repeat('x', 1000) AS t FROM generate_series(1, 2000000)", server.url(), return_type="arrow_stream"
    )
    reader = pa.RecordBatchReader.from_stream(stream)
    reader.read_next_batch()
    server.kill()
    with pytest.raises((pa.ArrowException, OSError), match=r"closed the connection|terminat|reset"):
        reader.read_all()
    with pytest.raises(longshore.OperationalError, match="cannot connect"):
        longshore.read_sql("SELECT 1", server.url())


@pytest.mark.server
def test_a_session_that_is_ended(url: str, postgres: Endpoint) -> None:
    query = "SELECT pg_terminate_backend(pg_backend_pid())"
    with pytest.raises(longshore.OperationalError, match="terminating connection") as caught:
        longshore.read_sql(query, url)
    assert caught.value.sqlstate == "57P01"
    assert postgres.psql("SELECT 1") == "1"
