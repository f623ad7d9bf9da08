"""Rows that a query's predicates leave out do not enter the engine, and the answer is the same."""

import datetime as dt
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import longshore
from longshore.duckdb.session import Session
from longshore.frames import selection

pytestmark = pytest.mark.packages

ROWS = 4_000
WORDS = ["tug", "crane 7", "", "rope", "a text that is longer than a view", "tug 17", "größe", "x_y", "100%", None]


def _table() -> pa.Table:
    """Columns of each kind, with what is odd in them; several chunks."""
    random = np.random.default_rng(5)
    i = np.arange(ROWS) - 100
    i[0], i[-1] = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    f = random.integers(-400, 400, ROWS) / 100
    f[:8] = [np.nan, np.inf, -np.inf, -0.0, 0.99, np.nextafter(0.99, 1), 5e-324, 1.7e308]
    timestamps = np.datetime64("2025-01-01", "us") + random.integers(0, 365 * 86_400 * 10**6, ROWS).astype("m8[us]")
    timestamps[:3] = [
        np.datetime64("2025-06-01"),
        np.datetime64("2025-06-01T00:00:00.000001"),
        np.datetime64("NaT", "us"),
    ]
    data = {
        "i": i,
        "s": random.integers(-300, 300, ROWS).astype(np.int16),
        "u": random.integers(0, 50, ROWS).astype(np.uint64) + np.uint64(2**64 - 100),
        "n": pa.array([None if at % 7 == 0 else int(at % 40) for at in range(ROWS)], pa.int32()),
        "f": pa.array(f),
        "g": pa.array(np.where(f > 1e300, np.inf, f).astype(np.float32)),
        "t": pa.array([WORDS[at] for at in random.integers(0, len(WORDS), ROWS)], pa.large_string()),
        "d": pa.array(timestamps),
        "day": pa.array(timestamps.astype("M8[D]")),
        "b": random.random(ROWS) < 0.5,
    }
    whole = pa.table(data)
    return pa.concat_tables([whole.slice(0, 1), whole.slice(1, 1500), whole.slice(1501)])


TABLE = _table()
FRAMES: dict[str, Callable[[], Any]] = {
    "pyarrow": lambda: TABLE,
    "views": lambda: TABLE.set_column(TABLE.column_names.index("t"), "t", _views(TABLE["t"])),
    "pandas": lambda: TABLE.to_pandas(types_mapper={pa.large_string(): pd.StringDtype("pyarrow")}.get),
    "pandas, by Arrow": lambda: TABLE.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": lambda: pl.from_arrow(TABLE),
}


def _views(texts: Any) -> Any:
    return pa.chunked_array([pa.array(chunk.to_pylist(), pa.string_view()) for chunk in texts.chunks])


@pytest.fixture
def entered(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Have short frames taken for long ones, and give the tables that enter the engine."""
    monkeypatch.setattr(selection, "_LONG", 0)
    monkeypatch.setattr(selection, "_OF_NUMBERS", 1)
    monkeypatch.setattr(selection, "_OF_TEXTS", 1)
    monkeypatch.setattr(selection, "_PART", 512)
    return _watched(monkeypatch)


def _watched(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    tables: list[Any] = []
    register = Session.register

    def watched(self: Session, name: str, data: Any) -> None:
        tables.append(data)
        register(self, name, data)

    monkeypatch.setattr(Session, "register", watched)
    return tables


def _without(monkeypatch: pytest.MonkeyPatch, run: Callable[[], Any]) -> Any:
    """Run with every frame taken for a short one."""
    with monkeypatch.context() as context:
        context.setattr(selection, "_LONG", ROWS + 1)
        return run()


def _arrow(query: str, **arguments: Any) -> Any:
    return longshore.sql(query, return_type="arrow", **arguments)


#: The conditions for which exactly the rows that are left enter; so it is with integers and with texts.
EXACT = [
    "i = 17",
    "17 = i",
    "i > 3000",
    "3000 < i",
    "i >= 3000 AND s < 0",
    "i BETWEEN 10 AND 20",
    "i <= -9_0",
    "i = 9223372036854775807",
    "i < -9223372036854775807",
    "s > 299",
    "u = 18446744073709551520",
    "u < 18446744073709551517",
    "t LIKE '%tug%'",
    "t LIKE 'tug%'",
    "t LIKE '%17'",
    "t LIKE 'tug'",
    "t = 'tug'",
    "t = ''",
    "T like '%ö%'",
    "frame.t LIKE '%longer%' AND i > 5",
    "t LIKE '%e%' AND t LIKE '%r%' AND (i > 9 AND s > 0)",
    "t LIKE '%nowhere%'",
]

#: Others are compared once more by the engine.
NEAR = [
    "f > 0.99",
    "f >= 0.99",
    "f = 0.99",
    "f = 5e-324",
    "f < -3.9e0",
    "f > 1e307",
    "f = 3",
    "f BETWEEN 1 AND 1.5",
    "g > 0.99",
    "g = 0.99",
    "g <= -3.99",
    "n = 5",
    "n > 35",
    "d >= '2025-06-01'",
    "d >= DATE '2025-06-01' AND d < DATE '2025-06-02'",
    "d = TIMESTAMP '2025-06-01 00:00:00.000001'",
    "d < '2025-01-02 03:04:05.5'",
    "day = DATE '2025-06-01'",
    "day > DATE '2025-12-01'",
    "f > 3 AND t = 'tug'",
]


@pytest.mark.costly
@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("where", [*EXACT, *NEAR])
def test_the_answer_is_the_same(where: str, kind: str, entered: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    frame = FRAMES[kind]()
    for select in ("*", "i, f", "t, count(*) AS n, max(d) AS d"):
        end = "GROUP BY t ORDER BY t" if "max" in select else ""
        query = f"SELECT {select} FROM frame WHERE {where} {end}"
        expected = _without(monkeypatch, partial(_arrow, query, frame=frame))
        entered.clear()
        found = _arrow(query, frame=frame)
        assert found.schema == expected.schema
        assert repr(found.to_pylist()) == repr(expected.to_pylist())
    left = _arrow(f"SELECT count(*) AS n FROM frame WHERE {where}", frame=frame)["n"][0].as_py()
    if where in EXACT:
        assert len(entered[-1]) == left
    elif kind != "pandas" or "day" not in where:
        # Days are objects in pandas.
        assert left <= len(entered[-1]) < ROWS


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ("SELECT count(*) AS n FROM frame WHERE t LIKE '%tug%'", ["(no column is read)"]),
        ("SELECT sum(i) AS n FROM frame f WHERE f.t = 'tug'", ["i"]),
        ("SELECT max(t) AS n FROM frame WHERE t = 'tug'", ["t"]),
        ("SELECT sum(s) AS n FROM (SELECT * FROM frame WHERE t LIKE '%u%' AND s > 0)", ["s"]),
        # Those that stay in the query keep their columns.
        ("SELECT count(*) AS n FROM frame WHERE t LIKE '%tug%' AND t <> 'tug'", ["t"]),
        ("SELECT count(*) AS n FROM frame WHERE t /* = */ LIKE '%tug%'", ["t"]),
        ("SELECT count(*) AS n FROM frame WHERE 'tug' = t", ["t"]),
        ("SELECT count(*) AS n FROM frame WHERE t=''AND s > 0", ["s", "t"]),
        ("SELECT count(*) AS n FROM frame WHERE s > 0 AND\"t\"=''", ["s", "t"]),
        ("SELECT count(*) AS n FROM frame WHERE t = E'tug'", ["t"]),
        ("SELECT count(*) AS n FROM frame WHERE t = $$tug$$", ["t"]),
        ("SELECT count(*) AS n FROM frame WHERE (t = 'it''s' OR s > 0) AND (t='')", ["s", "t"]),
        ("SELECT sum(i) AS n, 'größe' AS g FROM frame WHERE\nt\tlike\n'%ö%'", ["i"]),
        ("SELECT count(*) AS n FROM frame WHERE t LIKE '%tug%' AND i::VARCHAR LIKE '9%'", ["i"]),
    ],
)
def test_a_column_that_is_looked_at_here_does_not_enter(
    query: str, columns: list[str], entered: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = _without(monkeypatch, partial(_arrow, query, frame=TABLE))
    assert _arrow(query, frame=TABLE).to_pylist() == expected.to_pylist()
    assert entered[-1].column_names == columns


@pytest.mark.parametrize(
    "query",
    [
        "SELECT i FROM frame WHERE i = 3 OR i = 5",
        "SELECT i FROM frame WHERE NOT i < 3000",
        "SELECT i FROM frame WHERE i + 0 = 3",
        "SELECT i FROM frame WHERE i > 3.5",
        "SELECT i FROM frame WHERE i = '3'",
        "SELECT i FROM frame WHERE i < 99999999999999999999",
        "SELECT i FROM frame WHERE f < 1e400",
        "SELECT i FROM frame WHERE s = 99999",
        "SELECT i FROM frame WHERE t NOT LIKE '%tug%'",
        "SELECT i FROM frame WHERE t ILIKE '%TUG%'",
        "SELECT i FROM frame WHERE t LIKE 'x_y'",
        "SELECT i FROM frame WHERE t LIKE '%t%g%'",
        "SELECT i FROM frame WHERE t LIKE '%'",
        "SELECT i FROM frame WHERE t LIKE '100x%' ESCAPE 'x'",
        "SELECT i FROM frame WHERE t > 'rope'",
        "SELECT i FROM frame WHERE d = '2025-06-01 00:00:00+02'",
        "SELECT i FROM frame WHERE d > '2025-6-1'",
        "SELECT a.i FROM frame AS a JOIN (SELECT 17 AS i) AS b USING (i) WHERE a.i = 17",
        "SELECT a FROM frame AS f(a) WHERE a > 3000",
        "SELECT i FROM frame WHERE i = 17 UNION ALL SELECT i FROM frame WHERE i = 18",
        "WITH frame AS (SELECT * FROM frame) SELECT i FROM frame WHERE i = 17",
        "SELECT i FROM query_table('frame') WHERE i = 17",
        "SELECT count(*) AS n FROM (SELECT 1 AS one) AS o, LATERAL (SELECT i FROM frame, o AS p WHERE i = 17)",
        "SELECT i FROM frame WHERE f IS NOT NULL LIMIT 3",
        "SELECT i FROM frame ORDER BY i DESC LIMIT 3",
        "SELECT DISTINCT s > -1000 AS s FROM frame LIMIT 3",
        "SELECT sum(i % 1000) AS n FROM frame LIMIT 3",
        "SELECT s, count(*) AS n FROM frame GROUP BY ALL ORDER BY ALL LIMIT 3",
        "SELECT 1 AS one FROM frame HAVING count(*) > 9 LIMIT 3",
        "SELECT 1 AS one FROM frame GROUP BY () LIMIT 3",
        "SELECT i FROM frame QUALIFY row_number() OVER (ORDER BY i) = 5 LIMIT 3",
        "SELECT count(*) OVER () AS n FROM frame LIMIT 3",
        "SELECT unnest(CASE WHEN i = 500 THEN [i, i, i, i] END) AS n FROM frame LIMIT 4",
        "SELECT (SELECT max(i) FROM frame) AS i LIMIT 3",
        "SELECT (SELECT max(f.i + 0) FROM frame AS f) AS i FROM range(5) LIMIT 3",
        "SELECT * EXCLUDE (f, g) REPLACE (max(s) OVER () AS s) FROM frame LIMIT 3",
        "SELECT COLUMNS('[is]') FROM frame LIMIT 3",
        "SELECT i FROM frame LIMIT (SELECT 3)",
        "SELECT i FROM frame LIMIT 1 + 2",
        "SELECT i FROM frame LIMIT 3.0",
        "SELECT i FROM frame LIMIT 1%",
        "SELECT i FROM frame OFFSET 3998",
        "SELECT i FROM frame LIMIT 300",
        "SELECT i FROM frame LIMIT 3 OFFSET 3990",
        "SELECT m FROM (SELECT i, max(i) OVER () AS m FROM frame) LIMIT 3",
        "SELECT f.i FROM frame AS f POSITIONAL JOIN range(5) LIMIT 3",
        "(SELECT i FROM frame LIMIT 2) UNION ALL (SELECT i FROM frame LIMIT 3)",
        "WITH frame AS (SELECT i FROM frame ORDER BY i DESC) SELECT i FROM frame LIMIT 3",
        "WITH other AS (SELECT max(i) AS i FROM frame) SELECT i FROM other LIMIT 3",
        "SELECT 1 AS one FROM frame TABLESAMPLE 100% LIMIT 3",
        "SELECT a FROM frame AS f(a) LIMIT 3",
    ],
)
def test_where_it_is_not_plain_all_rows_enter(query: str, entered: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    expected = _without(monkeypatch, partial(_outcome, query, TABLE))
    entered.clear()
    assert _outcome(query, TABLE) == expected
    assert {len(each) for each in entered} == {ROWS}


def _outcome(query: str, frame: Any) -> Any:
    try:
        return _arrow(query, frame=frame).to_pylist()
    except longshore.Error as error:
        return str(error)


def test_a_sample_is_taken_of_all_rows(entered: list[Any]) -> None:
    for query in (
        "SELECT * FROM frame TABLESAMPLE reservoir(100 ROWS) WHERE i >= 0",
        "SELECT * FROM frame WHERE i >= 0 USING SAMPLE 100 ROWS",
    ):
        _arrow(query, frame=TABLE)
        assert len(entered[-1]) == ROWS


@pytest.mark.parametrize(
    ("where", "params", "left"),
    [
        ("i = ?", [17], 1),
        ("i = ?", [np.int64(17)], 1),
        ("i BETWEEN :low AND :high", {"low": 10, "high": 12}, 3),
        ("t = $1", ["tug"], None),
        ("t LIKE ?", ["%tug%"], None),
        ("f > ? AND i < ?", [3.5, 1000], None),
        ("d >= ?", [dt.datetime(2025, 12, 1)], None),  # noqa: DTZ001  the column has no zone
        ("i = ?", [None], ROWS),
        ("i = ?", [True], ROWS),
        ("i = ?", [Decimal(17)], ROWS),
        ("f > ?", [float("nan")], ROWS),
        ("f >= ?", [float("inf")], ROWS),
        ("t LIKE ?", ["t_g"], ROWS),
        # As a text, which is not how a literal would be compared.
        ("d >= ?", ["2025-06-01T00:00:00"], ROWS),
    ],
)
def test_parameters_are_constants(
    where: str, params: Any, left: int | None, entered: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    query = f"SELECT i, t, d FROM frame WHERE {where}"
    for values in (params, params):
        expected = _without(monkeypatch, partial(_arrow, query, frame=TABLE, params=values))
        entered.clear()
        assert _arrow(query, frame=TABLE, params=values).equals(expected)
        assert len(entered[-1]) == left if left is not None else len(expected) <= len(entered[-1]) < ROWS
    # The text is the same, and its predicates are not.
    assert len(_arrow("SELECT i FROM frame WHERE i > ?", frame=TABLE, params=[3000])) == 899
    assert len(_arrow("SELECT i FROM frame WHERE i > ?", frame=TABLE, params=[3100])) == 799


def test_nan_is_the_greatest_number_where_it_is_one(entered: list[Any]) -> None:
    frame = pd.DataFrame({"f": [1.0, float("nan"), 3.0, 2.0]})
    query = "SELECT count(*) AS n FROM frame WHERE f > 2"
    assert _arrow(query, frame=frame)["n"].to_pylist() == [1]
    assert _arrow(query, frame=frame, options={"nan": "keep"})["n"].to_pylist() == [2]
    assert _arrow(query, frame=pa.table({"f": frame["f"].to_numpy()}))["n"].to_pylist() == [2]
    assert [len(each) for each in entered] == [3, 3, 3]


def test_a_type_that_depends_on_all_rows_is_found_in_all(entered: list[Any]) -> None:
    mixed = pd.DataFrame({"i": range(ROWS), "o": ["text", *range(1, ROWS)]}, dtype=object).astype({"i": "int64"})
    with pytest.raises(longshore.DataError, match="row 1"):
        longshore.sql("SELECT o FROM mixed WHERE i > 10", mixed=mixed)
    assert longshore.sql("SELECT i FROM mixed WHERE i > 10", mixed=mixed)["i"].tolist() == list(range(11, ROWS))
    assert len(entered[-1]) == ROWS - 11


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(pd.Categorical(["tug", "rope"] * 500)),
        pd.Series(["tug", "rope"] * 500, dtype=pd.StringDtype("python")),
        pd.Series(["tug", "rope"] * 500, dtype=object),
        pd.Series(["tug", "rope"] * 500).astype(pd.ArrowDtype(pa.dictionary(pa.int8(), pa.string()))),
    ],
)
def test_texts_of_other_kinds_are_left_to_the_engine(column: Any, entered: list[Any]) -> None:
    frame = pd.DataFrame({"t": column, "i": range(1000)})
    found = longshore.sql("SELECT sum(i) AS n FROM frame WHERE t LIKE '%u%' AND i > 989", frame=frame)
    assert found["n"].tolist() == [990 + 992 + 994 + 996 + 998]
    assert "t" in entered[-1].column_names


def test_columns_of_other_kinds_come_along(entered: list[Any]) -> None:
    frame = pd.DataFrame(
        {
            "i": range(1000),
            "nullable": pd.array([None if at % 3 else at for at in range(1000)], dtype="Int64"),
            "zone": pd.date_range("2025-01-01", periods=1000, freq="h", tz="Europe/Rome"),
            "kind": pd.Categorical([f"k{at % 5}" for at in range(1000)]),
            "strided": np.arange(2000)[::2],
            "flag": np.arange(1000) % 2 == 0,
            "sparse": pd.arrays.SparseArray(np.arange(1000) % 4),
            "text": pd.Series([f"text {at}" for at in range(1000)], dtype=object),
            "dicts": pd.Series([{"b": "x"} if at % 2 else {"a": at} for at in range(1000)], dtype=object),
            "listed": pd.Series([[at] for at in range(1000)], dtype=pd.ArrowDtype(pa.list_(pa.int64()))),
        }
    )
    query = "SELECT * FROM frame WHERE i BETWEEN 500 AND 502"
    expected = frame[500:503].reset_index(drop=True)
    found = longshore.sql(query, frame=frame)
    for name in ("strided", "flag", "sparse", "text"):
        assert found[name].tolist() == expected[name].tolist()
    assert found["nullable"].isna().tolist() == [True, False, True]
    assert found["nullable"][1] == 501
    assert found["zone"].tolist() == [each.tz_convert("UTC") for each in expected["zone"]]
    assert found["kind"].tolist() == ["k0", "k1", "k2"]
    assert [list(each) for each in found["listed"]] == [[500], [501], [502]]
    assert found["dicts"].tolist() == [{"a": 500, "b": None}, {"a": None, "b": "x"}, {"a": 502, "b": None}]
    assert len(entered[-1]) == 3


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM frame LIMIT 10",
        "FROM Frame LIMIT 10 OFFSET 7",
        "SELECT t AS text, I, i AS again, 'x' AS x FROM frame AS f LIMIT 3;",
        "SELECT f.*, f.t FROM frame AS f LIMIT 0 OFFSET 3",
        "SELECT * FROM frame LIMIT 0",
        "SELECT 1 AS one FROM frame LIMIT 12",
    ],
)
def test_the_first_rows_are_those_of_a_short_frame(query: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = FRAMES[kind]()
    expected = _without(monkeypatch, partial(_arrow, query, frame=frame))
    found = _arrow(query, frame=frame)
    assert found.schema == expected.schema
    # NaN is equal to itself here.
    assert list(map(str, found.to_pylist())) == list(map(str, expected.to_pylist()))


def test_the_types_of_first_rows_are_those_of_all() -> None:
    frame = pd.DataFrame(
        {
            "numbers": pd.Series([1] * 999 + [2.5], dtype=object),
            "dicts": pd.Series([{"a": at} if at < 999 else {"b": "x"} for at in range(1000)], dtype=object),
            "nothing": pd.Series([None] * 999 + [Decimal("1.25")], dtype=object),
        }
    )
    found = longshore.sql("SELECT * FROM frame LIMIT 2", frame=frame, return_type="arrow")
    assert found.schema.field("numbers").type == pa.float64()
    assert found.schema.field("nothing").type == pa.decimal128(3, 2)
    assert found["dicts"].to_pylist() == [{"a": 0, "b": None}, {"a": 1, "b": None}]


def test_an_error_names_the_row_of_the_frame(entered: list[Any]) -> None:
    spans = pa.array([0] * 900 + [1] * 100, pa.duration("ns"))
    table = pa.table({"i": range(1000), "span": pa.chunked_array([spans]), "t": ["tug"] * 1000})
    for where in ("i > 800", "i > 800 AND t LIKE '%tug%'"):
        query = f"SELECT span FROM frame WHERE {where}"
        with pytest.raises(longshore.DataError) as raised:
            _arrow(query, frame=table)
        with pytest.raises(longshore.DataError) as expected:
            _arrow("SELECT span FROM frame", frame=table)
        assert (raised.value.row, str(raised.value)) == (expected.value.row, str(expected.value))
    odd = pa.array([0] * 950 + [1] * 50, pa.date64()).cast(pa.int64()).view(pa.date64())
    with pytest.raises(longshore.DataError, match="row 950") as raised:
        _arrow("SELECT day FROM frame WHERE i > 900", frame=pa.table({"i": range(1000), "day": odd}))
    assert raised.value.row == 950
    found = _arrow("SELECT day FROM frame WHERE i < 100", frame=pa.table({"i": range(1000), "day": odd}))
    assert len(found) == len(entered[-1]) == 100


def test_texts_that_are_not_utf8_are_found_as_bytes(entered: list[Any]) -> None:
    broken = pa.Array.from_buffers(
        pa.string(), 3, [None, *pa.array([b"\xfftug", b"tug", b"x"], pa.binary()).buffers()[1:]]
    )
    table = pa.table({"t": broken, "i": [1, 2, 3]})
    assert _arrow("SELECT i FROM frame WHERE t LIKE '%tug%'", frame=table)["i"].to_pylist() == [1, 2]
    assert len(entered[-1]) == 2
    with pytest.raises(longshore.DataError, match="UTF-8"):
        _arrow("SELECT t FROM frame WHERE t LIKE '%tug%'", frame=table)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT nope FROM frame WHERE t LIKE '%tug%'",
        "SELECT i FROM frame WHERE t LIKE '%tug%' AND nope = 3",
        "SELECT i + 'x' FROM frame WHERE t = 'tug'",
        "SELECT t::INT FROM frame WHERE t = 'tug'",
        "SELECT i FROM frame WHERE t = 'tug' AND error('no')",
    ],
)
def test_an_error_is_of_the_query_as_it_is_written(
    query: str, entered: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = _without(monkeypatch, partial(_outcome, query, TABLE))
    entered.clear()
    assert isinstance(expected, str)
    assert _outcome(query, TABLE) == expected
    assert len(entered[0]) < ROWS


def test_a_plan_is_of_the_query_as_it_is_written(entered: list[Any]) -> None:
    plan = longshore.sql("SELECT count(*) AS n FROM frame WHERE t LIKE '%tug%'", frame=TABLE, explain=True)
    assert "contains(t, 'tug')" in plan
    assert entered[-1].column_names == ["t"]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT (SELECT count(*) FROM frame WHERE t = 'tug')",
        "SELECT EXISTS (FROM frame WHERE t = 'tug'), 3 IN (SELECT i FROM frame)",
        "SELECT n FROM (SELECT (SELECT count(*) FROM frame WHERE t LIKE '%tug%') AS n)",
    ],
)
def test_a_text_that_names_a_column_stays(query: str, entered: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    expected = _without(monkeypatch, partial(_arrow, query, frame=TABLE))
    entered.clear()
    assert _arrow(query, frame=TABLE).equals(expected)
    assert "t" in entered[-1].column_names


@pytest.mark.parametrize(
    "query",
    [
        "WITH frame(t, i) AS (VALUES ('y', 1), ('tug', 2)) SELECT i FROM frame WHERE t = 'tug'",
        "WITH c AS (SELECT t.upper() AS t FROM frame WHERE i > 3000) SELECT count(*) AS n FROM c WHERE t = 'TUG'",
        "SELECT t.upper() AS u FROM frame WHERE i < 3 ORDER BY u",
        "SELECT frame.t.upper() AS u FROM frame WHERE i < 3 AND t.lower() = 'tug'",
        "SELECT s FROM (SELECT * FROM frame WHERE t = 'tug' ORDER BY 1 DESC LIMIT 3)",
        "WITH q AS (SELECT * FROM frame WHERE i > 5 ORDER BY 2 DESC, 1 LIMIT 3) SELECT s, i FROM q",
        "SELECT (SELECT sum(count) FROM histogram_values('frame', s)) AS n, count(*) AS m FROM frame WHERE i <= 20",
        "SELECT (SELECT count(*) FROM pragma_table_info('frame')) AS n, count(*) AS m FROM frame WHERE t = 'tug'",
        "SELECT (SELECT count(*) FROM duckdb_columns() WHERE table_name = 'frame') AS n, i FROM frame WHERE t = 'tug'",
        "SELECT (SELECT count(*) FROM information_schema.columns) > 0 AS n, i FROM frame WHERE t = 'tug'",
        "SELECT count(*) AS n FROM frame WHERE d >= DATE '2025-06-03 12:00:00'",
        "SELECT count(*) AS n FROM frame WHERE d < '2025-06-03T12:00:00.5'::DATE",
        "SELECT count(*) AS n FROM frame WHERE d BETWEEN DATE '2025-06-01 23:00:00' AND DATE '2025-06-02 23:00:00'",
    ],
)
def test_what_a_second_pair_of_eyes_found(query: str, entered: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    expected = _without(monkeypatch, partial(_arrow, query, frame=TABLE))
    assert entered
    assert _arrow(query, frame=TABLE).to_pylist() == expected.to_pylist()


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_timestamps_of_every_unit(unit: Any, entered: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    start = np.datetime64("2025-01-01", unit)
    timestamps = start + np.arange(1000) * np.timedelta64(1, "h").astype(f"m8[{unit}]")
    frames: tuple[Any, ...] = (pa.table({"d": timestamps}), pd.DataFrame({"d": timestamps}))
    for frame in frames:
        for where in ("d >= '2025-02-01 12:00:00'", "d < DATE '2025-01-03'", "d = TIMESTAMP '2025-01-09 05:00:00'"):
            query = f"SELECT d FROM frame WHERE {where}"
            expected = _without(monkeypatch, partial(_arrow, query, frame=frame))
            assert _arrow(query, frame=frame).equals(expected)
            assert 0 < len(expected) <= len(entered[-1]) < 1000
        # The last second of the nanoseconds.
        assert len(_arrow("SELECT d FROM frame WHERE d < '2262-04-11 23:47:16'", frame=frame)) == 1000


def test_memory_may_go_on_behind_the_last_value(entered: list[Any]) -> None:
    values = pa.py_buffer(np.arange(ROWS).tobytes() + b"abc")
    table = pa.table({"i": pa.Array.from_buffers(pa.int64(), ROWS, [None, values])})
    assert _arrow("SELECT count(*) AS n FROM frame WHERE i >= 3990", frame=table)["n"].to_pylist() == [10]
    assert len(entered[-1]) == 10


@pytest.mark.skipif(not hasattr(pl, "Int128"), reason="this polars does not have the type")
def test_a_type_that_the_engine_lacks_is_refused_by_its_name(entered: list[Any]) -> None:
    frame = pl.DataFrame({"a": pl.Series(range(10), dtype=pl.Int128), "b": range(10)})
    with pytest.raises(longshore.DataError, match="Int128"):
        longshore.sql("SELECT b FROM frame WHERE a = 3", frame=frame)
    assert not entered


def test_the_end_of_an_interpreter_begins_no_threads() -> None:
    code = """if True:
        import atexit, longshore, pandas
        frame = pandas.DataFrame({"a": range(300_000), "b": 1})
        longshore.sql("SELECT b FROM frame WHERE a < 5")
        atexit.register(lambda: print(longshore.sql("SELECT sum(b) AS b FROM frame WHERE a < 5")["b"][0], frame.shape))
    """
    ran = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=120)
    assert (ran.stdout, ran.stderr) == ("5 (300000, 2)\n", "")


@pytest.mark.parametrize("kind", FRAMES)
def test_few_texts_enter_as_dictionaries(kind: str, entered: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    frame = FRAMES[kind]()
    for query in (
        "SELECT t, count(*) AS n, sum(i) AS i FROM frame GROUP BY t ORDER BY t",
        "SELECT DISTINCT t FROM frame ORDER BY t",
        "SELECT count(DISTINCT t) AS n FROM frame",
        "SELECT t || b AS x, count(*) AS n FROM frame GROUP BY t, b ORDER BY x, n",
        "SELECT upper(t) AS t, count(*) AS n FROM frame WHERE t <> 'tug' GROUP BY ALL, t ORDER BY t",
        "SELECT t, list(i ORDER BY i)[1:3] AS i FROM frame GROUP BY t HAVING t LIKE '%u%' ORDER BY t DESC",
    ):
        expected = _without(monkeypatch, partial(_outcome, query, frame))
        assert _outcome(query, frame) == expected, query
        if "ALL" not in query:
            assert pa.types.is_dictionary(entered[-1].schema.field("t").type), query


def test_many_texts_enter_as_they_are(entered: list[Any]) -> None:
    frame = pa.table({"t": [f"text {at}" for at in range(ROWS)]})
    assert _arrow("SELECT count(DISTINCT t) AS n FROM frame", frame=frame)["n"].to_pylist() == [ROWS]
    assert entered[-1].schema.field("t").type == pa.string()


def test_long_frames_are_told_by_their_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    entered = _watched(monkeypatch)
    rows = 300_000
    long = pd.DataFrame({"i": range(rows), "t": pd.Series(["tug", "rope", "crane"] * (rows // 3), dtype="str")})
    found = longshore.sql("SELECT sum(i) AS i FROM long WHERE t LIKE '%u%'", long=long)
    assert found["i"].tolist() == [sum(range(0, rows, 3))]
    found = longshore.sql("SELECT count(*) AS n FROM long WHERE t LIKE '%u%'", long=long)
    assert found["n"].tolist() == [rows // 3]
    assert len(entered[-1]) == (rows // 3 if long["t"].dtype != object else rows)
    found = longshore.sql("SELECT i, t FROM long WHERE i > 299990", long=long)
    assert found["i"].tolist() == list(range(299_991, rows))
    assert len(entered[-1]) == 9 or long["t"].dtype == object
    # More than the engine would be slower with.
    assert longshore.sql("SELECT count(*) AS n FROM long WHERE i > 9", long=long)["n"].tolist() == [rows - 10]
    assert len(entered[-1]) == rows
    grouped = longshore.sql("SELECT t, count(*) AS n FROM long GROUP BY t ORDER BY t", long=long)
    assert grouped.to_numpy().tolist() == [["crane", 100_000], ["rope", 100_000], ["tug", 100_000]]
    assert pa.types.is_dictionary(entered[-1].schema.field("t").type)
    short = long[: rows // 3]
    assert len(longshore.sql("SELECT i FROM short WHERE i > 99990", short=short)) == 9
    assert len(entered[-1]) == rows // 3
