"""Reads in parallel: what the server is told, for it cannot run it."""

from typing import Any

import pytest

import longshore
from tests.mssql.reading import begun, prepare, rows, url
from tests.mssql.test_statements import DESCRIBE, described
from tests.servers import MSSQL
from tests.tds.tokens import Column, Count, Rows
from tests.tds.types import nvarchar, simple

QUERY = "WITH c AS (SELECT v FROM boats) SELECT v FROM c"
_INT = ("v", 56, 4, 10, 0, None, None, True, None, 56, False, False, None, None)


def texts(*cells: str | None) -> Rows:
    """Return one row of texts."""
    return Rows([Column(f"c{at}", nvarchar(40)) for at in range(len(cells))], [cells])


def parts(server: MSSQL, before: str, inner: str) -> list[str]:
    """Have the server answer the three parts of a query between 1 and 9, and return their texts."""
    head = f"{before}SELECT * FROM (\n{inner}\n) AS longshore_part WHERE "
    wheres = ['"v" < 4', '"v" >= 4 AND "v" < 7', '("v" >= 4 AND "v" >= 7 OR "v" IS NULL)']
    for at, where in enumerate(wheres):
        server.answer(head + where, rows(simple("int"), at), kind="batch")
    return [head + where for where in wheres]


def test_without_a_snapshot_parts_are_written_around_the_query(mssql: MSSQL) -> None:
    prepare(mssql)
    mssql.answer(DESCRIBE, described(_INT), kind="rpc", match="contains")
    mssql.answer("MIN(k)", texts("1", "9"), kind="batch", match="contains")
    sent = parts(mssql, "WITH c AS (SELECT v FROM boats) ", "SELECT v FROM c")
    options = {"snapshot": False}
    table = longshore.read_sql(
        QUERY, url(mssql), partition_on="v", partition_num=3, return_type="arrow", options=options
    )
    assert table["v"].to_pylist() == [0, 1, 2]
    batches = [one.text for one in mssql.requests("batch")]
    assert [text for text in sent if text in batches] == sent
    assert "SNAPSHOT" not in " ".join(batches)
    (ends,) = [text for text in batches if "MIN(k)" in text]
    assert ends == (
        "WITH c AS (SELECT v FROM boats) SELECT CAST(MIN(k) AS nvarchar(20)), CAST(MAX(k) AS nvarchar(20)) FROM (\n"
        'SELECT "v" AS k FROM (\nSELECT v FROM c\n) AS longshore_part WHERE 1 = 1\n) AS longshore_keys'
    )


def test_a_snapshot_needs_a_lock_that_the_caller_asks_for(mssql: MSSQL) -> None:
    prepare(mssql)
    mssql.answer("SELECT v FROM boats", rows(simple("int"), 1, 2))
    mssql.answer("SELECT v FROM boats ORDER BY v", rows(simple("int"), 1, 2))
    keywords: dict[str, Any] = {"partition_on": "v", "partition_num": 3, "return_type": "arrow"}
    with pytest.warns(longshore.SerialReadWarning, match="no common snapshot"):
        table = longshore.read_sql("SELECT v FROM boats", url(mssql), **keywords)
    assert table["v"].to_pylist() == [1, 2]
    with pytest.warns(longshore.SerialReadWarning, match="ORDER BY"):
        longshore.read_sql("SELECT v FROM boats ORDER BY v", url(mssql), **keywords)


def test_a_lock_is_held_until_all_snapshots_have_begun(mssql: MSSQL) -> None:
    prepare(mssql)
    mssql.answer("SELECT snapshot_isolation_state", texts("1"), kind="batch", match="starts")
    mssql.answer(DESCRIBE, described(_INT), kind="rpc", match="contains")
    mssql.answer("MIN(k)", texts("1", "9"), kind="batch", match="contains")
    mssql.answer("SET TRANSACTION ISOLATION LEVEL SNAPSHOT; BEGIN TRANSACTION", Count(), begun(), Count())
    mssql.answer("SET LOCK_TIMEOUT", Count(), begun(), Count(), kind="batch", match="starts")
    touch = 'SELECT TOP (1) 1 FROM "boats"'
    mssql.answer(touch, rows(simple("int"), 1))
    mssql.answer(f"{touch} WITH (TABLOCK, HOLDLOCK)", rows(simple("int"), 1))
    sent = parts(mssql, "", "SELECT v FROM boats")
    table = longshore.read_sql(
        "SELECT v FROM boats",
        url(mssql),
        partition_on="v",
        partition_num=3,
        return_type="arrow",
        options={"lock": True},
    )
    assert table["v"].to_pylist() == [0, 1, 2]
    batches = mssql.requests("batch")
    (locker,) = {one.connection for one in batches if "TABLOCK" in one.text}
    locked = next(at for at, one in enumerate(batches) if "TABLOCK" in one.text)
    released = next(at for at, one in enumerate(batches) if one.connection == locker and one.text.startswith("COMMIT"))
    touched = [at for at, one in enumerate(batches) if one.text == touch]
    assert len(touched) == 3
    assert locked < min(touched)
    assert max(touched) < released
    assert {one.text for one in batches} >= set(sent)


def test_partition_num_alone_takes_the_clustered_index(mssql: MSSQL) -> None:
    prepare(mssql)
    mssql.answer("sys.indexes", texts("id"), kind="rpc", match="contains")
    mssql.answer(DESCRIBE, described(_INT), kind="rpc", match="contains")
    mssql.answer("MIN(k)", texts("1", "9"), kind="batch", match="contains")
    query = "SELECT v FROM boats AS b WHERE v > 0"
    for at, where in enumerate(
        ['"b"."id" < 4', '"b"."id" >= 4 AND "b"."id" < 7', '("b"."id" >= 4 AND "b"."id" >= 7 OR "b"."id" IS NULL)']
    ):
        mssql.answer(f"SELECT v FROM boats AS b WHERE (v > 0\n) AND {where}", rows(simple("int"), at), kind="batch")
    table = longshore.read_sql(query, url(mssql), partition_num=3, return_type="arrow", options={"snapshot": False})
    assert table["v"].to_pylist() == [0, 1, 2]
