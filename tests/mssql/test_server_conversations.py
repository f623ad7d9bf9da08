"""The test server as other clients see it: logins, encryption, errors, messages, attentions, ends of connections."""

import contextlib
import json
import subprocess
from typing import Any

import mssql_python
import pymssql
import pytds
import pytest

from tests import installations
from tests.conformance.mssql_cases import CASES
from tests.mssql import jdbc, others
from tests.servers import MSSQL
from tests.tds.tokens import Column, Count, Cut, Info, Rows, ServerError, Wait
from tests.tds.types import SQL_VARIANT, fixed, nvarchar

ONE = Rows([Column("one", fixed("int"))], [(1,)])
WRONG = ServerError(208, "Invalid object name 'nothing'.", severity=16, state=3, line=7, procedure="harbour_master")


def _jdbc_url(server: MSSQL, port: int, **settings: str) -> str:
    told = {"user": server.user, "password": f"{{{server.password}}}", **settings}
    return f"jdbc:sqlserver://{server.host}:{port};" + ";".join(f"{key}={value}" for key, value in told.items())


@pytest.mark.parametrize("way", ["login", "on", "strict"])
def test_odbc_encrypts(mssql: MSSQL, way: str) -> None:
    """The login alone, all, and as TDS 8 does."""
    mssql.answer("SELECT 1", ONE)
    port, settings = {
        "login": (mssql.login_port, {}),
        "on": (mssql.on_port, {"Encrypt": "yes"}),
        "strict": (mssql.strict_port, {"Encrypt": "strict", "ServerCertificate": str(mssql.certificates.server)}),
    }[way]
    text = others.odbc(mssql, port, **settings)
    with contextlib.closing(mssql_python.connect(text, autocommit=True)) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        assert [tuple(row) for row in cursor.fetchall()] == [(1,)]
    assert json.loads(mssql.requests("login")[0].text)["user"] == mssql.user


def test_jdbc_encrypts_strictly(mssql: MSSQL) -> None:
    """TDS 8, with the certificate that it must find."""
    mssql.answer("SELECT 1", ONE)
    certificate = str(mssql.certificates.server)
    url = _jdbc_url(mssql, mssql.strict_port, encrypt="strict", serverCertificate=certificate)
    assert jdbc.read(url, ["SELECT 1"]) == [["1"]]


def test_freetds_encrypts(mssql: MSSQL) -> None:
    """By tsql, which shows seven digits."""
    mssql.answer("set textsize", Count(), kind="batch", match="starts")
    mssql.answer("SELECT 'é'\n", Rows([Column("", nvarchar(9))], [("é漢",)]), kind="batch")
    program = installations.program("tsql", "freetds-bin")
    command = [program, "-H", mssql.host, "-p", str(mssql.on_port), "-U", mssql.user, "-P", "harb0ur!", "-o", "q"]
    done = subprocess.run(
        command,
        input="SELECT 'é'\ngo\n".encode(),
        env={"TDSVER": "7.4", "LC_ALL": "C.UTF-8"},
        capture_output=True,
        check=False,
    )
    assert "é漢" in done.stdout.decode(), done.stderr


def test_a_login_is_refused(mssql: MSSQL) -> None:
    """With the server's own number and text."""
    text = f"Login failed for user '{mssql.user}'."
    mssql.refuse(18456, text)
    with pytest.raises(pytds.Error, match=text):
        others.CLIENTS["python-tds"](mssql)
    with pytest.raises(pymssql.OperationalError, match="18456"):
        others.CLIENTS["pymssql"](mssql)
    with pytest.raises(mssql_python.OperationalError, match=text):
        others.CLIENTS["mssql-python"](mssql)


def test_an_error_has_all_its_parts(mssql: MSSQL) -> None:
    """Number, state, severity, line and procedure."""
    mssql.answer("SELECT 1", WRONG)
    with contextlib.closing(others.CLIENTS["python-tds"](mssql)) as connection, connection.cursor() as cursor:
        with pytest.raises(pytds.DatabaseError) as raised:
            cursor.execute("SELECT 1")
        error: Any = raised.value
        assert (error.number, error.state, error.severity, error.line) == (208, 3, 16, 7)
        assert (error.text, error.procname, error.srvname) == (WRONG.text, "harbour_master", "harbour")


def test_an_error_after_rows(mssql: MSSQL) -> None:
    """The rows before it are there, and so is the error."""
    mssql.answer("SELECT 1", ONE, WRONG)
    with contextlib.closing(others.CLIENTS["mssql-python"](mssql)) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        assert cursor.fetchone()[0] == 1
        with pytest.raises(mssql_python.Error, match="Invalid object name"):
            cursor.nextset()


def test_a_message_is_not_an_error(mssql: MSSQL) -> None:
    """PRINT's."""
    mssql.answer("SELECT 1", Info(50000, "ahoy"), ONE)
    with contextlib.closing(others.CLIENTS["python-tds"](mssql)) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        assert cursor.fetchall() == [(1,)]
        assert [message.args[0] for _, message in cursor.messages] == ["ahoy"]


def test_several_results_and_counts(mssql: MSSQL) -> None:
    """One after the other, and NULLs in a bitmap."""
    columns = [Column(name, nvarchar(9)) for name in "abcdefghi"]
    row = ("x", None, None, None, None, None, None, None, "y")
    mssql.answer("SELECT 1", ONE, Count(7), Rows(columns, [row], compressed=True))
    with contextlib.closing(others.CLIENTS["python-tds"](mssql)) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        assert cursor.fetchall() == [(1,)]
        assert cursor.nextset()
        assert cursor.rowcount == 7
        assert cursor.nextset()
        assert cursor.fetchall() == [row]


def test_odbc_reads_each_variant(mssql: MSSQL) -> None:
    """By itself, for mssql-python takes the type of the first value of a column for all; this one it shows as text."""
    (case,) = (case for case in CASES if case.type is SQL_VARIANT)
    with contextlib.closing(others.CLIENTS["mssql-python"](mssql)) as connection, connection.cursor() as cursor:
        for kind, value in case.values:
            mssql.answer("SELECT 1", Rows([Column("value", SQL_VARIANT)], [((kind, value),)]), kind="batch")
            cursor.execute("SELECT 1")
            found = [row[0] for row in cursor.fetchall()]
            shown = value if kind.name.startswith("datetimeoffset") else others.shown("mssql-python", kind, value)
            assert [*map(repr, found)] == [repr(shown)]


def test_an_attention_ends_a_wait(mssql: MSSQL) -> None:
    """With DONE_ATTN, after which the connection is good for the next; JDBC sends it after a second."""
    mssql.answer("SELECT 1", Wait())
    mssql.answer("SELECT 2", ONE)
    found = jdbc.read(_jdbc_url(mssql, mssql.port, encrypt="false", queryTimeout="1"), ["SELECT 1", "SELECT 2"])
    assert found == [["The query has timed out."], ["1"]]
    assert [request.kind for request in mssql.requests()] == ["login", "batch", "attention", "batch", "closed"]


def test_an_attention_ends_rows(mssql: MSSQL) -> None:
    """At the end of one, though a million more would come."""
    mssql.answer("SELECT 1", Rows([Column("text", nvarchar(4000))], [("x" * 4000,)], times=1_000_000))
    mssql.answer("SELECT 2", ONE)
    with contextlib.closing(others.CLIENTS["mssql-python"](mssql)) as connection:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
            assert len(cursor.fetchmany(3)) == 3
        with connection.cursor() as cursor:
            cursor.execute("SELECT 2")
            assert [tuple(row) for row in cursor.fetchall()] == [(1,)]
    assert mssql.requests("attention")


def test_a_connection_that_ends_within_an_answer(mssql: MSSQL) -> None:
    """So many bytes of it, and no more."""
    mssql.answer("SELECT 1", ONE, Cut(10))
    with contextlib.closing(others.CLIENTS["python-tds"](mssql)) as connection, pytest.raises(pytds.Error):
        connection.cursor().execute("SELECT 1")


def test_what_has_no_answer_is_an_error(mssql: MSSQL) -> None:
    """A statement that the test did not think of is told of."""
    told = pytest.raises(pytds.DatabaseError, match="the tests have no answer to this batch: SELECT 9")
    with contextlib.closing(others.CLIENTS["python-tds"](mssql)) as connection, told:
        connection.cursor().execute("SELECT 9")
