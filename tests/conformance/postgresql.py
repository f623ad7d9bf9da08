"""What is PostgreSQL's own in the cases: how its tables are made, and how two protocols carry them."""

from tests.conformance.case import Case

NAME = "PostgreSQL"
#: Each runs all cases.
PROTOCOLS = ("binary", "text")
#: The session's time zone, which must not matter: it is not UTC, and has not always been whole hours from it.
SETTINGS = "SET TimeZone = 'Europe/Amsterdam'"


def setup(case: Case, cells: list[str]) -> list[str]:
    """Return the statements that make a table `cells` of the case's cells, one a row, gone with the session."""
    statements = [SETTINGS, "SET search_path = pg_temp, public", *case.setup]
    if case.query is None:
        statements.append(f"CREATE TEMP TABLE cells (id int, value {case.type})")
        rows = ", ".join(f"({row}, CAST({cell} AS {case.type}))" for row, cell in enumerate(cells))
        statements += [f"INSERT INTO cells VALUES {rows}"] if cells else []
    return statements


def query(case: Case, where: str = "true") -> str:
    """Return the query that reads the column `value` in order."""
    if case.query is not None:
        return f"SELECT value FROM ({case.query}) AS cells (value) WHERE {where}"
    return f"SELECT value FROM cells WHERE {where} ORDER BY id"
