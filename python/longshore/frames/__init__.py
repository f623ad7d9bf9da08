"""The dataframe libraries: one file each, imported only when its library is asked for."""

from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, assert_never

from longshore.errors import InterfaceError
from longshore.frames.given import given
from longshore.frames.target import FRAMES, ColumnsTarget, FrameName, StreamTarget, Target
from longshore.texts import display

if TYPE_CHECKING:
    from longshore.frames.pandas import PandasTarget
    from longshore.frames.polars import PolarsTarget

__all__ = [
    "FRAMES",
    "ColumnsTarget",
    "FrameName",
    "StreamTarget",
    "Target",
    "given",
    "pandas_target",
    "polars_target",
    "pyarrow_if_installed",
    "target",
]


def target(
    return_type: str,
    *,
    dtype_backend: str | None = None,
    index_col: str | Sequence[str] | None = None,
) -> Target:
    """Find what makes a frame of ``return_type``; its library is imported here.

    Raises ``InterfaceError`` for an unknown ``return_type`` and for options that the frame does not have, and
    ``ImportError`` where its library is missing or too old.
    """
    name = _known(return_type)
    if name != "pandas":
        _refuse(name, "dtype_backend", dtype_backend)
        _refuse(name, "index_col", index_col)
    # Each file imports its library; none may be imported unless it is asked for.
    match name:
        case "pandas":
            return pandas_target(dtype_backend, index_col)
        case "numpy":
            from longshore.frames.numpy import NumpyTarget

            return NumpyTarget()
        case "polars":
            return polars_target()
        case "arrow":
            from longshore.frames.arrow import ArrowTarget

            return ArrowTarget()
        case _:
            assert_never(name)


def pandas_target(dtype_backend: str | None, index_col: str | Sequence[str] | None) -> "PandasTarget":
    """Find what makes DataFrames of pandas; raises as ``target`` does."""
    from longshore.frames.pandas import PandasTarget

    return PandasTarget(dtype_backend, index_col)


def polars_target() -> "PolarsTarget":
    """Find what makes DataFrames of polars; raises as ``target`` does."""
    from longshore.frames.polars import PolarsTarget

    return PolarsTarget()


def pyarrow_if_installed() -> ModuleType | None:
    """Give the file of pyarrow, or None where it is not installed."""
    try:
        from longshore.frames import arrow
    except ImportError:
        return None
    return arrow


def _known(return_type: str) -> FrameName:
    for name in FRAMES:
        if name == return_type:
            return name
    # ConnectorX's.
    hint = 'return_type="arrow" gives a pyarrow.Table' if return_type == "arrow2" else None
    message = f"unknown return_type {display(return_type)}; choose one of {', '.join(FRAMES)}, arrow_stream"
    raise InterfaceError(message if hint is None else f"{message}\nHint: {hint}", hint=hint)


def _refuse(name: FrameName, option: str, value: object) -> None:
    if value is not None:
        message = f'{option} is an option of return_type="pandas", not of "{name}"'
        raise InterfaceError(message)
