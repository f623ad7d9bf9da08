"""The command within this process, and databases for it."""

import io
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from longshore.shell import main
from tests.servers import Endpoint
from tests.shell.running import Done, Shell


@pytest.fixture
def shell(capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Shell:
    """Give a function that runs the command with these arguments, and with these bytes as standard input."""
    for name in ("LONGSHORE_FROM", "LONGSHORE_TO"):
        monkeypatch.delenv(name, raising=False)

    def run(*arguments: str, given: bytes = b"") -> Done:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(given), encoding="utf-8"))
        capsysbinary.readouterr()
        code = main(arguments)
        out, errors = capsysbinary.readouterr()
        return Done(code, out, errors.decode())

    return run


@pytest.fixture
def lite(tmp_path: Path) -> str:
    """Give the URL of an SQLite that is made when it is first written."""
    return f"sqlite:///{tmp_path}/harbour.db?mode=rwc"


@pytest.fixture
def harbour(postgres: Endpoint) -> Iterator[str]:
    """Give the name of an empty schema, which goes with all that is in it."""
    name = f"shell_{uuid.uuid4().hex[:8]}"
    postgres.psql(f"CREATE SCHEMA {name}")
    yield name
    postgres.psql(f"DROP SCHEMA {name} CASCADE")
