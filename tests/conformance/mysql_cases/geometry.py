"""Geometry: the server's own bytes, four of a reference system and then well-known binary."""

import struct

import pyarrow as pa

from tests.conformance.mysql_cases.case import MySQLCase


def _point(system: int, x: float, y: float) -> bytes:
    return struct.pack("<IBIdd", system, 1, 1, x, y)


POINTS = {
    "ST_GeomFromText('POINT(1 2.5)')": _point(0, 1, 2.5),
    "ST_GeomFromText('POINT(0 0)', 4326)": _point(4326, 0, 0),
}

CASES = (
    # Only MariaDB tells of what kind a geometry is.
    MySQLCase(type="point", arrow=pa.binary(), cells=POINTS, only="MariaDB"),
    MySQLCase(type="point", native="geometry", arrow=pa.binary(), cells=POINTS, only="MySQL"),
    MySQLCase(
        type="geometry",
        arrow=pa.binary(),
        cells={"ST_GeomFromText('LINESTRING(0 0, 1 1)')": struct.pack("<IBIIdddd", 0, 1, 2, 2, 0, 0, 1, 1)},
    ),
)
