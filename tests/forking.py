"""A forked child, and what it finds."""

import gc
import multiprocessing
import os
import signal
from collections.abc import Callable
from typing import Any

import pytest


def answers(*uses: Callable[[], Any]) -> list[Any]:
    """Fork, and return what each use returned in the child, or the text of its error."""
    ours, theirs = multiprocessing.get_context("fork").Pipe()
    # What earlier tests left, an engine of another library's perhaps, is not to be collected in the child.
    gc.collect()
    child = os.fork()
    if child == 0:
        gc.freeze()
        # Nothing of pytest's may run in here.
        answered = []
        for use in uses:
            try:
                answered.append(use())
            except BaseException as error:  # noqa: BLE001  whatever it is, it is told
                answered.append(str(error))
        theirs.send(answered)
        os._exit(0)
    try:
        if not ours.poll(20):
            # It says where, as pytest has Python do.
            os.kill(child, signal.SIGABRT)
            pytest.fail("the child hangs")
        return list(ours.recv())
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
