"""Several hosts, of which one will do."""

import pytest

from tests.postgres.connect.asking import failure, hosts, read
from tests.servers import PostgreSQL, free_port


def test_the_first_host_that_answers(bare: PostgreSQL) -> None:
    dead = free_port()
    for order in ("disable", "random"):
        url = hosts(dead, bare.port, user="trusted", load_balance_hosts=order)
        assert read(url, "SELECT inet_server_port() AS one") == bare.port
    error = failure(hosts(dead, dead + 1, user="trusted"))
    assert f"127.0.0.1:{dead}:" in str(error)
    assert f"127.0.0.1:{dead + 1}:" in str(error)


def test_a_wrong_password_is_not_tried_elsewhere(bare: PostgreSQL, guarded: PostgreSQL) -> None:
    error = failure(hosts(bare.port, guarded.port, user="scram", password="hidden"))
    assert error.sqlstate == "28P01"
    assert "no host accepted" not in str(error)


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


def test_roles_that_no_one_has(bare: PostgreSQL, standby: PostgreSQL) -> None:
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
