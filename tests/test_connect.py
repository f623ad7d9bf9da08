"""Every way to a PostgreSQL server, and what is said where there is none."""

import os
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

import longshore
from tests.certificates import Certificates
from tests.conftest import require
from tests.servers import H2, Endpoint, PgBouncer, PostgreSQL, QuestDB, Server, free_port

#: Each character that a URL gives a meaning to, and some that a shell or the password file does.
PASSWORD = "aa#@/:?&=%+ \\'\"é"  # noqa: S105
HBA = (
    "local all local scram-sha-256",
    "local all all trust",
    "host all trusted all trust",
    "host all plain all password",
    "host all digest all md5",
    "host all scram all scram-sha-256",
    "host all reader all trust",
    "host all postgres all trust",
)
HBA_OF_TLS = (
    "hostssl all tls_only all trust",
    "hostnossl all bare_only all trust",
    "hostssl all certified all cert",
)
ROLES = f"""
    SET password_encryption = 'md5';
    CREATE ROLE digest LOGIN PASSWORD $${PASSWORD}$$;
    SET password_encryption = 'scram-sha-256';
    CREATE ROLE plain LOGIN PASSWORD $${PASSWORD}$$;
    CREATE ROLE scram LOGIN PASSWORD $${PASSWORD}$$;
    CREATE ROLE local LOGIN PASSWORD $${PASSWORD}$$;
    CREATE ROLE trusted LOGIN;
    CREATE ROLE tls_only LOGIN;
    CREATE ROLE bare_only LOGIN;
    CREATE ROLE certified LOGIN;
    CREATE ROLE reader LOGIN;
    ALTER ROLE reader SET default_transaction_read_only = on;
"""
IS_ENCRYPTED = "SELECT CASE WHEN ssl THEN 'yes' ELSE 'no' END AS one FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
Connection = str | dict[str, object]


@pytest.fixture(autouse=True)
def _no_settings_of_ours(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("PG")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """Give certificates for a server at 127.0.0.1 and for the client `certified`."""
    return Certificates.make(tmp_path_factory.mktemp("tls"), hosts=["127.0.0.1"], user="certified")


@pytest.fixture(scope="module")
def guarded(files: Certificates) -> Iterator[PostgreSQL]:
    """Give a server with TLS and one role for each way to authenticate."""
    with require(lambda: PostgreSQL(certificates=files, hba=HBA + HBA_OF_TLS)) as server:
        server.psql(ROLES)
        yield server


@pytest.fixture(scope="module")
def bare() -> Iterator[PostgreSQL]:
    """Give a server without TLS."""
    with require(lambda: PostgreSQL(hba=HBA)) as server:
        server.psql(ROLES)
        yield server


def read(connection: Connection, query: str = "SELECT 1 AS one") -> object:
    """Return the only value of the query's result."""
    (value,) = longshore.read_sql(query, connection, return_type="arrow").to_pydict()["one"]
    return value


def failure(connection: Connection, kind: type[longshore.Error] = longshore.OperationalError) -> longshore.Error:
    """Return the error that connecting ends with: of this class, quick, with a remedy and without the password."""
    started = time.monotonic()
    with pytest.raises(kind) as raised:
        read(connection)
    assert time.monotonic() - started < 5
    for secret in (PASSWORD, quote(PASSWORD, safe=""), "hidden"):
        assert secret not in str(raised.value)
        assert secret not in repr(raised.value)
    return raised.value


# -- Where to -----------------------------------------------------------------------------------------------------


def test_tcp(guarded: PostgreSQL) -> None:
    assert read(guarded.url(user="trusted")) == 1
    assert read(guarded.url(user="trusted"), "SELECT current_user::text AS one") == "trusted"


def test_a_unix_socket(guarded: PostgreSQL) -> None:
    directory, port = guarded.socket_directory, guarded.port
    for connection in (
        guarded.url(host=directory),
        f"postgresql://postgres@{quote(directory, safe='')}:{port}/postgres",
        {"host": directory, "port": port, "user": "postgres", "dbname": "postgres"},
    ):
        assert read(connection, "SELECT coalesce(host(inet_client_addr()), 'none') AS one") == "none"
    assert read(guarded.url(host=directory, user="local", password=PASSWORD)) == 1


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "redshift", "cockroachdb"])
def test_every_scheme(guarded: PostgreSQL, scheme: str) -> None:
    assert read(guarded.url(user="trusted").replace("postgresql", scheme, 1)) == 1


def test_keywords(guarded: PostgreSQL) -> None:
    keywords = {"host": guarded.host, "port": guarded.port, "user": "scram", "dbname": "postgres"}
    assert read({**keywords, "password": PASSWORD}) == 1
    assert read({**keywords, "port": str(guarded.port), "password": PASSWORD, "sslmode": "require"}) == 1


def test_an_address_beside_the_name(guarded: PostgreSQL) -> None:
    assert read(guarded.url(user="trusted", host="nowhere.invalid", hostaddr=guarded.host)) == 1


def test_the_environment(guarded: PostgreSQL, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"PGHOST": guarded.host, "PGPORT": str(guarded.port), "PGUSER": "scram", "PGDATABASE": "postgres"}
    for name, value in {**settings, "PGPASSWORD": PASSWORD, "PGAPPNAME": "mine", "PGTZ": "Asia/Tokyo"}.items():
        monkeypatch.setenv(name, value)
    assert read("postgresql://") == 1
    assert read("postgresql://", "SELECT current_setting('application_name') AS one") == "mine"
    assert read("postgresql://", "SELECT current_setting('TimeZone') AS one") == "Asia/Tokyo"
    assert read("postgresql://trusted@", "SELECT current_user::text AS one") == "trusted"


def test_a_service_file(guarded: PostgreSQL, tmp_path: Path) -> None:
    text = f"[mine]\nhost={guarded.host}\nport={guarded.port}\nuser=trusted\ndbname=postgres\n"
    (tmp_path / ".pg_service.conf").write_text(text)
    assert read("postgresql://?service=mine") == 1
    assert "yours" in str(failure("postgresql://?service=yours", longshore.InterfaceError))


def test_settings_of_the_session(guarded: PostgreSQL) -> None:
    def setting(name: str, **parameters: str | int) -> object:
        return read(guarded.url(user="trusted", **parameters), f"SELECT current_setting('{name}') AS one")

    assert setting("application_name") == "longshore"
    assert setting("application_name", fallback_application_name="fallen") == "fallen"
    assert setting("application_name", application_name="my app") == "my app"
    assert setting("work_mem", options="-c work_mem=5MB") == "5MB"
    assert setting("DateStyle").startswith("ISO")  # type: ignore[attr-defined]
    assert setting("client_encoding") == "UTF8"


def test_keepalives(guarded: PostgreSQL) -> None:
    parameters = {"keepalives_idle": 5, "keepalives_interval": 2, "keepalives_count": 3, "tcp_user_timeout": 9000}
    assert read(guarded.url(user="trusted", **parameters)) == 1
    assert read(guarded.url(user="trusted", keepalives=0)) == 1
    error = failure(guarded.url(user="trusted", keepalives_idle="long"), longshore.InterfaceError)
    assert "keepalives_idle" in str(error)


# -- As whom ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("user", ["plain", "digest", "scram"])
@pytest.mark.parametrize("mode", ["disable", "require"])
def test_every_kind_of_password(guarded: PostgreSQL, user: str, mode: str) -> None:
    assert read(guarded.url(user=user, password=PASSWORD, sslmode=mode)) == 1
    error = failure(guarded.url(user=user, password="hidden", sslmode=mode))  # noqa: S106
    assert error.sqlstate == "28P01"
    assert f'password authentication failed for user "{user}"' in str(error)
    error = failure(guarded.url(user=user, sslmode=mode))
    assert "password" in str(error)
    assert error.hint
    assert "PGPASSWORD" in error.hint


def test_a_password_that_is_asked_for(guarded: PostgreSQL) -> None:
    asked = []

    def password() -> str:
        asked.append(1)
        return PASSWORD

    keywords = {"host": guarded.host, "port": guarded.port, "user": "scram", "dbname": "postgres"}
    assert read({**keywords, "password": password}) == 1
    assert read({**keywords, "password": password}) == 1
    assert len(asked) == 2


def test_the_password_file(guarded: PostgreSQL, tmp_path: Path) -> None:
    escaped = PASSWORD.replace("\\", r"\\").replace(":", r"\:")
    file = tmp_path / ".pgpass"
    file.write_text(f"elsewhere:*:*:*:no\n# a comment\n{guarded.host}:{guarded.port}:*:scram:{escaped}\n")
    file.chmod(0o600)
    assert read(guarded.url(user="scram")) == 1
    other = file.rename(tmp_path / "other")
    assert read(guarded.url(user="scram", passfile=str(other))) == 1
    other.chmod(0o644)
    error = failure(guarded.url(user="scram", passfile=str(other)))
    assert str(other) in str(error)
    assert "chmod 600" in str(error)


@pytest.mark.parametrize(
    ("wanted", "works"), [("scram-sha-256", True), ("!md5,!password", True), ("md5", False), ("none", False)]
)
def test_methods_that_are_required(guarded: PostgreSQL, wanted: str, works: bool) -> None:  # noqa: FBT001
    url = guarded.url(user="scram", password=PASSWORD, require_auth=wanted)
    if works:
        assert read(url) == 1
    else:
        assert "require_auth" in str(failure(url))


def test_a_method_is_refused_before_the_password_is_sent(guarded: PostgreSQL) -> None:
    for user in ("plain", "digest"):
        assert "require_auth" in str(failure(guarded.url(user=user, password=PASSWORD, require_auth="scram-sha-256")))
    assert "require_auth" in str(failure(guarded.url(user="trusted", require_auth="!none")))


def test_channel_binding(guarded: PostgreSQL) -> None:
    def url(user: str, **parameters: str) -> str:
        return guarded.url(user=user, password=PASSWORD, channel_binding="require", **parameters)

    assert read(url("scram")) == 1
    for refused in (url("scram", sslmode="disable"), url("digest"), url("plain"), url("trusted")):
        assert "channel_binding" in str(failure(refused))
    assert read(guarded.url(user="scram", password=PASSWORD, channel_binding="disable")) == 1


# -- Encrypted or not ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("user", "mode", "encrypted"),
    [
        ("trusted", "disable", "no"),
        ("trusted", "allow", "no"),
        ("trusted", "prefer", "yes"),
        ("trusted", "require", "yes"),
        ("tls_only", "allow", "yes"),
        ("tls_only", "prefer", "yes"),
        ("bare_only", "allow", "no"),
        ("bare_only", "prefer", "no"),
    ],
)
def test_modes_with_tls_on_the_server(guarded: PostgreSQL, user: str, mode: str, encrypted: str) -> None:
    assert read(guarded.url(user=user, sslmode=mode), IS_ENCRYPTED) == encrypted


def test_modes_without_tls_on_the_server(bare: PostgreSQL, files: Certificates) -> None:
    for mode in ("disable", "allow", "prefer"):
        assert read(bare.url(user="trusted", sslmode=mode), IS_ENCRYPTED) == "no"
    for mode in ("require", "verify-ca", "verify-full"):
        error = failure(bare.url(user="trusted", sslmode=mode, sslrootcert=str(files.authority)))
        assert "TLS" in str(error)
        assert error.hint


def test_the_servers_own_refusal_is_told(guarded: PostgreSQL) -> None:
    for user, mode in (("tls_only", "disable"), ("bare_only", "require"), ("nobody", "prefer")):
        error = failure(guarded.url(user=user, sslmode=mode))
        assert error.sqlstate == "28000"
        assert "no pg_hba.conf entry" in str(error)


def test_verification(guarded: PostgreSQL, files: Certificates, tmp_path: Path) -> None:
    root = str(files.authority)
    for mode in ("require", "verify-ca", "verify-full"):
        assert read(guarded.url(user="trusted", sslmode=mode, sslrootcert=root), IS_ENCRYPTED) == "yes"
    other = str(Certificates.make(tmp_path / "other").authority)
    for mode in ("require", "verify-ca", "verify-full"):
        error = failure(guarded.url(user="trusted", sslmode=mode, sslrootcert=other))
        assert error.hint
        assert "sslrootcert" in error.hint
    by_name = {"user": "trusted", "host": "localhost", "hostaddr": guarded.host, "sslrootcert": root}
    assert read(guarded.url(**by_name, sslmode="verify-ca")) == 1
    error = failure(guarded.url(**by_name, sslmode="verify-full"))
    assert "localhost" in str(error)
    assert error.hint


def test_the_authorities_of_the_machine(guarded: PostgreSQL) -> None:
    for parameters in ({"sslmode": "verify-full"}, {"sslrootcert": "system"}):
        assert "certificate" in str(failure(guarded.url(user="trusted", **parameters)))


def test_a_root_certificate_at_home(guarded: PostgreSQL, files: Certificates, tmp_path: Path) -> None:
    home = tmp_path / ".postgresql"
    home.mkdir()
    error = failure(guarded.url(user="trusted", sslmode="verify-ca"), longshore.InterfaceError)
    assert "root certificate" in str(error)
    (home / "root.crt").write_bytes(files.authority.read_bytes())
    assert read(guarded.url(user="trusted", sslmode="verify-ca")) == 1


def test_client_certificates(guarded: PostgreSQL, files: Certificates, tmp_path: Path) -> None:
    own = {"sslcert": str(files.client), "sslkey": str(files.client_key)}
    url = guarded.url(user="certified", sslmode="require", **own)
    assert read(url, "SELECT current_user::text AS one") == "certified"
    assert "certificate" in str(failure(guarded.url(user="certified", sslmode="require")))
    key = tmp_path / "key"
    key.write_bytes(files.client_key.read_bytes())
    key.chmod(0o644)
    error = failure(guarded.url(user="certified", **{**own, "sslkey": str(key)}), longshore.InterfaceError)
    assert error.hint
    assert "chmod 600" in error.hint
    gone = {**own, "sslkey": str(tmp_path / "gone")}
    assert "gone" in str(failure(guarded.url(user="certified", **gone), longshore.InterfaceError))


def test_direct_tls(guarded: PostgreSQL) -> None:
    url = guarded.url(user="trusted", sslmode="require", sslnegotiation="direct")
    if int(guarded.version) >= 17:
        assert read(url, IS_ENCRYPTED) == "yes"
    else:
        assert failure(url).hint


# -- Several hosts ------------------------------------------------------------------------------------------------


def hosts(*ports: int, **parameters: str) -> str:
    """Return the URL of several servers at 127.0.0.1."""
    places = ",".join(f"127.0.0.1:{port}" for port in ports)
    query = "&".join(f"{key}={quote(value, safe='')}" for key, value in parameters.items())
    return f"postgresql://{places}/postgres?{query}"


@pytest.fixture(scope="module")
def standby() -> Iterator[PostgreSQL]:
    """Give a server that waits for a primary."""

    class Standby(PostgreSQL):
        _ready = Server._ready  # noqa: SLF001  its lock file never says "ready"

    with require(lambda: Standby(config={"wal_level": "replica"})) as server:
        server.stop()
        (server.data / "standby.signal").touch()
        server.start()
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            try:
                server.psql("SELECT 1")
            except RuntimeError:
                time.sleep(0.1)
            else:
                break
        yield server


def test_the_first_host_that_answers(bare: PostgreSQL) -> None:
    dead = free_port()
    for order in ("disable", "random"):
        url = hosts(dead, bare.port, user="trusted", load_balance_hosts=order)
        assert read(url, "SELECT inet_server_port() AS one") == bare.port
    error = failure(hosts(dead, dead + 1, user="trusted"))
    assert f"127.0.0.1:{dead}:" in str(error)
    assert f"127.0.0.1:{dead + 1}:" in str(error)


def test_a_wrong_password_is_not_tried_elsewhere(bare: PostgreSQL, guarded: PostgreSQL) -> None:
    error = failure(hosts(bare.port, guarded.port, user="scram", password="hidden"))  # noqa: S106
    assert error.sqlstate == "28P01"
    assert "none of the hosts" not in str(error)


@pytest.mark.parametrize(
    ("role", "first"),
    [
        ("any", "standby"),
        ("primary", "primary"),
        ("read-write", "primary"),
        ("standby", "standby"),
        ("read-only", "standby"),
        ("prefer-standby", "standby"),
    ],
)
def test_roles(bare: PostgreSQL, standby: PostgreSQL, role: str, first: str) -> None:
    expected = {"primary": bare.port, "standby": standby.port}[first]
    orders = [(standby.port, bare.port)] if role == "any" else [(standby.port, bare.port), (bare.port, standby.port)]
    for order in orders:
        url = hosts(*order, user="postgres", target_session_attrs=role)
        assert read(url, "SELECT inet_server_port() AS one") == expected


def test_roles_that_nobody_has(bare: PostgreSQL, standby: PostgreSQL) -> None:
    for port, role, why in (
        (bare.port, "standby", "is not a standby"),
        (bare.port, "read-only", "is not read-only"),
        (standby.port, "primary", "is a standby"),
        (standby.port, "read-write", "is read-only"),
    ):
        assert why in str(failure(hosts(port, user="postgres", target_session_attrs=role)))
    assert read(hosts(bare.port, user="postgres", target_session_attrs="prefer-standby")) == 1
    assert read(hosts(bare.port, user="reader", target_session_attrs="read-only")) == 1
    assert "read-only" in str(failure(hosts(bare.port, user="reader", target_session_attrs="read-write")))


# -- Nowhere ------------------------------------------------------------------------------------------------------


@pytest.fixture
def silent() -> Iterator[int]:
    """Give the port of a server that accepts and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def test_the_time_to_connect_is_bounded(silent: int, bare: PostgreSQL) -> None:
    started = time.monotonic()
    error = failure(hosts(silent, user="trusted", connect_timeout="1"))
    assert 0.9 < time.monotonic() - started < 2
    assert f"127.0.0.1:{silent}" in str(error)
    assert "1 s" in str(error)
    assert read(hosts(silent, bare.port, user="trusted", connect_timeout="1")) == 1


def test_the_callers_own_deadline_ends_it_all(silent: int) -> None:
    started = time.monotonic()
    with pytest.raises(longshore.Error, match=r"0\.5 s"):
        longshore.read_sql("SELECT 1", hosts(silent, silent, user="x"), return_type="arrow", timeout=0.5)
    assert time.monotonic() - started < 1.5


def test_nobody_there() -> None:
    port = free_port()
    error = failure(hosts(port, user="trusted", password="hidden"))  # noqa: S106
    assert f"127.0.0.1:{port}" in str(error)
    assert "refused" in str(error)
    assert error.hint
    error = failure("postgresql://user:hidden@nowhere.invalid/db")
    assert "nowhere.invalid" in str(error)
    error = failure(f"postgresql://user@{quote('/no/such/place', safe='')}/db")
    assert "/no/such/place/.s.PGSQL.5432" in str(error)


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"", b"S" + bytes(40), b"R\xff\xff\xff\xff"])
@pytest.mark.parametrize("mode", ["disable", "require"])
def test_something_else_there(answer: bytes, mode: str, serve_once: Callable[[bytes], int]) -> None:
    error = failure(hosts(serve_once(answer), user="x", sslmode=mode))
    assert error.hint


@pytest.fixture
def serve_once() -> Iterator[Callable[[bytes], int]]:
    """Give a function that starts a server with one answer to everybody, and returns its port."""
    import threading  # noqa: PLC0415

    listeners = []

    def serve(answer: bytes) -> int:
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)

        def run() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(1000)
                    connection.sendall(answer)

        threading.Thread(target=run, daemon=True).start()
        port: int = listener.getsockname()[1]
        return port

    yield serve
    for listener in listeners:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def test_no_such_database(guarded: PostgreSQL) -> None:
    error = failure(guarded.url(user="trusted", database="nowhere"), longshore.ProgrammingError)
    assert error.sqlstate == "3D000"


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("postgresql://u:hidden@h?sslmod=require", "sslmode"),
        ("postgresql://u:hidden@h?sslmode=maybe", "verify-full"),
        ("postgresql://u:hidden/1@h/db", "%2F"),
        ("postgresql://u:%zzhidden@h/db", "%25"),
        ("postgresql://u:hidden@h:port/db", "65535"),
        ("postgresql://u:hidden@[::1/db", "]"),
        ("postgresql://u:hidden@h?connect_timeout=soon", "connect_timeout"),
        ("postgresql://u:hidden@h,i?port=1,2,3", "commas"),
        ("postgresql:u:hidden@h", "://"),
        ("://u:hidden@h", "postgresql://"),
    ],
)
def test_urls_that_are_wrong(url: str, told: str) -> None:
    assert told in str(failure(url, longshore.InterfaceError))


def test_settings_that_are_unknown() -> None:
    assert "'user'" in str(failure({"username": "u", "password": "hidden"}, longshore.InterfaceError)).replace('"', "'")
    assert "requirepeer" in str(failure("postgresql://h?requirepeer=x", longshore.NotSupportedError))


# -- Others that speak the wire -----------------------------------------------------------------------------------


def test_pgbouncer(pgbouncer: PgBouncer) -> None:
    for _ in range(3):
        assert read(pgbouncer.url()) == 1
    assert read(pgbouncer.url(sslmode="prefer", application_name="mine")) == 1


def test_questdb(questdb: QuestDB) -> None:
    assert read(questdb.url()) == 1
    assert failure(questdb.url(password="hidden"))  # noqa: S106


def test_h2(h2: H2) -> None:
    assert read(h2.url()) == 1


def test_the_shared_server(postgres: Endpoint) -> None:
    assert read(postgres.url()) == 1
