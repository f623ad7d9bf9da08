"""``adbc install``: the manifest by which driver managers of all languages find the ADBC driver."""

import os
import platform
import sys
from pathlib import Path
from typing import Annotated

import typer

import longshore
from longshore import adbc
from longshore.shell.output import report

#: The processors' names in manifests, by those that Python knows.
_PROCESSORS = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
_SYSTEMS = {"darwin": "macos", "win32": "windows"}

_MANIFEST = """\
manifest_version = 1
name = "Longshore"
publisher = "Longshore"
license = "Apache-2.0"
version = "{version}"

[ADBC]
version = "1.1.0"

[Driver]
entrypoint = "{entrypoint}"

[Driver.shared]
{platform} = {path}
"""


def install(
    *,
    user: Annotated[bool, typer.Option("--user", help="For this user, even within a virtual environment.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Say what was done as JSON.")] = False,
) -> None:
    """Have ADBC's driver managers, of every language, find Longshore by the name `longshore`."""
    library = adbc.driver_path()
    manifest = _folder(user=user) / "longshore.toml"
    manifest.parent.mkdir(parents=True, exist_ok=True)
    manifest.write_text(_text(library), encoding="utf-8")
    figures = {"manifest": str(manifest), "driver": library}
    report(figures, f"{manifest} names {library}", as_json=as_json)


def _folder(*, user: bool) -> Path:
    """Give the folder in which managers look: the virtual environment's, or the user's."""
    if not user and sys.prefix != sys.base_prefix:
        return Path(sys.prefix) / "etc" / "adbc" / "drivers"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "ADBC" / "Drivers"
    if sys.platform == "win32":
        return Path(os.environ["LOCALAPPDATA"]) / "ADBC" / "Drivers"
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "adbc" / "drivers"


def _text(library: str) -> str:
    machine = platform.machine().lower()
    name = f"{_SYSTEMS.get(sys.platform, 'linux')}_{_PROCESSORS.get(machine, machine)}"
    quoted = '"' + library.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return _MANIFEST.format(version=longshore.__version__, entrypoint=adbc.ENTRYPOINT, platform=name, path=quoted)
