"""Types that extensions bring."""

import struct

import pyarrow as pa

from tests.conformance.case import Case, Misfit


def wkb(kind: int, *parts: float) -> bytes:
    """Return ISO's well-known binary of a geometry: its kind, counts as integers, and coordinates as floats."""
    packed = (struct.pack("<I" if isinstance(part, int) else "<d", part) for part in parts)
    return struct.pack("<BI", 1, kind) + b"".join(packed)


CASES = (
    Case(type="citext", arrow=pa.string(), cells={"'Abc'": "Abc", "''": ""}, needs=("citext",)),
    Case(
        type="hstore",
        arrow=pa.map_(pa.string(), pa.string()),
        cells={
            "'a=>1, b=>NULL'": [("a", "1"), ("b", None)],
            "''": [],
            r"""hstore('"é\', ' ,=>')""": [('"é\\', " ,=>")],
            "hstore('', 'NULL')": [("", "NULL")],
        },
        needs=("hstore",),
    ),
    Case(type="ltree", arrow=pa.string(), cells={"'top.science'": "top.science", "''": ""}, needs=("ltree",)),
    Case(
        type="vector(3)",
        arrow=pa.list_(pa.float32(), 3),
        cells={
            "'[1,2.5,-3]'": [1, 2.5, -3],
            "'[0.1,1e-40,3e38]'": [0.10000000149011612, 9.99994610111476e-41, 3.0000000054977558e38],
        },
        needs=("vector",),
    ),
    Case(
        type="vector",
        arrow=pa.list_(pa.float32()),
        cells={"'[1]'": [1], "'[-0,16777216]'": [-0.0, 16777216]},
        needs=("vector",),
        shown="vector without a length",
    ),
    Case(
        type="halfvec(2)",
        arrow=pa.list_(pa.float16(), 2),
        cells={"'[1,-2.5]'": [1, -2.5], "'[65504,6e-8]'": [65504, 5.960464477539063e-08]},
        needs=("vector",),
    ),
    Case(
        type="halfvec",
        arrow=pa.list_(pa.float16()),
        cells={"'[1,2,3]'": [1, 2, 3]},
        needs=("vector",),
        shown="halfvec without a length",
    ),
    Case(
        type="sparsevec(5)",
        arrow=pa.string(),
        cells={"'{1:1,3:2.5}/5'": "{1:1,3:2.5}/5"},
        native="sparsevec",
        needs=("vector",),
        shown="sparsevec",
    ),
    Case(
        type="geometry(Point,4326)",
        arrow=pa.binary(),
        cells={"'SRID=4326;POINT(1 -2.5)'": wkb(1, 1.0, -2.5)},
        extension="geoarrow.wkb",
        needs=("postgis",),
    ),
    Case(
        type="geometry",
        arrow=pa.binary(),
        cells={
            "'POINT(1 2)'": wkb(1, 1.0, 2.0),
            "'LINESTRING ZM (1 2 3 4, 5 6 7 8)'": wkb(3002, 2, *map(float, range(1, 9))),
            "'POLYGON((0 0, 1 0, 0 1, 0 0))'": wkb(3, 1, 4, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0),
            "'GEOMETRYCOLLECTION M (POINT M (1 2 3))'": wkb(2007, 1) + wkb(2001, 1.0, 2.0, 3.0),
            "'MULTIPOINT EMPTY'": wkb(4, 0),
        },
        misfits=(Misfit(sql="'SRID=3857;POINT(1 2)'", says="SRID is 3857"),),
        extension="geoarrow.wkb",
        needs=("postgis",),
    ),
    Case(
        type="geography",
        arrow=pa.binary(),
        cells={"'POINT(1 2)'": wkb(1, 1.0, 2.0)},
        misfits=(Misfit(sql="'SRID=4267;POINT(1 2)'", says="SRID is 4267"),),
        extension="geoarrow.wkb",
        needs=("postgis",),
    ),
)
