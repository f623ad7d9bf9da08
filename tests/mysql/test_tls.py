"""Encrypted or not, compressed or not."""

import contextlib
import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme

import longshore
from tests.certificates import Certificates
from tests.fixtures import require
from tests.mysql.asking import failure, words
from tests.mysql.bridge import bridge
from tests.mysql.conftest import KINDS
from tests.mysql.reading import numbers, table, value
from tests.servers import MySQL, Mysqld, MySQLEndpoint

CIPHER = "SHOW SESSION STATUS LIKE 'Ssl_cipher'"


@pytest.fixture(scope="module", params=list(KINDS))
def secure(request: pytest.FixtureRequest, rsa_certificates: Certificates) -> Iterator[Mysqld]:
    """Give a server with TLS."""
    with (
        require(lambda: KINDS[request.param](certificates=rsa_certificates)) as server,
        modern(server, rsa_certificates),
    ):
        yield server


@contextlib.contextmanager
def modern(server: Mysqld, files: Certificates) -> Iterator[None]:
    """Put the bridge before a MySQL, whose own TLS is of another time."""
    if not isinstance(server, MySQL):
        yield
        return
    with bridge((server.host, server.port), files) as port:
        server.port = port
        yield


def encrypted(url: str) -> bool:
    """Tell whether the server sees a cipher."""
    return bool(table(CIPHER, url)["Value"].to_pylist()[0])


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ({"ssl-mode": "DISABLED"}, False),
        ({"ssl-mode": "PREFERRED"}, True),
        ({"ssl-mode": "REQUIRED"}, True),
        ({"ssl-mode": "required"}, True),
        ({"sslmode": "disable"}, False),
        ({"sslmode": "prefer"}, True),
        ({"sslmode": "require"}, True),
        ({}, True),
    ],
)
def test_modes_with_tls_on_the_server(mode: dict[str, Any], expected: bool, secure: Mysqld) -> None:  # noqa: FBT001
    assert encrypted(secure.url(**mode)) == expected


def test_modes_without_tls_on_the_server(server: MySQLEndpoint, rsa_certificates: Certificates) -> None:
    for mode in ("DISABLED", "PREFERRED"):
        assert not encrypted(server.url(**words({"ssl-mode": mode})))
    for mode in ("REQUIRED", "VERIFY_CA", "VERIFY_IDENTITY"):
        error = failure(server.url(**words({"ssl-mode": mode, "ssl-ca": str(rsa_certificates.authority)})))
        assert "TLS" in str(error)
        assert error.hint


def test_verification(secure: Mysqld, rsa_certificates: Certificates, tmp_path: Path) -> None:
    root = str(rsa_certificates.authority)
    for mode in ("VERIFY_CA", "VERIFY_IDENTITY"):
        assert encrypted(secure.url(**words({"ssl-mode": mode, "ssl-ca": root})))
    other = str(Certificates.make(tmp_path / "other").authority)
    for mode in ("VERIFY_CA", "VERIFY_IDENTITY"):
        error = failure(secure.url(**words({"ssl-mode": mode, "ssl-ca": other})))
        assert "certificate" in str(error)
        assert error.hint
        failure(secure.url(**words({"ssl-mode": mode, "ssl-ca": str(tmp_path / "gone")})), longshore.Error)


def test_a_certificate_of_another_name(rsa_certificates: Certificates, tmp_path: Path, secure: Mysqld) -> None:
    kind = trustme.KeyType.RSA
    elsewhere = Certificates.make(tmp_path, hosts=["elsewhere.example"], key_type=kind)
    files = dataclasses.replace(
        rsa_certificates, server=elsewhere.server, server_key=elsewhere.server_key, authority=elsewhere.authority
    )
    with require(lambda: type(secure)(certificates=files)) as server, modern(server, files):
        root: dict[str, Any] = {"ssl-ca": str(elsewhere.authority)}
        assert encrypted(server.url(**words({"ssl-mode": "VERIFY_CA"}), **root))
        error = failure(server.url(**words({"ssl-mode": "VERIFY_IDENTITY"}), **root))
        assert error.hint


def test_versions_of_tls(secure: Mysqld) -> None:
    version = "SHOW SESSION STATUS LIKE 'Ssl_version'"
    url = secure.url(**words({"ssl-mode": "REQUIRED", "tls-version": "TLSv1.2"}))
    assert table(version, url)["Value"].to_pylist() == ["TLSv1.2"]
    failure(secure.url(**words({"ssl-mode": "REQUIRED", "tls-version": "TLSv1.0"})), longshore.Error)


@pytest.mark.parametrize("mode", ["DISABLED", "REQUIRED"])
@pytest.mark.parametrize("protocol", ["binary", "text"])
def test_compression(mode: str, protocol: str, secure: Mysqld) -> None:
    query = f"{numbers(999)} SELECT i, repeat(char(97 + i % 26), i) AS t FROM numbers WHERE i < 1000 ORDER BY i"
    options = {"protocol": protocol}
    plain = table(query, secure.url(**words({"ssl-mode": mode})), options=options)
    for word in ("zlib", "true"):
        url = secure.url(**words({"ssl-mode": mode, "compression": word}))
        assert table(query, url, options=options).equals(plain)
        status = table("SHOW SESSION STATUS LIKE 'Compression'", url)["Value"].to_pylist()
        assert status == ["ON"]


def test_compression_of_large_packets(secure: Mysqld) -> None:
    url = secure.url(compression="zlib")
    size = 2**24 + 1000
    (row,) = table(f"SELECT repeat('xy', {size // 2}) AS t, 7 AS after", url).to_pylist()
    assert (len(row["t"]), row["after"]) == (size, 7)
    # What does not compress, and what is too small for it.
    noise = "concat(" + ", ".join(f"sha2('{i}', 512)" for i in range(600)) + ")"
    assert len(value(f"SELECT {noise} AS t", url)) == 600 * 128
    text = "ä" * (2**24 // 2 + 10)
    assert value(f"SELECT char_length('{text}') AS n", url) == len(text)


def test_compression_that_the_server_has_not(secure: Mysqld) -> None:
    # zstd came with MySQL 8.0.18.
    error = failure(secure.url(compression="zstd"), longshore.Error)
    assert "zstd" in str(error)
    error = failure(secure.url(compression="brotli"), longshore.InterfaceError)
    assert "compression" in str(error)


def test_a_connection_of_pymysqls(secure: Mysqld) -> None:
    with contextlib.closing(secure.client(ssl={"verify_mode": False, "check_hostname": False})) as client:
        client.begin()
        assert table(CIPHER, client)["Value"].to_pylist() != [""]
        text = "é" * 300_000
        assert table("SELECT :text AS text", client, params={"text": text})["text"].to_pylist() == [text]
        with pytest.raises(longshore.TimeoutError):
            table("SELECT sleep(60)", client, timeout=0.2)
        assert table("SELECT 1 AS n", client)["n"].to_pylist() == [1]
