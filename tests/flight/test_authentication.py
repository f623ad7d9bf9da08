"""Who calls: by name and password, by token, by certificate; and what goes with every call."""

import base64
from collections.abc import Iterator, Mapping

import pyarrow as pa
import pytest
from pyarrow import flight

import longshore
from tests.certificates import Certificates
from tests.flight.scripted import ScriptedFlight, script, serving

ONE = pa.table({"n": [1]})
BASIC = "Basic " + base64.b64encode(b"me:secret/word").decode()
OPTIONS = {"return_type": "arrow"}


def read(url: str | Mapping[str, object]) -> pa.Table:
    """Read one row."""
    return longshore.read_sql("SELECT one", url, return_type="arrow")


class Welcome(flight.ServerAuthHandler):  # type: ignore[misc]
    """Lets everyone shake hands."""

    def authenticate(self, outgoing: object, incoming: object) -> None:
        """Ask nothing."""

    def is_valid(self, _token: bytes) -> bytes:
        """Take any."""
        return b""


class Guard:
    """Gives a token for the right password, and takes the newest alone."""

    def __init__(self) -> None:
        """Have given none."""
        self.given = 0
        self.refused = 0

    def __call__(self, headers: Mapping[str, list[str]]) -> Mapping[str, str]:
        """Look at a call's headers."""
        (authorization,) = headers.get("authorization", [""])
        if authorization == BASIC:
            self.given += 1
            return {"authorization": f"Bearer {self.given}"}
        if authorization == f"Bearer {self.given}":
            return {}
        self.refused += 1
        raise flight.FlightUnauthenticatedError("wrong")


@pytest.fixture
def guarded() -> Iterator[tuple[ScriptedFlight, Guard]]:
    """Give a server that wants a password."""
    guard = Guard()
    with serving({"one": script(ONE)}, answer=guard, auth_handler=Welcome()) as server:
        yield server, guard


def test_a_password_is_exchanged_for_a_token(guarded: tuple[ScriptedFlight, Guard]) -> None:
    server, guard = guarded
    place = f"127.0.0.1:{server.port}"
    assert read(f"grpc://me:secret%2Fword@{place}").equals(ONE)
    assert read({"scheme": "grpc", "host": "127.0.0.1", "port": server.port, "user": "me", "password": "secret/word"})
    asked = [headers["authorization"][0] for headers in server.seen.headers]
    assert asked == [BASIC, "Bearer 1", "Bearer 1", BASIC, "Bearer 2", "Bearer 2"]
    assert guard.refused == 0


def test_a_token_that_is_over_is_exchanged_again(guarded: tuple[ScriptedFlight, Guard]) -> None:
    server, guard = guarded
    with longshore.connect(f"grpc://me:secret%2Fword@127.0.0.1:{server.port}", autocommit=True) as connection:
        for _ in range(2):
            assert longshore.read_sql("SELECT one", connection, return_type="arrow").equals(ONE)
            guard.given += 1
    assert guard.refused == 1


def test_a_wrong_password_is_refused_and_not_shown(guarded: tuple[ScriptedFlight, Guard]) -> None:
    server, _ = guarded
    for login in ("me:hidden@", ""):
        with pytest.raises(longshore.OperationalError) as failure:
            read(f"grpc://{login}127.0.0.1:{server.port}")
        assert failure.value.sqlstate == "28000"
        assert "hidden" not in str(failure.value)
        assert "token" in (failure.value.hint or "")


def test_a_token_is_the_callers_or_asked_for_again() -> None:
    taken = iter(["first", "second", "second", "second"])

    def answer(headers: Mapping[str, list[str]]) -> Mapping[str, str]:
        if headers["authorization"] != [f"Bearer {next(taken)}"]:
            raise flight.FlightUnauthenticatedError("wrong")
        return {}

    tokens = iter(["first", "second"])
    with serving({"one": script(ONE)}, answer=answer) as server:
        place = {"scheme": "grpc", "host": "127.0.0.1", "port": server.port}
        assert read({**place, "password": lambda: next(tokens)}).equals(ONE)
    with serving({"one": script(ONE)}, answer=lambda _: {}) as server:
        assert read(server.url(token="t%2F1")).equals(ONE)
        assert server.seen.headers[0]["authorization"] == ["Bearer t/1"]


def test_a_password_needs_a_user() -> None:
    with pytest.raises(longshore.InterfaceError, match="needs a user"):
        read("grpc://127.0.0.1:1?password=a")
    with pytest.raises(longshore.InterfaceError, match="not both"):
        read("grpc://me@127.0.0.1:1?token=a")


def test_headers_go_with_every_call_and_cookies_come_back() -> None:
    answers = iter([{"set-cookie": "session=7; Path=/"}, {}, {}, {}])
    with serving({"one": script(ONE)}, answer=lambda _: next(answers)) as server:
        url = server.url(**{"header.x-tenant": "harbour%20one", "header.X-Other": "2"})
        assert read(url).equals(ONE)
        first, second = server.seen.headers
        assert (first["x-tenant"], second["x-tenant"], second["x-other"]) == (["harbour one"], ["harbour one"], ["2"])
        assert ("cookie" in first, second["cookie"]) == (False, ["session=7"])
        server.seen.headers.clear()
        assert read(server.url(cookies="false")).equals(ONE)
        assert all("cookie" not in headers for headers in server.seen.headers)


def test_the_deadline_is_told_the_server() -> None:
    with serving({"one": script(ONE)}) as server:
        longshore.read_sql("SELECT one", server.url(), timeout=30)
        assert all("grpc-timeout" not in headers for headers in server.seen.headers)


def test_a_servers_certificate_is_verified(certificates: Certificates) -> None:
    pair = flight.CertKeyPair(certificates.server.read_bytes(), certificates.server_key.read_bytes())
    with serving({"one": script(ONE)}, tls=True, tls_certificates=[pair]) as server:
        assert read(server.url(tls_ca=certificates.authority)).equals(ONE)
        assert read(server.url(tls_verify="false")).equals(ONE)
        with pytest.raises(longshore.OperationalError, match="certificate") as failure:
            read(server.url())
        assert "tls_ca" in (failure.value.hint or "")
        named = server.url(tls_ca=certificates.authority, tls_host="elsewhere.example")
        with pytest.raises(longshore.OperationalError, match="certificate"):
            read(named)
        with pytest.raises(longshore.OperationalError, match=r"lost|gRPC"):
            read(server.url().replace("grpc+tls", "grpc"))


def test_a_client_shows_its_certificate(certificates: Certificates) -> None:
    pair = flight.CertKeyPair(certificates.server.read_bytes(), certificates.server_key.read_bytes())
    options = {
        "tls_certificates": [pair],
        "verify_client": True,
        "root_certificates": certificates.authority.read_bytes(),
    }
    with serving({"one": script(ONE)}, tls=True, **options) as server:
        own = {"tls_cert": certificates.client, "tls_key": certificates.client_key}
        assert read(server.url(tls_ca=certificates.authority, **own)).equals(ONE)
        with pytest.raises(longshore.OperationalError):
            longshore.read_sql("SELECT one", server.url(tls_ca=certificates.authority), timeout=5)
        with pytest.raises(longshore.InterfaceError, match="needs its key"):
            read(server.url(tls_cert=certificates.client))


def test_an_encrypted_session_sends_nothing_in_the_clear(certificates: Certificates) -> None:
    from tests.flight.scripted import Part, Script

    pair = flight.CertKeyPair(certificates.server.read_bytes(), certificates.server_key.read_bytes())
    with serving({"one": script(ONE)}) as open_one, serving({}, tls=True, tls_certificates=[pair]) as server:
        part = Part(lambda: flight.RecordBatchStream(ONE), [open_one.location])
        server.scripts["one"] = Script([part], ONE.schema)
        with pytest.raises(longshore.OperationalError, match="not encrypted"):
            read(server.url(tls_ca=certificates.authority))
        assert open_one.seen.calls == []


def test_settings_are_known_or_refused() -> None:
    with pytest.raises(longshore.InterfaceError, match="unknown connection setting"):
        read("grpc://127.0.0.1:1?compresion=gzip")
    with pytest.raises(longshore.InterfaceError, match="one host"):
        read("grpc://a,b:1")
