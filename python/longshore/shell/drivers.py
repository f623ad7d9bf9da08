"""``adbc install``: the manifest by which driver managers of all languages find the ADBC driver."""

import os
import platform
import sys
from pathlib import Path
from typing import Annotated

import typer

import longshore
from longshore import adbc
from longshore.errors import InterfaceError, NotSupportedError, OperationalError
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
    user: Annotated[bool, typer.Option("--user", help="Where managers of every language look for this user.")] = False,
    system: Annotated[bool, typer.Option("--system", help="Where they look for all users; root's.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Say what was done as JSON.")] = False,
) -> None:
    """Have ADBC's driver managers, of every language, find Longshore by the name `longshore`.

    Without an option, the manifest goes into the first folder of ADBC_DRIVER_PATH, else into Python's virtual
    environment, where Python's manager alone looks, or the conda environment, else into the user's folder.
    """
    if user and system:
        raise InterfaceError("--user and --system are two places", hint="give one of them, or install twice")
    library = adbc.driver_path()
    folder = _users() if user else _systems() if system else _environments() or _users()
    manifest = folder / "longshore.toml"
    try:
        manifest.parent.mkdir(parents=True, exist_ok=True)
        manifest.write_text(_text(library), encoding="utf-8")
    except OSError as error:
        message = f"{manifest} cannot be written: {error.strerror}"
        raise OperationalError(message, hint="--user writes where every user may write") from None
    figures = {"manifest": str(manifest), "driver": library}
    report(figures, f"{manifest} names {library}", as_json=as_json)


def _environments() -> Path | None:
    """Give the folder of what this process runs in; older managers call their variable ADBC_CONFIG_PATH."""
    for variable in ("ADBC_DRIVER_PATH", "ADBC_CONFIG_PATH"):
        if first := os.environ.get(variable, "").split(os.pathsep)[0]:
            return Path(first)
    prefix = sys.prefix if sys.prefix != sys.base_prefix else os.environ.get("CONDA_PREFIX")
    return Path(prefix, "etc", "adbc", "drivers") if prefix else None


def _users() -> Path:
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "ADBC" / "Drivers"
    if sys.platform == "win32":
        return Path(os.environ["LOCALAPPDATA"]) / "ADBC" / "Drivers"
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "adbc" / "drivers"


def _systems() -> Path:
    if sys.platform == "darwin":
        return Path("/Library/Application Support/ADBC/Drivers")
    if sys.platform == "win32":
        raise NotSupportedError("on Windows, drivers for all users are in the registry", hint="use --user")
    return Path("/etc/adbc/drivers")


def _text(library: str) -> str:
    machine = platform.machine().lower()
    name = f"{_SYSTEMS.get(sys.platform, 'linux')}_{_PROCESSORS.get(machine, machine)}"
    quoted = '"' + library.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return _MANIFEST.format(version=longshore.__version__, entrypoint=adbc.ENTRYPOINT, platform=name, path=quoted)
