"""The cases of MySQL and MariaDB, one file per kind of type."""

from tests.conformance.mysql_cases import (
    binary,
    bits,
    dates,
    decimals,
    enums,
    expressions,
    floats,
    geometry,
    integers,
    json,
    network,
    text,
    times,
    timestamps,
    uuids,
)
from tests.conformance.mysql_cases.case import MySQLCase

CASES: tuple[MySQLCase, ...] = (
    *integers.CASES,
    *floats.CASES,
    *decimals.CASES,
    *bits.CASES,
    *dates.CASES,
    *times.CASES,
    *timestamps.CASES,
    *text.CASES,
    *binary.CASES,
    *enums.CASES,
    *json.CASES,
    *uuids.CASES,
    *network.CASES,
    *geometry.CASES,
    *expressions.CASES,
)
