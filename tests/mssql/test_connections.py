"""How sessions begin: logins, encryption, errors."""

import contextlib
import re
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

import longshore
from tests.mssql.reading import answer, prepare, read, rows, url
from tests.servers import MSSQL
from tests.tds import tokens
from tests.tds.tokens import Column, Count, Cut, Info, Raw, ServerError
from tests.tds.types import MAX, Type, nvarchar, simple


def test_a_wrong_password_is_the_servers_own_error_at_once(mssql: MSSQL) -> None:
    mssql.refuse(18456, "Login failed for user 'sa'.")
    begun = time.monotonic()
    with pytest.raises(longshore.OperationalError, match=r"Login failed for user 'sa'\. \(error 18456\)") as caught:
        read(mssql)
    assert time.monotonic() - begun < 2
    assert caught.value.sqlstate == "28000"
    assert str(mssql.password) not in str(caught.value)


@pytest.mark.parametrize("encrypt", ["off", "on", "strict"])
def test_each_kind_of_encryption(mssql: MSSQL, encrypt: str) -> None:
    answer(mssql, rows(simple("int"), 7))
    port = {"off": mssql.login_port, "on": mssql.on_port, "strict": mssql.strict_port}[encrypt]
    trust = (
        {"certificate": str(mssql.certificates.server)} if encrypt == "strict" else {"trust_server_certificate": "true"}
    )
    address = url(mssql, port=str(port), encrypt=encrypt, **trust)
    assert longshore.read_sql("SELECT v FROM boats", address, return_type="arrow")["v"].to_pylist() == [7]


def test_a_certificate_that_is_not_trusted_is_an_error_with_what_to_do(mssql: MSSQL) -> None:
    prepare(mssql)
    with pytest.raises(longshore.OperationalError, match="certificate") as caught:
        longshore.read_sql("SELECT 1", url(mssql, port=str(mssql.on_port), encrypt="on"))
    assert "trust-server-certificate" in str(caught.value)


def test_the_servers_own_certificate_may_be_named(mssql: MSSQL) -> None:
    answer(mssql, rows(simple("int"), 7))
    address = url(mssql, port=str(mssql.on_port), encrypt="on", certificate=str(mssql.certificates.server))
    assert longshore.read_sql("SELECT v FROM boats", address, return_type="arrow")["v"].to_pylist() == [7]
    wrong = url(mssql, port=str(mssql.on_port), encrypt="on", certificate=str(mssql.certificates.authority))
    with pytest.raises(longshore.OperationalError, match="certificate"):
        longshore.read_sql("SELECT v FROM boats", wrong)


def test_what_the_login_says_comes_from_the_settings(mssql: MSSQL) -> None:
    answer(mssql, rows(simple("int"), 7))
    longshore.read_sql("SELECT v FROM boats", url(mssql, application_name="quay", application_intent="ReadOnly"))
    (login,) = mssql.requests("login")
    assert "quay" in login.text
    assert "master" in login.text


def redirect(server: MSSQL, host: str, to: str, port: int) -> None:
    """Have the server redirect who logs in to it by the name of a host."""
    where = f'"server":"{host}'
    server.answer(where, Raw(tokens.redirect(to, port)), kind="login", match="contains")


def test_a_redirect_is_followed(mssql: MSSQL) -> None:
    answer(mssql, rows(simple("int"), 7))
    redirect(mssql, "127.0.0.1", "localhost", mssql.port)
    assert longshore.read_sql("SELECT v FROM boats", url(mssql), return_type="arrow")["v"].to_pylist() == [7]
    first, second = (login.text for login in mssql.requests("login"))
    assert ('"server":"127.0.0.1' in first, '"server":"localhost' in second) == (True, True)


def test_redirects_without_an_end_are_an_error(mssql: MSSQL) -> None:
    redirect(mssql, "", "localhost", mssql.port)
    with pytest.raises(longshore.InternalError, match="more redirection tokens than expected"):
        read(mssql)
    assert len(mssql.requests("login")) == 11


def test_a_redirect_to_nowhere_names_the_place(mssql: MSSQL) -> None:
    redirect(mssql, "127.0.0.1", "localhost", 1)
    with pytest.raises(longshore.OperationalError, match=r"localhost:1.*refused"):
        read(mssql)


def test_a_token_may_come_from_a_callable(mssql: MSSQL) -> None:
    answer(mssql, rows(simple("int"), 7))
    asked: list[None] = []

    def token() -> str:
        asked.append(None)
        return "token-of-the-day"

    settings = {
        "scheme": "mssql",
        "host": "127.0.0.1",
        "port": str(mssql.on_port),
        "authentication": "token",
        "password": token,
        "trust_server_certificate": "true",
    }
    frame = longshore.read_sql("SELECT v FROM boats", settings, return_type="arrow")
    assert (frame["v"].to_pylist(), len(asked)) == ([7], 1)


def test_a_server_that_is_not_there_is_named() -> None:
    with pytest.raises(longshore.OperationalError, match=r"127\.0\.0\.1:1"):
        longshore.read_sql("SELECT 1", "mssql://sa:hidden@127.0.0.1:1?encrypt=off")


@pytest.mark.parametrize(
    ("number", "severity", "error", "state"),
    [
        (208, 16, longshore.ProgrammingError, "42S02"),
        (2627, 14, longshore.IntegrityError, "23000"),
        (8134, 16, longshore.DataError, "22012"),
        (1205, 13, longshore.OperationalError, "40001"),
    ],
)
def test_errors_have_the_servers_number_and_a_state(
    mssql: MSSQL, number: int, severity: int, error: type[longshore.Error], state: str
) -> None:
    answer(mssql, ServerError(number, "It failed.", severity))
    with pytest.raises(error, match=rf"It failed\. \(error {number}\)") as caught:
        read(mssql)
    assert caught.value.sqlstate == state


def test_an_error_after_the_first_rows_is_an_error(mssql: MSSQL) -> None:
    answer(mssql, rows(simple("int"), 1, 2), ServerError(8134, "Divide by zero error encountered."))
    with pytest.raises(longshore.DataError, match="Divide by zero"):
        read(mssql)


@pytest.mark.parametrize(("kind", "values"), [(simple("int"), (1, 2)), (nvarchar(MAX), ("a", "b"))], ids=["int", "max"])
def test_a_message_amid_the_rows_is_passed_over(mssql: MSSQL, kind: Type, values: tuple[Any, Any]) -> None:
    columns = [Column("v", kind)]
    first, second = (tokens.row(columns, (value,)) for value in values)
    said = tokens.message(Info(3621, "It goes on."))
    answer(mssql, Raw(tokens.metadata(columns) + first + said + first + second + said + second))
    assert read(mssql)["v"].to_pylist() == [values[0], *values, values[1]]


@pytest.mark.parametrize("size", [10, 60, 500])
def test_a_connection_that_ends_is_never_a_whole_result(mssql: MSSQL, size: int) -> None:
    answer(mssql, rows(simple("int"), *range(100)), Cut(size))
    with pytest.raises(longshore.OperationalError):
        read(mssql)


def test_several_results_are_refused(mssql: MSSQL) -> None:
    answer(mssql, rows(simple("int"), 1), rows(simple("int"), 2))
    with pytest.raises(longshore.NotSupportedError, match="several results"):
        read(mssql)


def test_a_statement_without_rows_says_so(mssql: MSSQL) -> None:
    answer(mssql, Count(3))
    with pytest.raises(longshore.ProgrammingError, match="returns no rows"):
        read(mssql)


def test_counts_before_the_rows_are_passed_over(mssql: MSSQL) -> None:
    answer(mssql, Count(3), rows(simple("int"), 1), Count(2))
    assert read(mssql)["v"].to_pylist() == [1]


@contextlib.contextmanager
def browser(instance: str, port: int) -> Iterator[list[bytes]]:
    """Answer as SQL Server's browser (MS-SQLR) that the one instance listens on this port; gives what it was asked."""
    asked: list[bytes] = []
    text = f"ServerName;HARBOUR;InstanceName;{instance};IsClustered;No;Version;16.0.1000.6;tcp;{port};;".encode()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listening:
        listening.bind(("127.0.0.1", 1434))

        def reply() -> None:
            request, client = listening.recvfrom(1024)
            asked.append(request)
            if request:
                listening.sendto(b"\x05" + len(text).to_bytes(2, "little") + text, client)

        thread = threading.Thread(target=reply)
        thread.start()
        try:
            yield asked
        finally:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
                # So that a test that asks nothing ends, too.
                other.sendto(b"", ("127.0.0.1", 1434))
            thread.join()


# The client keeps what it has been told of an instance.
@pytest.mark.parametrize(("instance", "host", "setting"), [("QUAY", "", "&instance=QUAY"), ("DOCK", "%5CDOCK", "")])
def test_a_named_instances_port_comes_from_the_browser(mssql: MSSQL, instance: str, host: str, setting: str) -> None:
    answer(mssql, rows(simple("int"), 7))
    address = re.sub(r":\d+/", f"{host}/", url(mssql)) + setting
    with browser(instance, mssql.port) as asked:
        assert longshore.read_sql("SELECT v FROM boats", address, return_type="arrow")["v"].to_pylist() == [7]
    assert asked == [b"\x04" + instance.encode() + b"\0"]
