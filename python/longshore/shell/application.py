"""The commands, put together and run."""

import errno
import functools
import os
import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

import longshore
from longshore.shell import bench, commands, drivers, serving, signals
from longshore.shell.errors import ClosedPipeError, ExitCode, SecretFilter, error_text, exit_code
from longshore.shell.output import discard_output, write_error, write_output

_NAME = "longshore"
#: The base class of typer's exceptions for wrong arguments, whose name depends on its version.
_MISUSE = typer.BadParameter.__mro__[2]
_COMPLETION = ("--show-completion", "the shell's name")
_COMMANDS: dict[str, Callable[..., None]] = {
    "read": commands.read,
    "write": commands.write,
    "copy": commands.copy,
    "sql": commands.sql,
    "schema": commands.schema,
    "sources": commands.sources,
    "demo": bench.demo,
    "bench": bench.bench,
    "serve": serving.serve,
}
#: Each with one command.
_GROUPS: list[tuple[str, str, str, Callable[..., None]]] = [
    ("adbc", "Longshore as an ADBC driver.", "install", drivers.install),
    ("users", "Add users of a server.", "add", serving.add),
]


def _version(asked: bool) -> None:  # noqa: FBT001  typer's way to call it
    if asked:
        write_output(f"{_NAME} {longshore.__version__}")
        raise typer.Exit


def _root(
    *,
    version: Annotated[
        bool, typer.Option("--version", "-V", callback=_version, is_eager=True, help="Show the version and leave.")
    ] = False,
) -> None:
    """Load and unload databases."""


@functools.cache
def application() -> Any:
    """Make the application of all commands, once for a process: to make it takes longer than to run most of them."""
    app = typer.Typer(
        name=_NAME,
        # A stack frame may hold a password.
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_root)
    for name, command in _COMMANDS.items():
        app.command(name)(_guard(command))
    for name, about, verb, command in _GROUPS:
        group = typer.Typer(name=name, help=about)
        group.command(verb)(_guard(command))
        app.add_typer(group)
    return typer.main.get_command(app)


def run(arguments: Sequence[str]) -> int:
    """Do what the arguments say, and return the exit code; no secret is shown, however it ends."""
    try:
        return _run(list(arguments) or ["--help"])
    except _EndedError as ended:
        error: BaseException = ended.error
    except BaseException as wrong:  # noqa: BLE001  Python would show its values, which may be secrets
        error = wrong
    text = error_text(_translate(error), as_json="--json" in arguments, hide=SecretFilter(arguments, os.environ).hide)
    if text:
        write_error(text)
    if isinstance(error, ClosedPipeError):
        discard_output()
    return exit_code(_translate(error))


class _EndedError(Exception):
    """Carries the exception of a command past typer, which handles Ctrl-C and closed pipes its own way."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error


def _guard(command: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(command)
    def work(**arguments: Any) -> None:
        try:
            command(**arguments)
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
    code = application().main(arguments, prog_name=_NAME, standalone_mode=False)
    return code if isinstance(code, int) else ExitCode.DONE


def _translate(error: BaseException) -> BaseException:
    """Make an ``InterfaceError`` of typer's error about wrong arguments."""
    if not isinstance(error, _MISUSE):
        return error
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else _NAME
    hint = f"{command} --help shows the arguments"
    problem: str = getattr(error, "format_message")()  # noqa: B009  a class that typer does not name
    return longshore.InterfaceError(problem, hint=hint)
