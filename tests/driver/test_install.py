"""`longshore adbc install`: the manifest, and what finds the driver by it."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import longshore
import longshore.adbc
from tests.shell.running import alone, surroundings

FIND = (
    "from adbc_driver_manager import dbapi\n"
    "with dbapi.connect('longshore', db_kwargs={'uri': 'sqlite:///:memory:'}) as connection:\n"
    "    print(connection.adbc_get_info()['driver_name'])"
)


def test_the_driver_is_found_by_its_name(tmp_path: Path) -> None:
    done = alone("adbc", "install", "--user", "--json", XDG_CONFIG_HOME=str(tmp_path), HOME=str(tmp_path))
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


def test_an_install_without_the_library_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(longshore.adbc, "_LIBRARY", "no_such_library.so")
    with pytest.raises(longshore.NotSupportedError, match="make adbc"):
        longshore.adbc.driver_path()
    with pytest.raises(longshore.InterfaceError, match="not int"):
        longshore.adbc.connect(7)  # type: ignore[arg-type]
