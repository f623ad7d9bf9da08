"""The types of SQL Server as data: what the test server sends, and what every client must make of it."""

from tests.conformance.mssql_cases import binary, numbers, others, temporal, text
from tests.conformance.mssql_cases.case import MSSQLCase

CASES: tuple[MSSQLCase, ...] = (*numbers.CASES, *temporal.CASES, *text.CASES, *binary.CASES, *others.CASES)
