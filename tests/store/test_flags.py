"""Grouping by short texts, which the engine sees as numbers."""

import contextlib
from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest

import longshore
from longshore.duckdb.remote.store import StoreSource
from longshore.frames.pushdown import Pushdown
from longshore.frames.stored import numbered_flags, without_nulls
from longshore.options import Options
from longshore.texts import quoted_name

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
            rows = engine.sql(query.format("t")).to_arrow_table().to_pylist()
            assert store.sql(query.format("t"), return_type="arrow").to_pylist() == rows
            assert longshore.sql(query.format("store.t"), return_type="arrow").to_pylist() == rows
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


@pytest.mark.parametrize("has_null", [False, True])
def test_means_of_decimals_next_to_flags(store: longshore.Store, *, has_null: bool) -> None:
    kind = pa.decimal128(15, 2)
    prices, taxes = [Decimal("1.25"), Decimal("2.50"), None if has_null else Decimal("7.10")], [Decimal("0.10")] * 3
    rows = {"flag": list("ABA"), "status": list("OFO"), "price": pa.array(prices, kind), "tax": pa.array(taxes, kind)}
    store["t"] = pa.table(rows)
    means = "SELECT flag, status, avg(price), avg(tax), count(price), count(*) FROM {} GROUP BY ALL ORDER BY 1"
    count = 1 if has_null else 2
    found = [("A", "O", 1.25 if has_null else 4.175, 0.1, count, 2), ("B", "F", 2.5, 0.1, 1, 1)]
    for frame in (store.sql(means.format("t")), longshore.sql(means.format("store.t"))):
        assert [*frame.itertuples(index=False, name=None)] == found
    condition = "" if has_null else ' WHERE "price" IS NOT NULL AND "tax" IS NOT NULL'
    assert without_nulls(pa.table(rows), ["flag", "price", "tax"]) == condition


def test_the_engine_sees_numbers_of_an_attached_store_too(store: longshore.Store) -> None:
    store["t"] = pa.table({"flag": ["N", "A"] * 2, "status": ["O", "F"] * 2})
    keys = frozenset({"flag", "status"})
    with contextlib.closing(StoreSource("lake", store, Options())) as source:
        rows = source.rows("t", ["flag", "status"], Pushdown(keys=keys))
        assert (rows.columns[0].startswith("CASE"), str(rows.rows["flag"].type)) == (True, "uint8")
        assert isinstance(source.rows("t", ["flag"], Pushdown(keys=frozenset({"flag"}))), pa.Table)


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
        "flag": f"CASE {quoted_name('flag')} WHEN 0 THEN 'B' WHEN 1 THEN 'A' ELSE 'C' END",
        "empty": f"CASE {quoted_name('empty')} WHEN 0 THEN '' WHEN 1 THEN '''' ELSE NULL END",
        "one": "'A'",
    }
    assert numbers["flag"].to_pylist() == [0, 1, 1, 2]
    many = pa.table({"many": pa.array(list("ABCDEFGHI")).dictionary_encode()})
    assert numbered_flags(many, ["many"]) == (many, {})
