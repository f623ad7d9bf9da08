"""Files that DuckDB does not read by itself: Arrow's IPC format."""

from glob import glob, has_magic
from pathlib import Path
from typing import Any

from longshore.errors import OperationalError

__all__ = ["arrow_files"]

_SUFFIXES = {".arrow", ".arrows", ".feather", ".ipc"}

#: What a file of the format begins with; a stream has no such mark.
_MAGIC = b"ARROW1"


def arrow_files(name: str) -> Any:
    """Give what scans the Arrow files of a path or a glob; None for a name that is neither.

    Directories such as ``year=2026`` are columns. Raises ``OperationalError`` where there is no such file.
    """
    if Path(name).suffix.lower() not in _SUFFIXES:
        return None
    # A Path's own glob takes no absolute pattern.
    paths = sorted(glob(name, recursive=True)) if has_magic(name) else [name]  # noqa: PTH207
    if not paths or not Path(paths[0]).is_file():
        message = f"there is no file {name!r}"
        raise OperationalError(message)
    from longshore.frames import from_arrow

    try:
        return from_arrow.streamed(paths) if _is_stream(paths[0]) else from_arrow.filed(paths)
    except (OSError, ValueError) as error:
        message = f"{name!r} cannot be read as an Arrow file: {error}"
        raise OperationalError(message) from error


def _is_stream(path: str) -> bool:
    with Path(path).open("rb") as file:
        return file.read(len(_MAGIC)) != _MAGIC
