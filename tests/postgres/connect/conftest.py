"""Servers with a role for each way to come in."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.certificates import Certificates
from tests.fixtures import require
from tests.postgres.connect.asking import PASSWORD
from tests.servers import PostgreSQL, Server

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


@pytest.fixture(autouse=True)
def _no_settings_of_ours(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("PG")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture(scope="package")
def files(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """Give certificates for a server at 127.0.0.1 and for the client `certified`."""
    return Certificates.make(tmp_path_factory.mktemp("tls"), hosts=["127.0.0.1"], user="certified")


@pytest.fixture(scope="package")
def guarded(files: Certificates) -> Iterator[PostgreSQL]:
    """Give a server with TLS and one role for each way to authenticate."""
    with require(lambda: PostgreSQL(certificates=files, hba=HBA + HBA_OF_TLS)) as server:
        server.psql(ROLES)
        yield server


@pytest.fixture(scope="package")
def bare() -> Iterator[PostgreSQL]:
    """Give a server without TLS."""
    with require(lambda: PostgreSQL(hba=HBA)) as server:
        server.psql(ROLES)
        yield server


@pytest.fixture(scope="package")
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
