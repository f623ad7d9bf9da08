"""Every kind of statement: what runs, what is refused before it runs, and in how many flights."""

import re
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import longshore
from tests.recorder import Recorder
from tests.servers import Endpoint

SCHEMA = "statements"


@pytest.fixture(scope="module", autouse=True)
def _tables(postgres: Endpoint) -> Iterator[None]:
    """Make the tables of this file, and remove them afterwards."""
    postgres.psql(
        f"""
        CREATE SCHEMA {SCHEMA};
        SET search_path = {SCHEMA};
        CREATE TABLE t (id int NOT NULL, word text, at timestamptz NOT NULL DEFAULT 'epoch');
        INSERT INTO t VALUES (1, 'one'), (2, NULL), (3, 'three');
        CREATE TABLE other (id int NOT NULL);
        INSERT INTO other VALUES (1);
        CREATE VIEW v AS SELECT o.id FROM t LEFT JOIN other o USING (id);
        CREATE TABLE empty (id int NOT NULL, word text);
        CREATE TABLE spare (id int);
        CREATE TYPE mood AS ENUM ('sad', 'ok');
        CREATE PROCEDURE twice(INOUT n int) LANGUAGE plpgsql AS 'BEGIN n := 2 * n; END';
        CREATE PROCEDURE silent() LANGUAGE plpgsql AS 'BEGIN INSERT INTO empty VALUES (1, NULL); END';
        CREATE TABLE parent (id int NOT NULL);
        CREATE TABLE child (id int) INHERITS (parent);
        ALTER TABLE child ALTER COLUMN id DROP NOT NULL;
        INSERT INTO child VALUES (NULL);
        CREATE TABLE parted (id int NOT NULL) PARTITION BY RANGE (id);
        CREATE TABLE parted_1 PARTITION OF parted DEFAULT;
        INSERT INTO parted VALUES (7);
    """.replace("ALTER TABLE child ALTER COLUMN id DROP NOT NULL;", _loosen(postgres))
    )
    yield
    postgres.psql(f"SET client_min_messages = error; DROP SCHEMA {SCHEMA} CASCADE")


def _loosen(postgres: Endpoint) -> str:
    """Have the child hold NULLs: until version 18, it may drop the constraint that it inherits."""
    if int(postgres.psql("SHOW server_version_num")) >= 180_000:
        return """
            ALTER TABLE child NO INHERIT parent; ALTER TABLE parent DROP CONSTRAINT parent_id_not_null;
            ALTER TABLE child ALTER COLUMN id DROP NOT NULL; ALTER TABLE child INHERIT parent;
            ALTER TABLE parent ADD CONSTRAINT n NOT NULL id NO INHERIT;"""
    return "ALTER TABLE child ALTER COLUMN id DROP NOT NULL;"


def read(query: Any, url: str, **options: Any) -> Any:
    before = ["SET search_path = statements, public", *options.pop("before", [])]
    return longshore.read_sql(query, url, **{"return_type": "arrow", "pre_execution_query": before, **options})


@pytest.mark.server
@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT 1 AS a, 'x' AS b", [{"a": 1, "b": "x"}]),
        ("WITH c AS (SELECT 1 AS a) SELECT a + 1 AS a FROM c", [{"a": 2}]),
        ("VALUES (1, 'x'), (2, NULL)", [{"column1": 1, "column2": "x"}, {"column1": 2, "column2": None}]),
        ("TABLE other", [{"id": 1}]),
        ("SHOW server_encoding", [{"server_encoding": "UTF8"}]),
        ("CALL twice(21)", [{"n": 42}]),
        ("SELECT 1 AS a;", [{"a": 1}]),
        ("-- a comment\nSELECT /* another */ 1 AS a", [{"a": 1}]),
        ("WITH w AS (INSERT INTO spare VALUES (1) RETURNING id) SELECT id FROM w WHERE false", []),
    ],
)
def test_statements_that_return_rows(query: str, rows: list[dict[str, object]], url: str) -> None:
    assert read(query, url).to_pylist() == rows


@pytest.mark.server
def test_explain(url: str) -> None:
    table = read("EXPLAIN SELECT * FROM t", url)
    assert table.column_names == ["QUERY PLAN"]
    assert "Seq Scan on t" in table["QUERY PLAN"][0].as_py()


@pytest.mark.server
def test_what_a_prepared_statement_returns(url: str) -> None:
    table = read("EXECUTE p(20)", url, before=["PREPARE p (int) AS SELECT $1 + 1 AS a"])
    assert table.to_pylist() == [{"a": 21}]


@pytest.mark.server
def test_what_a_cursor_returns(url: str) -> None:
    table = read("FETCH 2 FROM c", url, before=["BEGIN", "DECLARE c CURSOR FOR SELECT id FROM t ORDER BY id"])
    assert table.to_pylist() == [{"id": 1}, {"id": 2}]


@pytest.mark.server
def test_what_a_statement_returns_that_writes(url: str, postgres: Endpoint) -> None:
    postgres.psql("CREATE TABLE statements.written (id serial, word text)")
    inserted = read("INSERT INTO written (word) VALUES ($1), ($2) RETURNING id, word", url, params=["a", None])
    assert inserted.to_pylist() == [{"id": 1, "word": "a"}, {"id": 2, "word": None}]
    updated = read("UPDATE written SET word = 'b' WHERE id = 2 RETURNING *", url)
    assert updated.to_pylist() == [{"id": 2, "word": "b"}]
    deleted = read("DELETE FROM written RETURNING id", url)
    assert deleted.num_rows == 2
    assert postgres.psql("SELECT count(*) FROM statements.written") == "0"


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO empty VALUES (1, 'x')",
        "CREATE TABLE made (i int)",
        "CALL silent()",
        "COPY t TO STDOUT",
        "",
        ";",
        "-- nothing",
    ],
)
def test_a_statement_without_a_result_is_not_run(statement: str, url: str, postgres: Endpoint) -> None:
    with pytest.raises(longshore.ProgrammingError, match="returns no rows, and was not run") as caught:
        read(statement, url)
    assert "RETURNING" in (caught.value.hint or "")
    counts = "SELECT (SELECT count(*) FROM statements.empty), to_regclass('statements.made') IS NULL"
    assert postgres.psql(counts) == "0|t"


def test_several_statements_are_refused(url: str) -> None:
    with pytest.raises(longshore.ProgrammingError, match="multiple commands") as caught:
        read("SELECT 1; SELECT 2", url)
    assert caught.value.sqlstate == "42601"


@pytest.mark.parametrize("return_type", ["arrow", "pandas", "polars", "numpy", "arrow_stream"])
def test_no_rows_have_the_schema_of_rows(return_type: str, url: str) -> None:
    query = "SELECT id, word, 1.5::numeric(3,1) AS n, ARRAY[1] AS l, now() AS at FROM t"
    none, some = (read(query + where, url, return_type=return_type) for where in (" WHERE false", ""))
    match return_type:
        case "arrow_stream":
            none, some = (pa.RecordBatchReader.from_stream(stream) for stream in (none, some))
            assert none.schema.equals(some.schema, check_metadata=True)
            assert none.read_all().num_rows == 0
        case "arrow":
            assert none.schema.equals(some.schema, check_metadata=True)
        case "pandas":
            assert len(none) == 0
            assert none.dtypes.to_dict() == some.dtypes.to_dict()
        case "polars":
            assert none.schema == some.schema
        case _:
            assert {name: array.dtype for name, array in none.items()} == {
                name: array.dtype for name, array in some.items()
            }


def test_rows_without_columns_are_counted(url: str) -> None:
    assert read("SELECT FROM t", url).num_rows == 3
    assert len(read("SELECT FROM t", url, return_type="pandas")) == 3
    assert read("SELECT FROM t WHERE false", url).num_rows == 0
    assert read("SELECT FROM generate_series(1, 70000)", url).num_rows == 70_000


def test_names_that_repeat(url: str) -> None:
    query = 'SELECT 1 AS a, 2 AS a, 3 AS a_1, 4 AS " ", 5 AS "größe \'\'"'
    names = ["a", "a", "a_1", " ", "größe ''"]
    assert read(query, url).column_names == names
    frame = read(query, url, return_type="pandas")
    assert list(frame.columns) == names
    assert frame.iloc[0].tolist() == [1, 2, 3, 4, 5]
    assert read(query, url, return_type="polars").columns == ["a", "a_2", "a_1", " ", "größe ''"]
    assert list(read(query, url, return_type="numpy")) == ["a", "a_2", "a_1", " ", "größe ''"]


# Several queries.


def test_a_list_of_queries_is_one_result(url: str) -> None:
    queries = ["SELECT id FROM t WHERE id = 1", "SELECT id FROM t WHERE false", "SELECT id FROM t WHERE id > 1"]
    assert read(queries, url)["id"].to_pylist() == [1, 2, 3]
    assert read(queries, url, return_type="pandas")["id"].tolist() == [1, 2, 3]
    assert read(tuple(queries), url, return_type="polars")["id"].to_list() == [1, 2, 3]


def test_a_list_of_queries_shares_one_scale(url: str) -> None:
    table = read(["SELECT 1.5 AS n", "SELECT 0.125 AS n", "SELECT NULL::numeric AS n"], url)
    assert [str(value) for value in table["n"].to_pylist()] == ["1.500", "0.125", "None"]
    assert table.schema.field("n").type == pa.decimal128(38, 3)


@pytest.mark.parametrize(
    "queries",
    [
        ["SELECT 1.5::numeric AS a", "SELECT '\\x00'::bytea AS a"],
        ["SELECT '\\x0001000000000000002a'::bytea AS a", "SELECT 1::numeric AS a"],
        ["SELECT '1'::json AS a", "SELECT 'zz'::text AS a"],
        ["SELECT ARRAY[1.5::numeric] AS a", "SELECT ARRAY['\\x00'::bytea] AS a"],
    ],
)
def test_a_list_of_queries_mixes_no_types_of_one_storage(queries: list[str], url: str) -> None:
    with pytest.raises(longshore.ProgrammingError, match='query 2 of the list returns "a"'):
        read(queries, url)


def test_a_list_of_queries_keeps_no_promise_of_one_query(url: str, postgres: Endpoint) -> None:
    postgres.psql("CREATE TABLE statements.promised (n numeric NOT NULL, i int NOT NULL)")
    postgres.psql("INSERT INTO statements.promised VALUES (0.5, 1)")
    table = read(["SELECT NULL::numeric AS n, NULL::int AS i", "SELECT n, i FROM promised"], url)
    assert [str(value) for value in table["n"].to_pylist()] == ["None", "0.5"]
    assert table["i"].to_pylist() == [None, 1]


@pytest.mark.server
def test_a_catalogue_that_promises_too_many_dimensions(url: str, postgres: Endpoint) -> None:
    postgres.psql(f"CREATE TABLE statements.deep (a int{'[]' * 5000})")
    assert read("SELECT a FROM deep", url)["a"].to_pylist() == []


def test_composites_of_composites_do_not_grow_without_a_bound(url: str, postgres: Endpoint) -> None:
    postgres.psql("CREATE TYPE statements.level0 AS (a int)")
    for level in range(1, 17):
        below = f"statements.level{level - 1}"
        postgres.psql(f"CREATE TYPE statements.level{level} AS (a {below}, b {below})")
    column = read("SELECT NULL::level16 AS a", url)["a"]
    assert column.to_pylist() == [None]
    # Of 196,606, those on the way to the first 4,096 of one level.
    assert 4096 < fields(column.type) < 4096 + 16


def fields(type_: pa.DataType) -> int:
    """Return how many fields a type has in all its parts."""
    return sum(1 + fields(field.type) for field in type_) if pa.types.is_struct(type_) else 0


def test_a_list_of_queries_takes_one_set_of_params(url: str) -> None:
    assert read(["SELECT $1::int AS a", "SELECT $1 + 1 AS a"], url, params=[1])["a"].to_pylist() == [1, 2]


def test_a_list_of_queries_sees_one_snapshot(url: str, postgres: Endpoint) -> None:
    postgres.psql("CREATE TABLE statements.moving (i int); INSERT INTO statements.moving VALUES (1)")
    # The first query is read while the second has not begun; dblink is not at hand, so the stream waits for us.
    stream = read(["SELECT count(*) FROM moving", "SELECT count(*) FROM moving"], url, return_type="arrow_stream")
    reader = pa.RecordBatchReader.from_stream(stream)
    first = reader.read_next_batch()
    postgres.psql("INSERT INTO statements.moving VALUES (2)")
    assert [*first.column(0).to_pylist(), *reader.read_all()["count"].to_pylist()] == [1, 1]


def test_a_list_of_queries_writes_only_without_a_snapshot(url: str, postgres: Endpoint) -> None:
    postgres.psql("CREATE TABLE statements.filled (i int)")
    queries = [f"INSERT INTO filled VALUES ({i}) RETURNING i" for i in (1, 2)]
    with pytest.raises(longshore.OperationalError, match="read-only transaction") as caught:
        read(queries, url, partition_num=1)
    assert caught.value.sqlstate == "25006"
    assert read(queries, url, partition_num=1, options={"snapshot": False})["i"].to_pylist() == [1, 2]
    assert postgres.psql("SELECT sum(i) FROM statements.filled") == "3"


@pytest.mark.parametrize(
    "other",
    [
        "SELECT 1 AS b",
        "SELECT 'x' AS a",
        "SELECT 1 AS a, 2 AS b",
        "SELECT 1::int8 AS a",
        "SELECT 1.5::numeric(3,1) AS a",
    ],
)
def test_a_list_of_queries_has_one_schema(other: str, url: str) -> None:
    with pytest.raises(longshore.ProgrammingError, match="query 2 of the list returns"):
        read(["SELECT 1 AS a", other], url)


def test_an_empty_list_of_queries(url: str) -> None:
    with pytest.raises(longshore.InterfaceError, match="list of queries is empty"):
        read([], url)


def test_what_runs_before(url: str) -> None:
    table = longshore.read_sql(
        "SELECT i, current_setting('application_name') AS name FROM temporary",
        url,
        return_type="arrow",
        pre_execution_query=["CREATE TEMP TABLE temporary AS SELECT 7 AS i", "SET application_name = 'before'"],
    )
    assert table.to_pylist() == [{"i": 7, "name": "before"}]
    one = longshore.read_sql("SHOW work_mem", url, return_type="numpy", pre_execution_query="SET work_mem = '5MB'")
    assert one["work_mem"].tolist() == ["5MB"]


def test_what_fails_before(url: str) -> None:
    with pytest.raises(longshore.ProgrammingError) as caught:
        longshore.read_sql("SELECT 1", url, pre_execution_query="SELECT * FROM nowhere")
    assert caught.value.sqlstate == "42P01"


# Flights.


@pytest.fixture
def recorder(postgres: Endpoint) -> Iterator[Recorder]:
    """Give a network to the shared PostgreSQL that remembers what it carried."""
    with Recorder((postgres.host, postgres.port)) as recorder:
        yield recorder


def flights(recorder: Recorder, postgres: Endpoint, query: Any, **options: Any) -> list[str]:
    url = postgres.url(host=recorder.host, port=recorder.port, sslmode="disable")
    longshore.read_sql(query, url, return_type="numpy", **options)
    return recorder.flights()


def test_a_query_takes_two_flights(recorder: Recorder, postgres: Endpoint) -> None:
    assert flights(recorder, postgres, "SELECT $1::int", params=[1]) == ["PDH", "BES", "X"]


@pytest.mark.server
def test_the_catalogue_is_asked_between_the_two(recorder: Recorder, postgres: Endpoint) -> None:
    lookup = "PBECCH"
    assert flights(recorder, postgres, "SELECT 'ok'::statements.mood") == ["PDH", lookup, "BES", "X"]


@pytest.mark.server
def test_a_table_is_looked_up_once(recorder: Recorder, postgres: Endpoint) -> None:
    query = "SELECT id FROM statements.t"
    assert flights(recorder, postgres, query) == ["PDH", "PBECCH", "BES", "X"]


def test_lookups_are_cached(recorder: Recorder, postgres: Endpoint) -> None:
    query = "SELECT 'ok'::statements.mood AS m"
    sent = flights(recorder, postgres, [query, query.replace(" AS", "  AS")], partition_num=1)
    # First the tables of both are locked, and looked at, in one flight.
    assert sent == ["PBEPBEPBEPBES", "PDH", "PBECCH", "BES", "PDH", "BES", "X"]


def test_a_statement_is_prepared_once_in_a_transaction(recorder: Recorder, postgres: Endpoint) -> None:
    query = "SELECT 'ok'::statements.mood AS m"
    sent = flights(recorder, postgres, [query, query], partition_num=1)
    assert sent == ["PBEPBEPBEPBES", "PDH", "PBECCH", "BES", "BES", "X"]


# NOT NULL.


@pytest.mark.server
@pytest.mark.parametrize(
    ("query", "promised"),
    [
        ("SELECT id FROM t", True),
        ("SELECT x.id FROM statements.t AS x WHERE word IS NULL ORDER BY id LIMIT 5", True),
        ("SELECT id FROM parted", True),
        ("SELECT word AS id FROM t", False),
        ("SELECT id + 0 AS id FROM t", False),
        ("SELECT o.id FROM t LEFT JOIN other o USING (id)", False),
        ("SELECT o.id FROM other o RIGHT JOIN t USING (id)", False),
        ("SELECT id FROM t GROUP BY ROLLUP (id)", False),
        ("SELECT id FROM t GROUP BY GROUPING SETS ((id), ())", False),
        ("WITH c AS (SELECT o.id FROM t LEFT JOIN other o USING (id)) SELECT id FROM c", False),
        ("SELECT id FROM v", False),
        ("SELECT id FROM t UNION ALL SELECT NULL", False),
        ("SELECT (SELECT id FROM t WHERE false) AS id FROM t", False),
        ("SELECT id FROM parent", False),
        ("SELECT s.id FROM (SELECT o.id FROM t LEFT JOIN other o USING (id)) AS s", False),
        ("INSERT INTO other SELECT 9 WHERE false RETURNING id", False),
    ],
)
def test_when_not_null_is_a_promise(query: str, promised: bool, url: str) -> None:  # noqa: FBT001  a case's
    assert read(query, url).schema.field("id").nullable is not promised


@pytest.mark.server
def test_a_constraint_that_is_not_validated_is_no_promise(url: str, postgres: Endpoint) -> None:
    before = [
        "CREATE TEMP TABLE loose (id int)",
        "INSERT INTO loose VALUES (NULL)",
        "ALTER TABLE loose ADD CONSTRAINT n NOT NULL id NOT VALID",
    ]
    if int(postgres.psql("SHOW server_version_num")) < 180_000:
        # An older server knows no such constraint.
        with pytest.raises(longshore.ProgrammingError, match="syntax error"):
            read("SELECT id FROM loose", url, before=before)
        return
    table = read("SELECT id FROM loose", url, before=before)
    assert (table["id"].to_pylist(), table.schema.field("id").nullable) == ([None], True)


def test_a_promise_gives_numpy_dtypes(url: str) -> None:
    frame = read("SELECT id, at FROM t", url, return_type="pandas")
    assert frame.dtypes["id"] == "int32"
    assert read("SELECT id + 0 AS id FROM t", url, return_type="pandas").dtypes["id"] == pd.Int32Dtype()


@pytest.mark.parametrize("protocol", ["binary", "text"])
def test_what_an_option_makes_null_is_in_no_promise(protocol: str, url: str) -> None:
    before = [
        """CREATE TEMP TABLE odd (at timestamptz NOT NULL, day date NOT NULL, time time NOT NULL,
        n numeric(5,2) NOT NULL, free numeric NOT NULL, days date[] NOT NULL)""",
        "INSERT INTO odd VALUES ('infinity', '-infinity', '24:00', 'NaN', 'NaN', '{infinity}')",
    ]
    options = {"infinity": "null", "time_24": "null", "numeric_nan": "null", "protocol": protocol}
    table = read("SELECT * FROM odd", url, before=before, options=options)
    assert table.to_pylist() == [{"at": None, "day": None, "time": None, "n": None, "free": None, "days": [None]}]
    assert not read("SELECT days FROM odd", url, before=before, options=options).schema.field("days").nullable
    frame = read("SELECT at, n, free FROM odd", url, before=before, options=options, return_type="pandas")
    assert frame.isna().all(axis=None)


# The other arguments.


@pytest.mark.parametrize("size", [1, 7, 1000, 65_536])
def test_batch_size(size: int, url: str) -> None:
    stream = read("SELECT i FROM generate_series(1, 2500) AS i", url, return_type="arrow_stream", batch_size=size)
    batches = list(pa.RecordBatchReader.from_stream(stream))
    assert max(batch.num_rows for batch in batches) == min(size, 2500)
    assert [value for batch in batches for value in batch.column(0).to_pylist()] == list(range(1, 2501))


@pytest.mark.parametrize("size", [0, -1, 1.5, "9", True, 2**31])
def test_a_batch_size_that_is_none(size: object, url: str) -> None:
    with pytest.raises(longshore.InterfaceError, match="batch_size is a number of rows from 1"):
        read("SELECT 1", url, batch_size=size)


def test_index_col(url: str) -> None:
    frame = read("SELECT id, word FROM t ORDER BY id", url, return_type="pandas", index_col="id")
    assert (frame.index.name, frame.index.tolist(), list(frame.columns)) == ("id", [1, 2, 3], ["word"])
    frame = read("SELECT id, word, 1 AS a FROM t", url, return_type="pandas", index_col=["word", "id"])
    assert (frame.index.names, list(frame.columns)) == (["word", "id"], ["a"])
    with pytest.raises(longshore.InterfaceError, match="index_col names 'x', but the result has only 'id'"):
        read("SELECT id FROM t", url, return_type="pandas", index_col="x")
    with pytest.raises(longshore.InterfaceError, match="index_col"):
        read("SELECT id FROM t", url, index_col="id")


def test_connectorx_order(url: str) -> None:
    assert longshore.read_sql(url, "SELECT 1 AS a", return_type="arrow").to_pylist() == [{"a": 1}]
    both = longshore.read_sql(url, ["SELECT 1 AS a"] * 2, return_type="numpy")  # type: ignore[call-overload]
    assert both["a"].tolist() == [1, 1]


@pytest.mark.parametrize("argument", ["record_batch_size", "protocol", "strategy", "chunksize", "parse_dates"])
def test_an_unknown_argument_is_a_type_error(argument: str, url: str) -> None:
    with pytest.raises(TypeError, match=argument):
        longshore.read_sql("SELECT 1", url, **{argument: 1})  # type: ignore[call-overload]


@pytest.mark.parametrize("query", [None, 1, b"SELECT 1", [1], {"a": 1}])
def test_a_query_that_is_none(query: Any, url: str) -> None:
    with pytest.raises(longshore.InterfaceError, match="query is a text or a list of texts"):
        longshore.read_sql(query, url)


def test_a_statement_with_a_zero_byte(url: str) -> None:
    with pytest.raises(longshore.ProgrammingError, match=re.escape("holds a zero byte")):
        read("SELECT '\0'", url)
