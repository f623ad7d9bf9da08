"""The command ``longshore``: the verbs, from a shell."""

import importlib
import os
import sys
from collections.abc import Sequence

from longshore.shell import output, signals
from longshore.shell.errors import ExitCode


class _NoPandas:
    """A finder by which there is no pandas, as the shell's process has no frames: `bench` reads in others.

    pyarrow imports it with its first array, which takes half a second, in which an interruption may be lost.
    """

    @staticmethod
    def find_spec(name: str, *_: object) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("the shell does without pandas", name=name)


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the arguments say, those of the process by default, and return the exit code."""
    if arguments is None:
        output.prepare_streams()
        sys.meta_path.insert(0, _NoPandas)
        # NumPy, which pyarrow imports, would start a thread of linear algebra for each core.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        # typer does without it, and the rest does not.
        importlib.import_module("rich")
        from longshore.shell.application import run
    except ImportError as error:
        # Whatever else is missing is a fault of this installation, and shows as it is.
        if error.name is None or error.name.partition(".")[0] not in {"typer", "rich"}:
            raise
        sys.stderr.write("the command needs typer and rich: pip install 'longshore[shell]'\n")
        return ExitCode.LIBRARY
    if arguments is not None:
        return run(arguments)
    signals.listen()
    return run([output.decode_argument(argument) for argument in sys.argv[1:]])
