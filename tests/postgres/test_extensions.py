"""pgvector, hstore and PostGIS, and ranges as structs: what is theirs beyond the cases of types, read and written."""

import datetime as dt
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import psycopg
import pyarrow as pa
import pytest

import longshore
from tests.fixtures import require
from tests.servers import PostgreSQL

PROTOCOLS = ("binary", "text")
both = pytest.mark.parametrize("protocol", PROTOCOLS)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Give a server with pgvector."""
    with require(lambda: PostgreSQL(needs=("vector",))) as server:
        server.psql("CREATE EXTENSION vector")
        yield server.url()


@pytest.fixture(scope="module")
def gis() -> Iterator[str]:
    """Give a server with PostGIS, and hstore in another schema than the search path's."""
    with require(lambda: PostgreSQL(needs=("hstore", "postgis"))) as server:
        server.psql("CREATE EXTENSION postgis; CREATE SCHEMA elsewhere; CREATE EXTENSION hstore SCHEMA elsewhere")
        server.psql(
            "CREATE TABLE mixed AS SELECT n, ST_SetSRID(ST_MakePoint(n, -n), 4326) AS g FROM generate_series(1, 4) n"
        )
        server.psql("INSERT INTO mixed VALUES (5, NULL), (6, 'SRID=3857;POINT(1 2)')")
        yield server.url()


def read(url: str, query: str, protocol: str = "binary", **arguments: Any) -> pa.Table:
    return longshore.read_sql(query, url, return_type="arrow", options={"protocol": protocol}, **arguments)


def run(script: str, url: str) -> None:
    with longshore.connect(url, autocommit=True) as connection:
        connection.execute_script(script)


def crs(field: pa.Field) -> Any:
    assert field.metadata[b"ARROW:extension:name"] == b"geoarrow.wkb"
    return json.loads(field.metadata.get(b"ARROW:extension:metadata", b"{}"))


# Vectors.


@both
@pytest.mark.parametrize("kind", ["list<double>", "list<float>", "fixed_size_list<double>[2]"])
def test_vectors_are_lists_of_the_numbers_that_schema_asks_for(kind: str, protocol: str, url: str) -> None:
    query = "SELECT '[0.1,2]'::vector AS v UNION ALL SELECT NULL"
    table = read(url, query, protocol, schema={"v": kind})
    assert table["v"].to_pylist() == [[np.float32(0.1), 2], None]
    assert str(table.schema.field("v").type).replace("item: ", "") == kind.replace("float>", "float>")


@both
def test_a_vector_of_another_length_is_an_error_that_names_its_row(protocol: str, url: str) -> None:
    query = "SELECT '[1,2]'::vector AS v UNION ALL SELECT '[1]'"
    with pytest.raises(longshore.DataError, match="a vector of 1 numbers") as caught:
        read(url, query, protocol, schema={"v": "fixed_size_list<float>[2]"})
    assert (caught.value.column, caught.value.row) == ("v", 1)
    with pytest.raises(longshore.NotSupportedError):
        read(url, query, protocol, schema={"v": "list<int64>"})


@pytest.mark.parametrize("other", ["int4", "inet"], ids=["binary copy", "text copy"])
@pytest.mark.parametrize("native", ["vector(3)", "halfvec(3)", "vector"])
@pytest.mark.parametrize(
    "kind",
    [pa.list_(pa.float32(), 3), pa.list_(pa.float64()), pa.large_list(pa.float16())],
    ids=["fixed", "list", "large"],
)
def test_lists_are_written_into_vectors(kind: pa.DataType, native: str, other: str, url: str) -> None:
    run(f"DROP TABLE IF EXISTS v; CREATE TABLE v (v {native}, other {other})", url)
    values = [[1.5, -2.0, 0.25], None, [65504.0, 0.0, -0.0]]
    table = pa.table({"v": pa.array(values, kind), "other": pa.nulls(3)})
    longshore.write_sql(table, "v", url, if_exists="append")
    assert read(url, "SELECT v FROM v")["v"].to_pylist() == values


@pytest.mark.parametrize("other", ["int4", "inet"], ids=["binary copy", "text copy"])
@pytest.mark.parametrize(
    ("column", "value", "says"),
    [
        (("vector(2)", pa.float32()), [1.0], "the list has 1 numbers, the column's vectors 2"),
        (("vector", pa.float64()), [0.1], "a float of 32 bits would round it"),
        (("halfvec", pa.float32()), [2049.0], "a float of 16 bits would round it"),
        (("vector", pa.float32()), [float("nan")], "no NaN"),
        (("vector", pa.float32()), [None], "no NULL inside"),
        (("vector", pa.string()), ["1"], "a vector has floats"),
    ],
)
def test_what_a_vector_cannot_hold_is_refused(
    column: tuple[str, pa.DataType], value: list[Any], says: str, other: str, url: str
) -> None:
    native, kind = column
    run(f"DROP TABLE IF EXISTS v; CREATE TABLE v (v {native}, other {other})", url)
    table = pa.table({"v": pa.array([None, value], pa.list_(kind)), "other": pa.nulls(2)})
    with pytest.raises(longshore.DataError, match=says) as caught:
        longshore.write_sql(table, "v", url, if_exists="append")
    assert (caught.value.column, caught.value.row) == ("v", 1)


def test_a_new_table_and_a_parameter_have_vectors(url: str) -> None:
    frame = pd.DataFrame({"n": [1, 2], "v": [np.array([1, 2], np.float32), np.array([3, 4], np.float32)]})
    longshore.write_sql(frame, "new", url, types={"v": "vector(2)"}, if_exists="replace")
    query = "SELECT n, v FROM new ORDER BY v <-> $1::vector"
    back = longshore.read_sql(query, url, params=[[3.0, 3.5]])
    assert back["n"].tolist() == [2, 1]
    assert back["v"].tolist() == [[3, 4], [1, 2]]


def test_sql_reads_attached_vectors(url: str) -> None:
    run("DROP TABLE IF EXISTS a; CREATE TABLE a AS SELECT '[1,2]'::vector(2) AS v, '[1,2]'::halfvec AS h", url)
    found = longshore.sql("SELECT v, h FROM pg.a", attach={"pg": url}, return_type="arrow").to_pylist()
    assert found == [{"v": [1, 2], "h": "[1,2]"}]


# hstore.


def test_maps_are_written_into_hstore(gis: str) -> None:
    kind = pa.map_(pa.string(), pa.string())
    values = [[("a", "1"), ("b", None)], [], None, [('"\\,=>', "é"), ("", "NULL")]]
    for other in ("int4", "inet"):
        run(f"DROP TABLE IF EXISTS h; CREATE TABLE h (h elsewhere.hstore, other {other})", gis)
        longshore.write_sql(pa.table({"h": pa.array(values, kind)}), "h", gis, if_exists="append")
        found = read(gis, "SELECT h FROM h")["h"]
        assert [value and sorted(value) for value in found.to_pylist()] == [value and sorted(value) for value in values]
        twice = pa.table({"h": pa.array([[("a", "1"), ("a", "2")]], kind), "other": pa.nulls(1)})
        with pytest.raises(longshore.DataError, match="twice"):
            longshore.write_sql(twice, "h", gis, if_exists="append")


def test_structs_are_not_hstore(gis: str) -> None:
    run("DROP TABLE IF EXISTS h; CREATE TABLE h (h elsewhere.hstore)", gis)
    with pytest.raises(longshore.DataError, match="same keys in every row") as caught:
        longshore.write_sql(pd.DataFrame({"h": [{"a": "1"}]}), "h", gis, if_exists="append")
    assert "map of strings" in (caught.value.hint or "")


def test_hstore_in_frames(gis: str) -> None:
    query = "SELECT 'a=>1, b=>NULL'::elsewhere.hstore AS h"
    assert longshore.read_sql(query, gis)["h"].tolist() == [{"a": "1", "b": None}]
    assert longshore.read_sql(query, gis, return_type="polars")["h"].to_list() == [{"a": "1", "b": None}]


def test_a_type_of_ones_own_is_not_the_extensions(gis: str) -> None:
    query = "SELECT '(1)'::elsewhere.geometry AS g"
    setup = "DROP TYPE IF EXISTS elsewhere.geometry; CREATE TYPE elsewhere.geometry AS (x int)"
    assert read(gis, query, pre_execution_query=setup.split(";"))["g"].to_pylist() == [{"x": 1}]


# Ranges.

NEW_YEAR = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
RANGE = "struct<lower: {0}, upper: {0}, lower_inc: bool, upper_inc: bool, empty: bool>"


@both
@pytest.mark.parametrize(
    ("sql", "bound", "parts"),
    [
        ("'[1,3]'::int4range", "int32", (1, 4, True, False, False)),
        ("'(,)'::int8range", "int64", (None, None, False, False, False)),
        ("'empty'::numrange", "decimal128(10, 2)", (None, None, False, False, True)),
        ("'(1.50,2]'::numrange", "string", ("1.50", "2", False, True, False)),
        ("'[2024-01-01 01:00+01,)'::tstzrange", "timestamp[us, tz=UTC]", (NEW_YEAR, None, True, False, False)),
        ("'[0.1,2)'::pg_temp.float8s", "float64", (0.1, 2.0, True, False, False)),
        ("""'["a,b""\\\\",c]'::pg_temp.texts""", "string", ('a,b"\\', "c", True, True, False)),
    ],
)
def test_ranges_are_structs_where_schema_asks(
    sql: str, bound: str, parts: tuple[Any, ...], protocol: str, url: str
) -> None:
    setup = [f"CREATE TYPE pg_temp.{name}s AS RANGE (subtype = {name})" for name in ("float8", "text")]
    query = f"SELECT {sql} AS r, ARRAY[{sql}, NULL] AS a UNION ALL SELECT NULL, NULL"
    kind = RANGE.format(bound)
    table = read(url, query, protocol, schema={"r": kind, "a": f"list<{kind}>"}, pre_execution_query=setup)
    first, nothing = table["r"].to_pylist()
    assert nothing is None
    assert tuple(first.values()) == parts
    assert table["a"].to_pylist() == [[first, None], None]


def test_a_struct_that_is_not_a_ranges_is_refused(url: str) -> None:
    for kind in ("struct<lower: int32>", RANGE.format("int32").replace("empty: bool", "empty: int8")):
        with pytest.raises(longshore.NotSupportedError, match="not such a struct") as caught:
            read(url, "SELECT '[1,2)'::int4range AS r", schema={"r": kind})
        assert caught.value.column == "r"
    with pytest.raises(longshore.DataError, match="infinit") as caught_value:
        read(url, "SELECT '[2024-01-01,infinity)'::daterange AS r", schema={"r": RANGE.format("date32")})
    assert caught_value.value.row == 0


def test_structs_are_written_into_ranges(url: str) -> None:
    run("DROP TABLE IF EXISTS r; CREATE TABLE r (r numrange, d daterange)", url)
    text, flag = pa.string(), pa.bool_()
    names = ("lower", "upper", "lower_inc", "upper_inc", "empty")
    kind = pa.struct([*zip(names, (text, text, flag, flag, flag), strict=True)])

    def of(lower: str | None, upper: str | None, form: str) -> dict[str, Any]:
        flags = ("[" in form, "]" in form, "empty" in form)
        return dict(zip(names, (lower, upper, *flags), strict=True))

    rows = [
        (of("1.50", "2", "[)"), of("2024-01-01", "2024-02-01", "[)")),
        (of(None, None, "()"), of(None, None, "empty")),
        (None, None),
    ]
    table = pa.table({name: pa.array([row[at] for row in rows], kind) for at, name in enumerate("rd")})
    longshore.write_sql(table, "r", url, if_exists="append")
    back = read(url, "SELECT * FROM r", schema={name: RANGE.format("string") for name in "rd"})
    assert back.to_pylist() == table.to_pylist()
    contradictory = [of("1", "2", "empty"), of(None, None, "[ empty"), of(None, "2", "[)")]
    wrong = [(each, "contradict") for each in contradictory]
    for value, says in [*wrong, ({**of("1", "2", "[)"), "empty": None}, "not true or false")]:
        with pytest.raises(longshore.DataError, match=says) as caught:
            longshore.write_sql(pa.table({"r": pa.array([value], kind)}), "r", url, if_exists="append")
        assert (caught.value.column, caught.value.row) == ("r", 0)
    with pytest.raises(longshore.DataError, match="is not a range's"):
        longshore.write_sql(pa.table({"r": [{"lower": "1"}]}), "r", url, if_exists="append")


# Geometry.


@both
def test_the_bytes_are_those_of_st_asbinary(protocol: str, gis: str) -> None:
    texts = [
        "POINT ZM (1 2 3 4)",
        "POINT EMPTY",
        "CIRCULARSTRING(0 0, 1 1, 2 0)",
        "COMPOUNDCURVE(CIRCULARSTRING(0 0, 1 1, 2 0),(2 0, 3 0))",
        "CURVEPOLYGON(CIRCULARSTRING(0 0, 4 0, 4 4, 0 4, 0 0))",
        "MULTICURVE((0 0, 5 5),CIRCULARSTRING(4 0, 4 4, 8 4))",
        "MULTISURFACE(((0 0, 1 0, 1 1, 0 0)))",
        "POLYHEDRALSURFACE Z (((0 0 0, 0 1 0, 1 1 0, 0 0 0)))",
        "TIN Z (((0 0 0, 0 0 1, 0 1 0, 0 0 0)))",
        "TRIANGLE((0 0, 0 9, 9 0, 0 0))",
        "MULTIPOLYGON(((0 0, 1 0, 1 1, 0 0)),((5 5, 6 5, 6 6, 5 5)))",
        "GEOMETRYCOLLECTION Z (POINT Z (1 2 3), GEOMETRYCOLLECTION Z (LINESTRING Z (1 2 3, 4 5 6)))",
    ]
    made = "ST_GeomFromText(t, 4326)"
    query = f"SELECT {made} AS g, ST_AsBinary({made}, 'NDR') AS b FROM unnest($1::text[]) t"
    table = read(gis, query, protocol, params=[texts])
    assert table["g"].to_pylist() == table["b"].to_pylist()
    assert crs(table.schema.field("g")) == {"crs": "4326", "crs_type": "srid"}


def test_a_declared_srid_is_known_before_the_rows(gis: str) -> None:
    query = "SELECT 'SRID=3857;POINT Z (1 2 3)'::geometry(PointZ,3857) AS g, 'POINT(1 2)'::geography AS s"
    schema = longshore.schema(query, gis)
    assert crs(schema.field("g")) == {"crs": "3857", "crs_type": "srid"}
    assert crs(schema.field("s")) == {"crs": "4326", "crs_type": "srid", "edges": "spherical"}
    assert schema.field("g").metadata[b"native_type"] == b"geometry(PointZ,3857)"
    stream = longshore.read_sql(query, gis, return_type="arrow_stream")
    assert pa.table(stream).schema.equals(schema, check_metadata=True)


@both
@pytest.mark.parametrize("return_type", ["arrow", "pandas", "polars", "numpy"])
@pytest.mark.parametrize("partition", [{}, {"partition_on": "n", "partition_num": 2}], ids=["serial", "parts"])
def test_two_srids_in_a_column_are_an_error_that_names_the_row(
    partition: dict[str, Any], return_type: str, protocol: str, gis: str
) -> None:
    with pytest.raises(longshore.DataError, match="SRID is 3857, and that of the rows before it 4326") as caught:
        longshore.read_sql(
            "SELECT * FROM mixed",
            gis,
            return_type=return_type,
            options={"protocol": protocol, "ordered": True},
            **partition,
        )
    assert (caught.value.column, caught.value.row) == ("g", 5)
    texts = read(gis, "SELECT g FROM mixed ORDER BY n", protocol, schema={"g": "string"})["g"].to_pylist()
    assert texts[-1] == "0101000020110F0000000000000000F03F0000000000000040"


@both
def test_the_rows_of_a_stream_have_the_srid_that_its_schema_has(protocol: str, gis: str) -> None:
    arguments: dict[str, Any] = {"return_type": "arrow_stream", "options": {"protocol": protocol}}
    with pytest.raises(longshore.DataError, match="SRID is 4326, which the column does not declare") as caught:
        list(longshore.read_sql("SELECT g FROM mixed WHERE n < 5", gis, **arguments))
    assert (caught.value.column, caught.value.row) == ("g", 0)
    assert "geometry(Geometry,4326)" in (caught.value.hint or "")
    query = "SELECT g::geometry(Geometry,4326) AS g FROM mixed WHERE n <= 5"
    stream = longshore.read_sql(query, gis, **arguments)
    assert pa.table(stream).num_rows == 5
    # What is stopped fails its transaction, unless it has ended.
    with longshore.connect(gis, autocommit=True) as connection:
        cursor = connection.cursor()
        later = "SELECT ST_SetSRID('POINT(1 2)'::geometry, CASE WHEN n <= 65536 THEN 4326 ELSE 3857 END) AS g"
        cursor.execute(f"{later} FROM generate_series(1, 70000) n")
        with pytest.raises(pa.ArrowInvalid, match="3857"):
            list(cursor.fetch_record_batch())


def test_geometry_goes_back_with_its_srid(gis: str) -> None:
    table = read(gis, "SELECT n, g, 'POINT(1 2)'::geography(Point,4326) AS s FROM mixed WHERE n <= 5 ORDER BY n")
    for extra, setup in ((False, "n int"), (True, "n int, a inet")):
        data = table.append_column("a", pa.array(["1.1.1.1"] * 5)) if extra else table
        for kind in ("geometry", "geometry(Point,4326)", "geometry(Geometry,4326)"):
            run(f"DROP TABLE IF EXISTS g; CREATE TABLE g ({setup}, g {kind}, s geography)", gis)
            longshore.write_sql(data, "g", gis, if_exists="append")
            same = "SELECT count(*) AS n FROM g JOIN mixed USING (n) WHERE g.g IS NOT DISTINCT FROM mixed.g"
            assert read(gis, same)["n"].to_pylist() == [5]
            assert read(gis, "SELECT n, g, s FROM g ORDER BY n").equals(table)
    run("DROP TABLE g; CREATE TABLE g (n int, g geometry(Point,3857))", gis)
    with pytest.raises(longshore.DataError, match="the data's SRID is 4326, the column's 3857") as caught:
        longshore.write_sql(table.select(["n", "g"]), "g", gis, if_exists="append")
    assert caught.value.column == "g"


def test_sql_reads_attached_geometry_as_text(gis: str) -> None:
    # The engine would drop the SRID, and has no edges on a sphere.
    query = "SELECT g, s FROM pg.attached"
    run("DROP TABLE IF EXISTS attached", gis)
    run("CREATE TABLE attached AS SELECT g, 'POINT(1 2)'::geography AS s FROM mixed WHERE n = 6", gis)
    (row,) = longshore.sql(query, attach={"pg": gis}, return_type="arrow").to_pylist()
    assert row["g"] == "0101000020110F0000000000000000F03F0000000000000040"
    assert row["s"] == "0101000020E6100000000000000000F03F0000000000000040"


def test_another_clients_connection_does_not_lose_the_srid(gis: str) -> None:
    table = read(gis, "SELECT n, g FROM mixed WHERE n < 5")
    run("DROP TABLE IF EXISTS through; CREATE TABLE through (n int, g geometry)", gis)
    with psycopg.connect(gis) as connection:
        # Without a transaction, its URL would be enough.
        connection.execute("SELECT 1")
        assert longshore.read_sql("SELECT g FROM mixed WHERE n < 5", connection, return_type="arrow")["g"] == table["g"]
        with pytest.raises(longshore.NotSupportedError, match="SRID of a geometry") as caught:
            longshore.write_sql(table, "through", connection, if_exists="append")
    assert caught.value.column == "g"


def test_a_new_table_has_geometry(gis: str) -> None:
    longshore.copy(
        "SELECT n, g::geometry(Point,4326) AS g FROM mixed WHERE n < 5", gis, "copied", gis, if_exists="replace"
    )
    found = read(gis, "SELECT * FROM copied ORDER BY n")
    assert found.schema.field("g").metadata[b"native_type"] == b"geometry(Geometry,4326)"
    assert found["g"].to_pylist() == read(gis, "SELECT g FROM mixed WHERE n < 5 ORDER BY n")["g"].to_pylist()
    inside = "SELECT count(*) AS n FROM copied WHERE ST_Equals(g, ST_SetSRID($1::geometry, 4326))"
    assert read(gis, inside, params=[found["g"][2].as_py()])["n"].to_pylist() == [1]
