"""The commands, put together and run."""

import errno
import functools
import os
import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

import longshore
from longshore.shell import bench, commands, signals
from longshore.shell.errors import ClosedPipeError, ExitCode, SecretFilter, error_text, exit_code
from longshore.shell.output import discard_output, write_error, write_output

NAME = "longshore"
#: What typer's own exceptions for wrong arguments have in common, whatever its version calls it.
_MISUSE = typer.BadParameter.__mro__[2]
_COMPLETION = ("--show-completion", "the shell's name")
_COMMANDS: dict[str, Callable[..., None]] = {
    "read": commands.read,
    "write": commands.write,
    "copy": commands.copy,
    "sql": commands.sql,
    "schema": commands.schema,
    "demo": bench.demo,
    "bench": bench.bench,
}


def _version(asked: bool) -> None:  # noqa: FBT001  typer's way to call it
    if asked:
        write_output(f"{NAME} {longshore.__version__}")
        raise typer.Exit


def _root(
    *,
    version: Annotated[
        bool, typer.Option("--version", "-V", callback=_version, is_eager=True, help="Show the version and leave.")
    ] = False,
) -> None:
    """Load and unload databases."""


def application() -> typer.Typer:
    """Make the application of all commands."""
    made = typer.Typer(
        name=NAME,
        # What a frame of the stack holds may be a password.
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    made.callback()(_root)
    for name, command in _COMMANDS.items():
        made.command(name)(_guarded(command))
    return made


def run(arguments: Sequence[str]) -> int:
    """Do what the arguments say, and return the exit code; no secret is shown, however it ends."""
    try:
        return _run(list(arguments) or ["--help"])
    except _EndedError as ended:
        error: BaseException = ended.error
    except BaseException as wrong:  # noqa: BLE001  Python would show what it holds, which may be a secret
        error = wrong
    text = error_text(_translated(error), as_json="--json" in arguments, hide=SecretFilter(arguments, os.environ).hide)
    if text:
        write_error(text)
    if isinstance(error, ClosedPipeError):
        discard_output()
    return exit_code(_translated(error))


class _EndedError(Exception):
    """Carries what ended a command past typer, which has ideas of its own about Ctrl-C and closed pipes."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error


def _guarded(command: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(command)
    def work(**given: Any) -> None:
        try:
            command(**given)
        except BaseException as error:
            signals.stop_repeating()
            raise _EndedError(error) from error

    return work


def _run(arguments: list[str]) -> int:
    if sys.stdout is None:
        raise OSError(errno.EBADF, "it is closed", "standard output")
    if len(arguments) == len(_COMPLETION) and arguments[0] == _COMPLETION[0]:
        # typer shows the script of the shell that it runs in; its own way to ask for another is the environment.
        os.environ["_LONGSHORE_COMPLETE"] = f"source_{arguments[1]}"
    done = typer.main.get_command(application()).main(arguments, prog_name=NAME, standalone_mode=False)
    return done if isinstance(done, int) else ExitCode.DONE


def _translated(error: BaseException) -> BaseException:
    """Make an ``InterfaceError`` of what typer says of wrong arguments."""
    if not isinstance(error, _MISUSE):
        return error
    context = getattr(error, "ctx", None)
    asked = context.command_path if context is not None else NAME
    hint = f"{asked} --help shows the arguments"
    said: str = getattr(error, "format_message")()  # noqa: B009  a class that typer does not name
    return longshore.InterfaceError(f"{said}\nHint: {hint}", hint=hint)
