"""Processes that begin in milliseconds: forks of one that has imported all. `-m tests.store.forks MODULE FUNCTION`."""

import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa


class Forks:
    """Starts processes that call a function of a module with arguments, and reads what they say."""

    def __init__(self, template: subprocess.Popen[str]) -> None:
        """Ask a process that is there for them."""
        self._template = template

    def start(self, *arguments: object) -> None:
        """Begin a process, which says `[PID, "begins"]` and at last `[PID, "ends", STATUS]`."""
        assert self._template.stdin
        self._template.stdin.write(json.dumps(arguments, default=str) + "\n")
        self._template.stdin.flush()

    def next(self) -> list[Any]:
        """Wait until a process says something."""
        assert self._template.stdout
        said: list[Any] = json.loads(self._template.stdout.readline())
        return said


@contextlib.contextmanager
def forks(function: Callable[..., None]) -> Iterator[Forks]:
    """Give what starts processes that call it."""
    command = [sys.executable, "-m", "tests.store.forks", function.__module__, function.__name__]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as template:
        yield Forks(template)


def say(*words: object) -> None:
    """Say something to who has started this process: less than the 4,096 bytes that a pipe keeps together."""
    os.write(1, (json.dumps([os.getpid(), *words]) + "\n").encode())


def _main(module: str, function: str) -> None:
    work = getattr(importlib.import_module(module), function)
    pa.table({"id": [1]})  # pyarrow imports more at its first table
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        if os.fork() == 0:
            _wait_for(work, json.loads(line))


def _wait_for(work: Callable[..., None], arguments: list[Any]) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    process = os.fork()
    if process == 0:
        status = 1
        try:
            say("begins")
            work(*arguments)
            status = 0
        except BaseException:  # noqa: BLE001  whatever it is
            traceback.print_exc()
        finally:
            os._exit(status)
    _, status = os.waitpid(process, 0)
    os.write(1, (json.dumps([process, "ends", os.waitstatus_to_exitcode(status)]) + "\n").encode())
    os._exit(0)


if __name__ == "__main__":
    _main(*sys.argv[1:])
