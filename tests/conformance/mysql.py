"""What is MySQL's and MariaDB's own in the cases: how tables are made, and how two protocols carry them."""

from collections.abc import Iterable

from tests.conformance.case import Case

NAME = "MySQL"
#: Each runs all cases.
PROTOCOLS = ("binary", "text")
#: Zero dates and enums' error values may be written.
SETTINGS = ("SET sql_mode = ''", "SET NAMES utf8mb4")


def setup(case: Case, cells: Iterable[str]) -> list[str]:
    """Return the statements that make a table `cells` of the case's cells, one a row, gone with the session."""
    statements = [*SETTINGS, *case.setup]
    if case.query is None:
        statements.append(f"CREATE TEMPORARY TABLE cells (id int, value {case.type} NULL)")
        rows = ", ".join(f"({row}, {cell})" for row, cell in enumerate(cells))
        statements += [f"INSERT INTO cells VALUES {rows}"] if rows else []
    return statements


def query(case: Case, where: str = "true") -> str:
    """Return the query that reads the column `value` in order."""
    if case.query is not None:
        return f"{case.query} AS value FROM dual WHERE {where}"
    return f"SELECT value FROM cells WHERE {where} ORDER BY id"
