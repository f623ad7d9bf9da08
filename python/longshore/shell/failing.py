"""What ends a command early: its exit code, and what it is called for people and for programs."""

import json
from collections.abc import Callable
from typing import Any

from longshore import errors
from longshore.shell import signals
from longshore.shell.codes import Code

__all__ = ["ClosedPipeError", "code", "described", "told"]

_PLACES = ("sqlstate", "detail", "hint", "position", "column", "row", "native_type")


class ClosedPipeError(Exception):
    """Nobody reads standard output any more, as after ``| head``."""


#: The first that fits, so the narrower before the wider.
_CODES: list[tuple[type[BaseException], Code]] = [
    (ClosedPipeError, Code.PIPE),
    (errors.TimeoutError, Code.TIMEOUT),
    (errors.InterfaceError, Code.USAGE),
    (errors.OperationalError, Code.CONNECTION),
    (errors.Error, Code.DATABASE),
    (ImportError, Code.LIBRARY),
    (OSError, Code.FILE),
]


def code(error: BaseException) -> Code:
    """Give the exit code of a failure.

    >>> code(errors.DataError("too long")).name, code(FileNotFoundError("out.csv")).name
    ('DATABASE', 'FILE')
    """
    if isinstance(error, SystemExit):
        return Code(error.code) if isinstance(error.code, int) else Code.USAGE
    if isinstance(error, KeyboardInterrupt):
        return signals.code()
    if isinstance(error, errors.OperationalError) and str(error).startswith("IO Error: "):
        # So the engine of sql begins what it says of a file.
        return Code.FILE
    for kind, given in _CODES:
        if isinstance(error, kind):
            return given
    return Code.FILE if _is_of_a_file(error) else Code.INTERNAL


def described(error: BaseException) -> dict[str, Any]:
    """Give a failure's parts.

    >>> described(errors.DataError("too long", column="berth", row=3))["column"]
    'berth'
    """
    said = {"kind": type(error).__name__, "message": _message(error)}
    return {**said, **{name: getattr(error, name, None) for name in _PLACES}}


def told(error: BaseException, *, as_json: bool, hide: Callable[[str], str]) -> str:
    """Give the text for standard error, without secrets; an empty one where there is nothing to say."""
    if isinstance(error, ClosedPipeError | SystemExit):
        return ""
    if as_json:
        # Before JSON has its way with what is to be found.
        said = {name: hide(part) if isinstance(part, str) else part for name, part in described(error).items()}
        return json.dumps({**said, "code": int(code(error))}, ensure_ascii=False)
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    kind = "internal error: " if code(error) is Code.INTERNAL else ""
    return hide(f"error: {kind}{_whole(error)}")


def _message(error: BaseException) -> str:
    """Give what happened, without the hint, which is a part of its own."""
    hint = getattr(error, "hint", None)
    return _whole(error).removesuffix(f"\nHint: {hint}") if hint else _whole(error)


def _whole(error: BaseException) -> str:
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    text = str(error) or type(error).__name__
    return f"{type(error).__name__}: {text}" if code(error) is Code.INTERNAL else text


def _is_of_a_file(error: BaseException) -> bool:
    # What comes out of the database is an error of Longshore's; pyarrow handles files alone here.
    return isinstance(error, UnicodeError) or type(error).__module__.partition(".")[0] == "pyarrow"
