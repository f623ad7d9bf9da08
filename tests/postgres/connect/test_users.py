"""As whom: every way to authenticate."""

from pathlib import Path
from typing import Any

import pytest

from tests.postgres.connect.asking import PASSWORD, failure, read
from tests.servers import PostgreSQL

pytestmark = pytest.mark.server


@pytest.mark.parametrize("user", ["plain", "digest", "scram"])
@pytest.mark.parametrize("mode", ["disable", "require"])
def test_every_kind_of_password(guarded: PostgreSQL, user: str, mode: str) -> None:
    assert read(guarded.url(user=user, password=PASSWORD, sslmode=mode)) == 1
    error = failure(guarded.url(user=user, password="hidden", sslmode=mode))
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
    def url(user: str, **parameters: Any) -> str:
        return guarded.url(user=user, password=PASSWORD, channel_binding="require", **parameters)

    assert read(url("scram")) == 1
    for refused in (url("scram", sslmode="disable"), url("digest"), url("plain"), url("trusted")):
        assert "channel_binding" in str(failure(refused))
    assert read(guarded.url(user="scram", password=PASSWORD, channel_binding="disable")) == 1
