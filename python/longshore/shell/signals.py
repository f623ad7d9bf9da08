"""The signals that end a command: Ctrl-C, SIGTERM, and SIGHUP, which a terminal sends that is closed.

Python drops what a signal's handler raises within a destructor, or within C code that imports a module, so the request
is repeated until an exception is being handled.
"""

import signal
import sys
import time
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

_NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
#: Seconds in which a second signal is the same request: timeout(1) and terminals send theirs twice.
_ECHO = 1.0
#: Seconds until a request is repeated.
_REPEAT = 0.2


class _Request:
    """The last request to end."""

    number = signal.SIGINT
    time = -_ECHO


def listen() -> None:
    """Have the signals raise ``KeyboardInterrupt``; one that is ignored, as by nohup(1), stays ignored."""
    for number in _NUMBERS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)
    signal.signal(signal.SIGALRM, _repeat)
    sys.unraisablehook = _drop


def stop_repeating() -> None:
    """End the repetition: the exception has arrived."""
    signal.setitimer(signal.ITIMER_REAL, 0)


def exit_code() -> int:
    """Return the exit code of a ``KeyboardInterrupt``, by the signal that raised it, as shells have it."""
    return 128 + _Request.number


def _interrupt(number: int, _frame: FrameType | None) -> None:
    now = time.monotonic()
    if now - _Request.time < _ECHO:
        return
    _Request.number, _Request.time = signal.Signals(number), now
    signal.setitimer(signal.ITIMER_REAL, _REPEAT, _REPEAT)
    _raise()


def _repeat(_number: int, _frame: FrameType | None) -> None:
    # Whoever handles an exception is about to end, and may clean up for longer.
    if sys.exc_info()[0] is None:
        _raise()


def _raise() -> None:
    # Whoever defers Ctrl-C for a while has a handler of their own, and defers every request.
    if signal.getsignal(signal.SIGINT) in {_interrupt, signal.SIG_IGN}:
        raise KeyboardInterrupt


def _drop(dropped: "UnraisableHookArgs") -> None:
    if not issubclass(dropped.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(dropped)
