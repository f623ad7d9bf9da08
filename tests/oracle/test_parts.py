"""Oracle's reads in parts, over the stand-in for driver and server; the contract has that they are the serial read."""

import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import longshore
from longshore.sources import oracle
from longshore.sources.oracle_parts import OneTable, not_plain
from tests.oracle.engine import Engine
from tests.oracle.fake import error
from tests.quirks.oracle import engine_of, on_fake

BOATS = "id NUMBER(10,0) PRIMARY KEY, word VARCHAR2(20), built DATE, length BINARY_DOUBLE, keel BLOB"
ROWS = (
    "SELECT range, 'it''s ' || (range % 7), TIMESTAMP '2024-01-01' + to_days(range::INT), "
    "CASE WHEN range % 5 = 0 THEN 'NaN' ELSE range::DOUBLE END, NULL FROM range(90)"
)


@pytest.fixture(scope="module")
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Give a database with a table of boats, and a view of it."""
    with on_fake(request, tmp_path_factory.mktemp("parts")) as url:
        with longshore.connect(url, autocommit=True) as connection:
            connection.execute(f"CREATE TABLE boats ({BOATS})")
            engine_of(url).database.execute(f"INSERT INTO boats {ROWS}")
            connection.execute("CREATE VIEW seen AS SELECT * FROM boats")
        yield url


@pytest.fixture
def engine(url: str, monkeypatch: pytest.MonkeyPatch) -> Engine:
    """Give the stand-in, whose `heard` are the SCNs of the reads."""
    engine = engine_of(url)
    real, heard = engine.as_of, []

    def as_of(scn: int, query: str, params: Any) -> pa.Table:
        heard.append(scn)
        return real(scn, query, params)

    monkeypatch.setattr(engine, "as_of", as_of)
    monkeypatch.setattr(engine, "heard", heard, raising=False)
    return engine


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        ({}, 3),
        ({"partition_on": "ID"}, 3),
        ({"partition_on": "WORD"}, 3),
        ({"partition_on": "BUILT"}, 3),
        ({"partition_on": "LENGTH"}, 3),
        ({"partition_on": "ID", "partition_range": (20, 40.5)}, 3),
        ({"partition_on": "BUILT", "partition_range": (pa.scalar(19_800, pa.date32()).as_py(),) * 2}, 2),
    ],
)
def test_parts_are_of_one_scn(url: str, engine: Engine, arguments: Any, parts: int) -> None:
    query = "SELECT b.id, b.word, b.length, built FROM boats b WHERE id >= :1"
    found = longshore.read_sql(query, url, return_type="arrow", params=[10], partition_num=3, **arguments)
    assert sorted(found["ID"].to_pylist()) == list(range(10, 90))
    assert engine.heard == [engine.scn] * parts  # type: ignore[attr-defined]


def test_a_small_table_is_read_whole_unless_parts_are_asked_for(url: str, engine: Engine) -> None:
    found = longshore.read_sql("SELECT id FROM boats", url, return_type="arrow", partition_num="auto")
    assert (sorted(found["ID"].to_pylist()), engine.heard) == ([*range(90)], [])  # type: ignore[attr-defined]


def test_parts_without_a_snapshot(url: str, engine: Engine) -> None:
    options: Any = {"snapshot": False}
    found = longshore.read_sql("SELECT id FROM boats", url, return_type="arrow", partition_num=3, options=options)
    assert (sorted(found["ID"].to_pylist()), engine.heard) == ([*range(90)], [])  # type: ignore[attr-defined]
    parts = longshore.partition_sql("SELECT id FROM boats", url, "ID", 3)
    assert parts[0] == 'SELECT id FROM boats WHERE "ID" < 30'


REFUSED = {
    "SELECT f(id) AS n FROM boats": "f is not surely a column",
    "SELECT SYSDATE AS n FROM boats": "SYSDATE is not surely",
    "SELECT id AS n FROM boats WHERE ROWNUM < 5": "ROWNUM is not surely",
    "SELECT id AS n FROM boats WHERE id = harbours.id": "harbours is not surely",
    'SELECT id AS n FROM boats WHERE id = "ID" + "Id"': '"Id" is not surely',
    "SELECT count(*) AS n FROM boats": "count is not surely",
    "SELECT id n FROM boats": "n is not surely",
    "SELECT q'(' AS n FROM boats": "q is not surely",
    "SELECT id#x AS n FROM boats": "a name has # or @",
    "SELECT id AS n FROM boats WHERE id IN (SELECT 1 FROM dual)": "another SELECT",
    "SELECT id AS n FROM boats WHERE built > TO_DATE('07', 'DD')": "another date in each part",
    "SELECT id AS n FROM boats WHERE built > TO_DATE(id)": "another date in each part",
    "SELECT id AS n FROM seen": "seen is not a table with blocks of its own",
    "SELECT id AS n FROM a.b.boats": "a.b.boats is not a table",
    "SELECT boats.id AS n, \"WORD\", 'f()' FROM boats WHERE built > TO_DATE('2024-02', 'YYYY-MM') OR id = :f": None,
}


@pytest.mark.parametrize(("query", "reason"), REFUSED.items())
def test_what_may_mean_something_else_in_each_part(url: str, query: str, reason: str | None) -> None:
    session = oracle.connect(url.partition(":")[2], {})
    head, name, condition = re.fullmatch(r"(.*? FROM )([\w.]+)(?: WHERE (.*))?", query).groups()  # type: ignore[union-attr]
    words = re.findall(r"'[^']*'|\"[^\"]*\"|\w+|\S", f"{head} WHERE {condition or ''}")
    told = not_plain(session, OneTable(head, name, "", condition, words))
    session.close()
    assert told is None if reason is None else reason in str(told)


@pytest.mark.parametrize(
    ("before", "arguments", "reason"),
    [
        ('ALTER SESSION SET CURRENT_SCHEMA = "MAIN"', {}, "settings that others do not have"),
        ("", {"partition_on": "N"}, "not a column of boats"),
        ("", {"partition_on": "KEEL"}, "a column of BLOB does not part a read"),
    ],
)
def test_a_read_that_is_serial(url: str, before: str, arguments: Any, reason: str) -> None:
    with longshore.connect(url, autocommit=True) as connection:
        if before:
            connection.execute(before)
        query = "SELECT id AS n, keel FROM boats"
        with pytest.warns(longshore.SerialReadWarning, match=reason):
            longshore.read_sql(query, connection, return_type="arrow", partition_num=2, **arguments)


def test_who_may_not_ask_for_the_scn(url: str, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> int:
        raise error(904, '"DBMS_FLASHBACK": invalid identifier')

    monkeypatch.setattr(engine, "snapshot", refuse)
    with pytest.warns(longshore.SerialReadWarning, match=r"needs EXECUTE on DBMS_FLASHBACK, or SELECT on V_\$DATABASE"):
        longshore.read_sql("SELECT id FROM boats", url, return_type="arrow", partition_num=2)


def test_undo_that_is_gone(url: str, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "snapshot", lambda: 99_999)
    with pytest.raises(longshore.OperationalError, match=r"ORA-01555(.|\n)*UNDO_RETENTION"):
        longshore.read_sql("SELECT id FROM boats", url, return_type="arrow", partition_num=2)
