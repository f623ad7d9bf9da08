"""Errors of a command: the exit code, the text for people and programs, and no passwords in it."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import IntEnum
from typing import Any
from urllib.parse import unquote

from longshore import errors
from longshore.errors import LOGIN, SETTING, STARS, mask
from longshore.shell import signals


class ExitCode(IntEnum):
    """The exit codes, which scripts rely on."""

    DONE = 0
    DATABASE = 1
    """The database refused: a statement, a value, a constraint."""
    USAGE = 2
    CONNECTION = 3
    """The database cannot be reached, or was lost."""
    FILE = 4
    LIBRARY = 5
    """A Python library is not installed."""
    INTERNAL = 70
    """A fault of Longshore's own."""
    TIMEOUT = 124
    """As timeout(1) has it."""
    HUNG_UP = 129
    """The terminal was closed."""
    INTERRUPTED = 130
    PIPE = 141
    """The reader of the output has gone."""
    TERMINATED = 143


_FIELDS = ("sqlstate", "detail", "hint", "position", "column", "row", "native_type")


class ClosedPipeError(Exception):
    """The reader of standard output has gone, as after ``| head``."""


#: The first that fits, so the narrower before the wider.
_CODES: list[tuple[type[BaseException], ExitCode]] = [
    (ClosedPipeError, ExitCode.PIPE),
    (errors.TimeoutError, ExitCode.TIMEOUT),
    (errors.InterfaceError, ExitCode.USAGE),
    (errors.OperationalError, ExitCode.CONNECTION),
    (errors.Error, ExitCode.DATABASE),
    (ImportError, ExitCode.LIBRARY),
    (OSError, ExitCode.FILE),
]


def exit_code(error: BaseException) -> ExitCode:
    """Return the exit code of an error.

    >>> exit_code(errors.DataError("too long")).name, exit_code(FileNotFoundError("out.csv")).name
    ('DATABASE', 'FILE')
    """
    if isinstance(error, SystemExit):
        return ExitCode(error.code) if isinstance(error.code, int) else ExitCode.USAGE
    if isinstance(error, KeyboardInterrupt):
        return ExitCode(signals.exit_code())
    if isinstance(error, errors.OperationalError) and str(error).startswith("IO Error: "):
        # The engine's errors about files begin so.
        return ExitCode.FILE
    for kind, code in _CODES:
        if isinstance(error, kind):
            return code
    # What comes out of the database is an error of Longshore's; pyarrow handles files alone here.
    is_of_file = isinstance(error, UnicodeError) or type(error).__module__.partition(".")[0] == "pyarrow"
    return ExitCode.FILE if is_of_file else ExitCode.INTERNAL


def error_fields(error: BaseException) -> dict[str, Any]:
    """Return an error's fields.

    >>> error_fields(errors.DataError("too long", column="berth", row=3))["column"]
    'berth'
    """
    fields = {name: getattr(error, name, None) for name in _FIELDS}
    # The hint is a field of its own.
    return {"kind": type(error).__name__, "message": _text(error).removesuffix(f"\nHint: {fields['hint']}")} | fields


def error_text(error: BaseException, *, as_json: bool, hide: Callable[[str], str]) -> str:
    """Return the text for standard error, without secrets; an empty one where there is nothing to say."""
    if isinstance(error, ClosedPipeError | SystemExit):
        return ""
    if as_json:
        # Before JSON escapes what has to be found.
        fields = {name: hide(part) if isinstance(part, str) else part for name, part in error_fields(error).items()}
        return json.dumps({**fields, "code": int(exit_code(error))}, ensure_ascii=False)
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    kind = "internal error: " if exit_code(error) is ExitCode.INTERNAL else ""
    return hide(f"error: {kind}{_text(error)}")


def _text(error: BaseException) -> str:
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    text = str(error) or type(error).__name__
    return f"{type(error).__name__}: {text}" if exit_code(error) is ExitCode.INTERNAL else text


#: An argument that is one URL, with a password that should have been percent-encoded.
_ALONE = re.compile(r"^-*(?:[^\s=:]*=)?[A-Za-z][\w+.-]*://[^:/@]*:(?P<password>.*)@", re.DOTALL)
_NAMES = re.compile("password|passwd|passphrase|_pwd$|token|secret", re.IGNORECASE)
#: A shorter one would be found in every other word.
_SHORTEST = 3


class SecretFilter:
    """Hides the secrets of a command's arguments and of its environment.

    >>> secrets = SecretFilter(["postgresql://me:rope%20walk@host/harbour"], {"PGPASSWORD": "anchor"})
    >>> secrets.hide("no 'rope walk' nor anchor; mysql://you:x@host")
    "no '***' nor ***; mysql://you:***@host"
    """

    def __init__(self, arguments: Iterable[str], environment: Mapping[str, str]) -> None:
        """Find the secrets."""
        found = {secret for text in (*arguments, *environment.values()) for secret in _secrets(text)}
        found |= {value for name, value in environment.items() if _NAMES.search(name)}
        # As errors quote them.
        found |= {repr(secret)[1:-1] for secret in found}
        # One that holds another goes first, or its rest would show.
        self._secrets = sorted((secret for secret in found if len(secret) >= _SHORTEST), key=len, reverse=True)

    def hide(self, text: str) -> str:
        """Return the text without the secrets."""
        for secret in self._secrets:
            text = text.replace(secret, STARS)
        return mask(text)


def _secrets(text: str) -> Iterator[str]:
    if "://" not in text:
        return
    for pattern in (LOGIN, SETTING, _ALONE):
        for match in pattern.finditer(text):
            yield match["password"]
            yield unquote(match["password"])
