"""The public test suite of PEP 249, on every source; a test that is overridden stands here with its reason."""

import unittest
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import dbapi20
import pytest

import longshore
from tests.contract.conftest import Database

pytestmark = [pytest.mark.usefixtures("leaves_nothing"), pytest.mark.costly]

TESTS = unittest.TestLoader().getTestCaseNames(dbapi20.DatabaseAPI20Test)


def closing_twice(case: Any) -> None:
    """See that closing twice is not an error: PEP 249 asks for none, and `with` may have closed before."""
    connection = case.connected()
    connection.close()
    connection.close()


def one_result(case: Any) -> None:
    """See that a statement has one result: the suite leaves this test to the driver."""
    with case.connected() as connection, connection.cursor() as cursor:
        assert cursor.execute("SELECT 'only' AS t").nextset() is None
        assert cursor.fetchall() == [("only",)]


def whole_values(case: Any) -> None:
    """See that a value is never cut, whatever its size was said to be: the suite leaves this test to the driver."""
    with case.connected() as connection, connection.cursor() as cursor:
        cursor.setoutputsize(3, 0)
        assert cursor.execute("SELECT 'a long text' AS t").fetchall() == [("a long text",)]


def no_procedures(case: Any) -> None:
    """See that a source without stored procedures says so."""
    refused = pytest.raises(longshore.NotSupportedError, match="has no stored procedures")
    with case.connected() as connection, connection.cursor() as cursor, refused:
        cursor.callproc("lower", ("FOO",))


#: Overridden for every source.
OVERRIDDEN: dict[str, Callable[[Any], None]] = {
    "test_non_idempotent_close": closing_twice,
    "test_nextset": one_result,
    "test_setoutputsize": whole_values,
}
#: Sources whose `callproc` is a refusal.
WITHOUT_PROCEDURES = {
    "sqlite",
    "duckdb",
    "store",
    "clickhouse",
    "trino",
    "bigquery",
    "oracle",
    "adbc_postgresql",
    "odbc_postgresql",
    "odbc_mariadb",
    "served_duckdb",
    "served_store",
    "served_postgresql",
}
#: MySQL's and MariaDB's own functions are not procedures.
PROCEDURE = "CREATE PROCEDURE in_lower_case (word varchar(20)) SELECT lower(word)"


@contextmanager
def procedure(database: Database) -> Iterator[str]:
    """Give the name of what makes a text lower-case."""
    if database.source not in {"mysql", "mariadb"}:
        yield "lower"
        return
    database.execute(PROCEDURE)
    yield "in_lower_case"
    database.execute("DROP PROCEDURE in_lower_case")


class Outcome(unittest.TestResult):
    """The result of a test of the suite, with the errors themselves."""

    def __init__(self) -> None:
        """Begin without an error."""
        super().__init__()
        self.raised: list[BaseException] = []

    def addError(self, _test: Any, err: Any) -> None:  # noqa: N802  unittest's own name
        """Keep the error itself."""
        self.raised.append(err[1])

    def addFailure(self, test: Any, err: Any) -> None:  # noqa: N802  likewise
        """Keep the failure itself."""
        self.addError(test, err)

    def addSubTest(self, _test: Any, subtest: Any, err: Any) -> None:  # noqa: N802  likewise
        """Keep what a part of the test raises."""
        if err is not None:
            self.addError(subtest, err)


@pytest.mark.parametrize("name", TESTS)
def test_compliance(database: Database, name: str) -> None:
    overridden = {**OVERRIDDEN, **({"test_callproc": no_procedures} if database.source in WITHOUT_PROCEDURES else {})}

    class Case(dbapi20.DatabaseAPI20Test):  # type: ignore[misc]  # it has no types
        driver = longshore
        connect_args = (database.url,)
        # Where each statement is a transaction of its own, closing without a commit is an error: it undoes nothing.
        connect_kw_args = {"autocommit": not database.quirks.has_transactions}  # noqa: RUF012  the suite's own form

        def connected(self) -> longshore.Connection:
            connection: longshore.Connection = self._connect()
            return connection

    if name in overridden:
        setattr(Case, name, overridden[name])
    outcome = Outcome()
    with procedure(database) as Case.lower_func:
        Case(name).run(outcome)
    assert (outcome.testsRun, outcome.skipped) == (1, [])
    with database.can(f"test_compliance.{name}"):
        for error in outcome.raised:
            raise error
