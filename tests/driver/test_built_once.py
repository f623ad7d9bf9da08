"""The crates that the wheel and the driver share are compiled once: with the same features in both."""

import subprocess
from pathlib import Path

#: The crates of the driver alone, and the registry, whose feature of SQL Server is the wheel's.
OWN = {"adbc_core", "adbc_ffi", "libloading", "longshore-adbc", "longshore-registry", "longshore-store-source"}


def built(package: str) -> set[str]:
    """Return the packages that one is made of, with their features."""
    command = ["cargo", "tree", "--locked", "--edges=normal,build", "--prefix=none", "--format={p} {f}"]
    command += ["--package", package]
    root = Path(__file__).parents[2]
    tree = subprocess.run(command, capture_output=True, text=True, check=True, cwd=root)
    return {line.removesuffix(" (*)") for line in tree.stdout.splitlines()}


def test_what_the_wheel_has_too_is_built_once() -> None:
    assert {line.split()[0] for line in built("longshore-adbc") - built("longshore-py")} == OWN
