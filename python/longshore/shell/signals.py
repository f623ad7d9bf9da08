"""The signals that end a command as Ctrl-C does: SIGTERM, and SIGHUP, which a terminal sends that is closed."""

import signal
import time
from types import FrameType

from longshore.shell.codes import Code

__all__ = ["code", "listen"]

_CODES = {signal.SIGTERM: Code.TERMINATED, signal.SIGHUP: Code.HUNG_UP}
#: Seconds in which a second signal is the same request: timeout(1) and terminals send theirs twice.
_ECHO = 1.0


class _Request:
    """The last request to end."""

    number: int | None = None
    time = -_ECHO


def listen() -> None:
    """Have the signals raise ``KeyboardInterrupt``; one that is ignored, as by nohup(1), stays ignored."""
    for number in _CODES:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)


def code() -> Code:
    """Give the exit code of a ``KeyboardInterrupt``, by the signal that raised it."""
    number = _Request.number
    return Code.INTERRUPTED if number is None else _CODES[signal.Signals(number)]


def _interrupt(number: int, frame: FrameType | None) -> None:
    now = time.monotonic()
    if now - _Request.time < _ECHO:
        return
    _Request.number, _Request.time = number, now
    # Whoever defers Ctrl-C for a while defers this as well.
    handler = signal.getsignal(signal.SIGINT)
    (handler if callable(handler) else signal.default_int_handler)(signal.SIGINT, frame)
