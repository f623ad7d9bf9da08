"""Grouping by short texts, which the engine sees as numbers."""

import duckdb
import pyarrow as pa
import pytest

import longshore
from longshore.duckdb.statements import quoted
from longshore.frames.stored import numbered_flags

SCHEMA = pa.schema([("flag", pa.string()), ("status", pa.string()), ("name", pa.string()), ("n", pa.int32())])
#: Each part has its texts in another order.
PARTS = [
    pa.table({"flag": flags, "status": ["O", "F", "F", "O"], "name": ["Ada"] * 4, "n": [at] * 4}, schema=SCHEMA)
    for at, flags in enumerate([["A", None, "'", ""], ["", "N", "A", "'"], ["N", "N", None, "A"]])
]
QUERIES = [
    "SELECT flag, status, count(*) AS c, sum(n) AS s FROM {} GROUP BY ALL ORDER BY ALL",
    "SELECT DISTINCT flag, status FROM {} ORDER BY ALL",
    "SELECT status, flag || 'x' AS f, min(flag) AS m FROM {} WHERE flag <> 'N' GROUP BY status, flag ORDER BY ALL",
    "SELECT name, status, typeof(any_value(flag)) AS k FROM {} GROUP BY name, status, flag ORDER BY ALL",
]


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("is_defined", [False, True], ids=["a frame's", "defined"])
def test_rows_are_grouped_by_flags(store: longshore.Store, query: str, *, is_defined: bool) -> None:
    if is_defined:
        store.sql("CREATE TABLE t (flag VARCHAR, status VARCHAR, name VARCHAR, n INTEGER)")
    for part in PARTS:
        store.write("t", part, if_exists="append" if "t" in store.names() else "fail")
    with duckdb.connect() as engine:
        engine.register("rows", pa.concat_tables(PARTS))
        engine.execute("CREATE TABLE t AS FROM rows")
        for _ in range(2):
            found = store.sql(query.format("t"), return_type="arrow")
            assert found.to_pylist() == engine.sql(query.format("t")).to_arrow_table().to_pylist()
            change = "UPDATE t SET flag = 'Z' WHERE n = 1"
            store.sql(change)
            engine.execute(change)


def test_a_generated_column_is_made_of_the_texts(store: longshore.Store) -> None:
    store.sql("CREATE TABLE t (flag VARCHAR, status VARCHAR, loud VARCHAR AS (flag || '!'))")
    store.sql("INSERT INTO t VALUES ('A', 'O'), ('B', 'F'), (NULL, 'F')")
    found = store.sql("SELECT flag, status, loud FROM t GROUP BY ALL ORDER BY ALL", return_type="arrow")
    assert [tuple(row.values()) for row in found.to_pylist()] == [
        ("A", "O", "A!"),
        ("B", "F", "B!"),
        (None, "F", None),
    ]


def test_which_texts_are_numbers_to_the_engine() -> None:
    columns: dict[str, list[list[str | None]]] = {
        "flag": [["B", "A"], ["A", "C"]],
        "empty": [["", None], ["'", None]],
        "one": [["A", "A"], ["A", "A"]],
        "long": [["A", "AB"], ["A", "A"]],
        "wide": [["A", "é"], ["A", "A"]],
        "zero": [["A", "\0"], ["A", "A"]],
    }
    rows = pa.table(
        {
            name: pa.chunked_array([pa.array(part).dictionary_encode() for part in parts])
            for name, parts in columns.items()
        }
    )
    numbers, made = numbered_flags(rows, [*columns])
    assert made == {
        "flag": f"CASE {quoted('flag')} WHEN 0 THEN 'B' WHEN 1 THEN 'A' ELSE 'C' END",
        "empty": f"CASE {quoted('empty')} WHEN 0 THEN '' WHEN 1 THEN '''' ELSE NULL END",
        "one": "'A'",
    }
    assert numbers["flag"].to_pylist() == [0, 1, 1, 2]
    many = pa.table({"many": pa.array(list("ABCDEFGHI")).dictionary_encode()})
    assert numbered_flags(many, ["many"]) == (many, {})
