"""`longshore adbc install`: the manifest, and what finds the driver by it."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import longshore
import longshore.adbc
from longshore.shell import drivers
from tests.shell.conftest import shell
from tests.shell.running import Shell, surroundings

__all__ = ["shell"]

FIND = (
    "from adbc_driver_manager import dbapi\n"
    "with dbapi.connect('longshore', db_kwargs={'uri': 'sqlite:///:memory:'}) as connection:\n"
    "    print(connection.adbc_get_info()['driver_name'])"
)


def test_the_driver_is_found_by_its_name(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    done = shell("adbc", "install", "--user", "--json")
    assert (done.code, done.errors) == (0, "")
    manifest = Path(done.said["manifest"])
    assert manifest.is_relative_to(tmp_path)
    assert done.said["driver"] == longshore.adbc.driver_path()
    told = tomllib.loads(manifest.read_text())
    assert (told["manifest_version"], told["ADBC"]["version"]) == (1, "1.1.0")
    assert [*told["Driver"]["shared"].values()] == [longshore.adbc.driver_path()]
    environment = surroundings(XDG_CONFIG_HOME=str(tmp_path), ADBC_DRIVER_PATH=str(manifest.parent))
    found = subprocess.run([sys.executable, "-c", FIND], env=environment, capture_output=True, text=True, check=False)
    assert (found.stdout, found.stderr) == ("Longshore\n", "")


def test_the_manifest_goes_where_it_is_looked_for(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ADBC_DRIVER_PATH", raising=False)
    monkeypatch.delenv("ADBC_CONFIG_PATH", raising=False)
    monkeypatch.setattr("sys.prefix", str(tmp_path / "venv"))
    monkeypatch.setattr("sys.base_prefix", str(tmp_path / "base"))
    monkeypatch.setenv("CONDA_PREFIX", str(tmp_path / "conda"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "user"))

    def place(*options: str) -> str:
        done = shell("adbc", "install", *options, "--json")
        assert (done.code, done.errors) == (0, "")
        return str(Path(done.said["manifest"]).relative_to(tmp_path))

    assert place() == "venv/etc/adbc/drivers/longshore.toml"
    monkeypatch.setattr("sys.base_prefix", str(tmp_path / "venv"))
    assert place() == "conda/etc/adbc/drivers/longshore.toml"
    monkeypatch.delenv("CONDA_PREFIX")
    assert place() == place("--user") == "user/adbc/drivers/longshore.toml"
    monkeypatch.setenv("ADBC_CONFIG_PATH", str(tmp_path / "old"))
    assert place() == "old/longshore.toml"
    monkeypatch.setenv("ADBC_DRIVER_PATH", f"{tmp_path / 'new'}:{tmp_path / 'other'}")
    assert place() == "new/longshore.toml"
    monkeypatch.setattr(drivers, "_systems", lambda: tmp_path / "system")
    assert place("--system") == "system/longshore.toml"
    both = shell("adbc", "install", "--user", "--system")
    assert (both.code, "two places" in both.errors) == (2, True)
    monkeypatch.setenv("ADBC_DRIVER_PATH", str(tmp_path / "new" / "longshore.toml"))
    assert "cannot be written" in shell("adbc", "install").errors


def test_an_install_without_the_library_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(longshore.adbc, "_LIBRARY", "no_such_library.so")
    with pytest.raises(longshore.NotSupportedError, match="make adbc"):
        longshore.adbc.driver_path()
    with pytest.raises(longshore.InterfaceError, match="not int"):
        longshore.adbc.connect(7)  # type: ignore[arg-type]
