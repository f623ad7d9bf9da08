"""The dataframe libraries: one file each, imported only when its library is asked for."""

import contextlib
import importlib
import sys
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, Protocol, assert_never, runtime_checkable

from longshore.errors import InterfaceError
from longshore.texts import display

if TYPE_CHECKING:
    from longshore._core import Column
    from longshore.frames.pandas import PandasTarget
    from longshore.frames.polars import PolarsTarget


FrameName = Literal["pandas", "numpy", "polars", "arrow"]

FRAMES: tuple[FrameName, ...] = ("pandas", "numpy", "polars", "arrow")

#: The forms that finished columns take; the table is in the core.
Backend = Literal["pandas", "numpy", "numpy_nullable", "pyarrow", "masked"]


@runtime_checkable
class ColumnsTarget(Protocol):
    """A frame that is built of finished columns."""

    backend: Backend
    #: Whether strings stay in Arrow memory.
    arrow_strings: bool

    def build(self, columns: "Sequence[Column]", rows: int) -> Any:
        """Make the frame of a whole result."""


class StreamTarget(Protocol):
    """A frame that is built of an object with ``__arrow_c_stream__``."""

    #: Whether the stream has the types and names that polars takes.
    for_polars: bool

    def build(self, stream: Any) -> Any:
        """Make the frame of a whole result."""


Target = ColumnsTarget | StreamTarget


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
    name = _frame_name(return_type)
    if name == "pandas":
        return pandas_target(dtype_backend, index_col)
    for option, value in {"dtype_backend": dtype_backend, "index_col": index_col}.items():
        if value is not None:
            raise InterfaceError(f'{option} is an option of return_type="pandas", not of "{name}"')
    match name:
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
    """Return pyarrow, or None where it is not installed."""
    try:
        return importlib.import_module("pyarrow")
    except ImportError:
        return None


def _frame_name(return_type: str) -> FrameName:
    for name in FRAMES:
        if name == return_type:
            return name
    # ConnectorX's.
    hint = 'return_type="arrow" gives a pyarrow.Table' if return_type == "arrow2" else None
    message = f"unknown return_type {display(return_type)}; choose one of {', '.join(FRAMES)}, arrow_stream"
    raise InterfaceError(message, hint=hint)


def is_of(data: object, module: str, *names: str) -> bool:
    """Whether it is an instance of one of a library's classes; the library is not imported for that."""
    loaded = sys.modules.get(module)
    return loaded is not None and isinstance(data, tuple(getattr(loaded, name) for name in names))


def missing(*, library: str, extra: str, purpose: str, instead: str = "") -> ImportError:
    """Make the error for a ``library`` that is not installed; ``instead`` is what does without."""
    other = f", or {instead}" if instead else ""
    return ImportError(f"{purpose} needs {library}: pip install 'longshore[{extra}]'{other}", name=library)


@contextlib.contextmanager
def needing(**what: str) -> Iterator[None]:
    """Import a library, or raise what ``missing`` makes of the same arguments."""
    try:
        yield
    except ImportError as error:
        raise missing(**what) from error


def require_version(library: str, found: str, minimum: tuple[int, int]) -> None:
    """Refuse a ``library`` older than ``minimum``."""
    parts = found.split(".")[:2]
    # A version that is not numbers is a development build: newer than any minimum.
    if len(parts) < len(minimum) or not all(part.isdigit() for part in parts):
        return
    if tuple(int(part) for part in parts) < minimum:
        oldest = ".".join(str(part) for part in minimum)
        raise ImportError(f"{library} {found} is too old: pip install '{library}>={oldest}'", name=library)
