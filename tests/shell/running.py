"""The command, run within this process or in one of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass
class Done:
    """The code and output of a command."""

    code: int
    out: bytes
    errors: str

    @property
    def text(self) -> str:
        """Standard output as text."""
        return self.out.decode()

    @property
    def said(self) -> Any:
        """The object on standard output."""
        assert self.out, self.errors
        return json.loads(self.out)

    @property
    def failure(self) -> Any:
        """The object on standard error."""
        return json.loads(self.errors)


Shell = Callable[..., Done]


def command(*arguments: str) -> list[str]:
    """Return the command line."""
    return [sys.executable, "-m", "longshore", *arguments]


def surroundings(**more: str) -> dict[str, str]:
    """Return this process's environment without what changes a command."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("LONGSHORE_", "PG"))}
    return {**kept, **more}


def alone(*arguments: str, given: bytes = b"", **environment: str) -> Done:
    """Run the command in a process of its own."""
    done = subprocess.run(
        command(*arguments),
        input=given,
        capture_output=True,
        timeout=60,
        check=False,
        env=surroundings(**environment),
    )
    return Done(done.returncode, done.stdout, done.stderr.decode())
