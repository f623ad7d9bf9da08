"""Who may come in, by which plugin, over what."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import longshore
from tests.certificates import Certificates
from tests.fixtures import require
from tests.mysql.asking import PASSWORD, failure, literal, who, words
from tests.mysql.bridge import bridge
from tests.servers import MariaDB, MySQL

WAYS = ["disabled", "required", "socket"]


@pytest.fixture(scope="module")
def mariadb_with_users(rsa_certificates: Certificates) -> Iterator[MariaDB]:
    """Give a MariaDB with TLS and a user for each plugin."""
    with require(lambda: MariaDB(certificates=rsa_certificates)) as server:
        secret = literal(PASSWORD)
        server.sql(f"""
            CREATE USER native IDENTIFIED BY {secret};
            CREATE USER unguarded;
            CREATE USER edwards IDENTIFIED VIA ed25519 USING PASSWORD({secret});
            CREATE USER either IDENTIFIED VIA ed25519 USING PASSWORD('other')
                OR mysql_native_password USING PASSWORD({secret});
            CREATE USER secure IDENTIFIED BY {secret} REQUIRE SSL;
            CREATE USER certified IDENTIFIED BY {secret} REQUIRE X509;
            CREATE USER locked IDENTIFIED BY {secret} ACCOUNT LOCK;
            CREATE USER expired IDENTIFIED BY {secret} PASSWORD EXPIRE;
            SET GLOBAL disconnect_on_expired_password = ON;
            GRANT SELECT ON test.* TO native, unguarded, edwards, either, secure, certified, locked, expired;
        """)
        yield server


@pytest.fixture(scope="module")
def mysql_with_users(rsa_certificates: Certificates) -> Iterator[MySQL]:
    """Give a MySQL with TLS and a user for each plugin."""
    with require(lambda: MySQL(certificates=rsa_certificates)) as server:
        secret = literal(PASSWORD)
        server.sql(f"""
            CREATE USER native IDENTIFIED WITH mysql_native_password BY {secret};
            CREATE USER unguarded IDENTIFIED WITH caching_sha2_password BY '';
            CREATE USER caching IDENTIFIED WITH caching_sha2_password BY {secret};
            CREATE USER sha256 IDENTIFIED WITH sha256_password BY {secret};
            CREATE USER secure IDENTIFIED WITH caching_sha2_password BY {secret} REQUIRE SSL;
            CREATE USER locked IDENTIFIED BY {secret} ACCOUNT LOCK;
            CREATE USER expired IDENTIFIED BY {secret} PASSWORD EXPIRE;
            GRANT SELECT ON test.* TO native, unguarded, caching, sha256, secure, locked, expired;
        """)
        with bridge((server.host, server.port), rsa_certificates) as port:
            server.port = port
            yield server


def place(server: MariaDB | MySQL, user: str, way: str, password: str | None = PASSWORD) -> str:
    """Return the URL of a way in."""
    if way == "socket":
        return server.url(user=user, password=password, host=server.socket_path)
    return server.url(user=user, password=password, **words({"ssl-mode": way}))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("user", ["native", "edwards", "either"])
def test_mariadb(user: str, way: str, mariadb_with_users: MariaDB) -> None:
    assert who(place(mariadb_with_users, user, way)) == user
    error = failure(place(mariadb_with_users, user, way, "hidden"))
    assert error.sqlstate == "28000"
    assert "1045" in str(error)
    assert error.hint


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("user", ["native", "caching", "sha256"])
def test_mysql(user: str, way: str, mysql_with_users: MySQL) -> None:
    # Forgets whom it has let in: the first time is by the whole password, the second by what the server remembers.
    mysql_with_users.sql("FLUSH PRIVILEGES")
    url = place(mysql_with_users, user, way)
    if way == "disabled" and user != "native":
        # In clear the server's key has to be asked for, since anybody could send one.
        url += "&get-server-public-key=true"
    assert [who(url), who(url)] == [user, user]
    wrong = url.replace(place(mysql_with_users, user, way).split("@")[0], f"mysql://{user}:hidden")
    error = failure(wrong)
    assert error.sqlstate == "28000"
    assert "1045" in str(error)


@pytest.mark.parametrize("user", ["caching", "sha256"])
def test_a_password_is_not_given_to_any_key(user: str, mysql_with_users: MySQL, tmp_path: Path) -> None:
    mysql_with_users.sql("FLUSH PRIVILEGES")
    url = place(mysql_with_users, user, "disabled")
    error = failure(url)
    assert "key" in str(error) + (error.hint or "")
    own = (mysql_with_users.data / "public_key.pem").read_text()
    key = tmp_path / "key.pem"
    key.write_text(own)
    assert who(url + f"&server-public-key-path={key}") == user
    mysql_with_users.sql("FLUSH PRIVILEGES")
    key.write_text("no key")
    assert failure(url + f"&server-public-key-path={key}", longshore.Error)
    assert failure(url + f"&server-public-key-path={tmp_path / 'gone'}", longshore.Error)


def test_what_the_server_remembers_needs_no_key(mysql_with_users: MySQL) -> None:
    mysql_with_users.sql("FLUSH PRIVILEGES")
    assert who(place(mysql_with_users, "caching", "required")) == "caching"
    assert who(place(mysql_with_users, "caching", "disabled")) == "caching"


@pytest.mark.parametrize("way", WAYS)
def test_without_a_password(way: str, mariadb_with_users: MariaDB, mysql_with_users: MySQL) -> None:
    for server in (mariadb_with_users, mysql_with_users):
        assert who(place(server, "unguarded", way, None)) == "unguarded"
        assert failure(place(server, "native", way, None)).sqlstate == "28000"


def test_a_callable_password(mariadb_with_users: MariaDB) -> None:
    server = mariadb_with_users
    settings = {"host": server.host, "port": server.port, "user": "edwards", "database": "test"}
    conn = {"scheme": "mariadb", **settings, "password": lambda: PASSWORD}
    try:
        assert who(conn) == "edwards"
    except longshore.InterfaceError:
        assert who({**conn, "drivername": "mariadb"}) == "edwards"


def test_users_that_need_tls(mariadb_with_users: MariaDB, mysql_with_users: MySQL) -> None:
    for server in (mariadb_with_users, mysql_with_users):
        assert who(place(server, "secure", "required")) == "secure"
        assert who(place(server, "secure", "preferred")) == "secure"
        assert failure(place(server, "secure", "disabled")).sqlstate in {"28000", "08004"}


def test_client_certificates(mariadb_with_users: MariaDB, rsa_certificates: Certificates) -> None:
    own: dict[str, str] = {"ssl-cert": str(rsa_certificates.client), "ssl-key": str(rsa_certificates.client_key)}
    url = mariadb_with_users.url(user="certified", password=PASSWORD, **words({"ssl-mode": "REQUIRED", **own}))
    assert who(url) == "certified"
    assert failure(place(mariadb_with_users, "certified", "required")).sqlstate == "28000"


def test_locked_and_expired(mariadb_with_users: MariaDB, mysql_with_users: MySQL) -> None:
    for server, locked in ((mariadb_with_users, "4151"), (mysql_with_users, "3118")):
        assert locked in str(failure(place(server, "locked", "required"), longshore.DatabaseError))
        assert "1862" in str(failure(place(server, "expired", "required"), longshore.DatabaseError))


def test_unknown_users_and_databases(mariadb_with_users: MariaDB, mysql_with_users: MySQL) -> None:
    for server in (mariadb_with_users, mysql_with_users):
        assert failure(place(server, "stranger", "required")).sqlstate == "28000"
        error = failure(server.url(database="nowhere"), longshore.ProgrammingError)
        assert error.sqlstate == "42000"
        assert "1049" in str(error)
