"""No password is shown: not by any command, not by any failure, not in any form."""

import itertools
from pathlib import Path

import pytest

from longshore.shell.errors import SecretFilter
from tests.servers import free_port
from tests.shell.running import Done, Shell, alone

PASSWORD = "rope/w@lk:7 x"
ENCODED = "rope%2Fw%40lk%3A7%20x"

COMMANDS = {
    "read": ["read", "SELECT 1", "--from", "{url}"],
    "into a file": ["read", "SELECT 1", "--from", "{url}", "--to", "{file}"],
    "write": ["write", "{csv}", "--to", "{url}", "--table", "t"],
    "copy from": ["copy", "SELECT 1 AS a", "--from", "{url}", "--to", "sqlite:///:memory:", "--table", "t"],
    "copy to": ["copy", "SELECT 1 AS a", "--from", "sqlite:///:memory:", "--to", "{url}", "--table", "t"],
    "sql": ["sql", "SELECT * FROM a.t", "--attach", "a={url}"],
    "sql without a name": ["sql", "SELECT 1", "--attach", "{url}"],
    "as a delimiter": ["write", "{csv}", "--to", "{url}", "--table", "t", "--delimiter", "{url}"],
    "schema": ["schema", "{url}", "t"],
    "demo": ["demo", "--from", "{url}", "--rows", "1"],
    "bench": ["bench", "SELECT 1", "--from", "{url}", "--repeat", "1", "--into", "numpy"],
    "in the query's place": ["read", "{url}", "--from", "{url}"],
    "one too many": ["read", "SELECT 1", "{url}", "--from", "{url}"],
    "as a table": ["schema", "{url}", "{url}"],
    "as a file": ["write", "{url}", "--to", "{url}", "--table", "t", "--format", "csv"],
    "as a command": ["{url}"],
    "as an option": ["read", "SELECT 1", "--{url}"],
    "as a number": ["read", "SELECT 1", "--from", "{url}", "--timeout", "{url}"],
    "as a parameter": ["read", "SELECT 1", "--from", "{url}", "--param", "{url}"],
    "as a directory": ["read", "SELECT 1", "--from", "sqlite:///:memory:", "--to", "{url}/a.csv"],
    "help": ["read", "--help"],
}
URLS = {
    "no one there": "postgresql://me:{password}@127.0.0.1:{port}/harbour",
    "no such scheme": "nosuch://me:{password}@host/harbour",
    "a bad setting": "postgresql://me:{password}@127.0.0.1/harbour?nosuch=1",
    "a bad port": "mysql://me:{password}@127.0.0.1:99999/harbour",
    "in a setting": "postgresql://me@127.0.0.1:{port}/harbour?password={password}",
}


def check(done: Done) -> None:
    """See that no part of the password is in what was said."""
    said = done.text + done.errors
    for secret in (PASSWORD, ENCODED, "lk:7", "lk%3A7", "rope"):
        assert secret not in said


def filled(arguments: list[str], url: str, tmp_path: Path) -> list[str]:
    (tmp_path / "a.csv").write_text("a\n1\n")
    places = {"url": url, "file": str(tmp_path / "out.csv"), "csv": str(tmp_path / "a.csv")}
    return [argument.format(**places) for argument in arguments]


@pytest.mark.parametrize(("kind", "name"), [*itertools.product(URLS, COMMANDS)])
def test_a_url(kind: str, name: str, shell: Shell, tmp_path: Path) -> None:
    url = URLS[kind].format(password=ENCODED, port=free_port())
    arguments = filled(COMMANDS[name], url, tmp_path)
    check(shell(*arguments))
    done = shell(*arguments, "--json")
    check(done)
    assert name == "help" or done.failure["code"] != 0


@pytest.mark.parametrize("name", COMMANDS)
def test_a_url_that_should_have_been_encoded(name: str, shell: Shell, tmp_path: Path) -> None:
    url = f"postgresql://me:{PASSWORD}@127.0.0.1:{free_port()}/harbour"
    check(shell(*filled(COMMANDS[name], url, tmp_path)))


@pytest.mark.parametrize("name", COMMANDS)
def test_the_environment(name: str, shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = URLS["no one there"].format(password=ENCODED, port=free_port())
    monkeypatch.setenv("HARBOUR", url)
    monkeypatch.setenv("LONGSHORE_FROM", url)
    monkeypatch.setenv("LONGSHORE_TO", url)
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    check(shell(*filled(COMMANDS[name], "env:HARBOUR", tmp_path)))


def test_a_fault_of_ours(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    url = URLS["no one there"].format(password=ENCODED, port=1)

    def fail(*given: object, **_named: object) -> None:
        message = f"{given} {PASSWORD}"
        raise RuntimeError(message)

    monkeypatch.setattr("longshore.read_sql", fail)
    done = shell("read", "SELECT 1", "--from", url)
    assert done.code == 70
    check(done)


@pytest.mark.parametrize("as_json", [False, True])
def test_quotes_in_a_password(*, as_json: bool, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    password = "rope\"w\\a'lk é"
    monkeypatch.setenv("PGPASSWORD", password)

    def fail(*_given: object, **_named: object) -> None:
        message = f"{password} {password!r}"
        raise RuntimeError(message)

    monkeypatch.setattr("longshore.read_sql", fail)
    done = shell("read", "SELECT 1", "--from", "sqlite:///:memory:", *["--json"] * as_json)
    assert done.code == 70
    for part in ("rope", "lk", "é"):
        assert part not in done.errors


def test_a_process_of_its_own() -> None:
    done = alone("read", "SELECT 1", "--from", URLS["no one there"].format(password=ENCODED, port=free_port()))
    assert done.code == 3
    check(done)


def test_the_secret_filter() -> None:
    secrets = SecretFilter(
        ["--from=mysql://me:anchor@host"], {"MYSQL_PWD": "capstan", "PWD": "/harbour", "SHELL": "/bin/sh"}
    )
    assert secrets.hide("anchor, capstan, /harbour, /bin/sh, anchor") == "***, ***, /harbour, /bin/sh, ***"
    assert (
        secrets.hide("odd://a:b@c and postgresql://h/d?sslpassword=key")
        == "odd://a:***@c and postgresql://h/d?sslpassword=***"
    )
