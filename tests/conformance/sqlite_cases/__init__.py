"""The cases of SQLite, one file per kind of type."""

from tests.conformance.sqlite_cases import blobs, booleans, floats, integers, temporal, texts, undeclared
from tests.conformance.sqlite_cases.case import SQLiteCase

CASES: tuple[SQLiteCase, ...] = (
    *integers.CASES,
    *booleans.CASES,
    *floats.CASES,
    *texts.CASES,
    *blobs.CASES,
    *temporal.CASES,
    *undeclared.CASES,
)
