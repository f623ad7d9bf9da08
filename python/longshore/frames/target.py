"""What the verbs and the dataframe files know of each other."""

from collections.abc import Sequence
from typing import Any, Literal, Protocol, runtime_checkable

FrameName = Literal["pandas", "numpy", "polars", "arrow"]

FRAMES: tuple[FrameName, ...] = ("pandas", "numpy", "polars", "arrow")

Backend = Literal["pandas", "numpy", "numpy_nullable", "pyarrow", "masked"]


class Column(Protocol):
    """A finished column of the Rust core: see ``longshore._core.Column``."""

    @property
    def name(self) -> str:
        """The column's name."""

    @property
    def kind(self) -> str:
        """``numbers``, ``objects``, ``dictionary`` or ``chunks``."""

    @property
    def data(self) -> Any:
        """A NumPy array of values, objects or codes; of ``chunks`` a list of Arrow arrays in capsules."""

    @property
    def masked(self) -> bool:
        """Whether NULLs show in ``mask``."""

    @property
    def mask(self) -> Any:
        """A NumPy array of booleans, true where a row is NULL, or None where no row is."""

    @property
    def labels(self) -> list[str] | None:
        """The labels of a ``dictionary``."""

    @property
    def ordered(self) -> bool:
        """Whether the labels are in a meaningful order."""

    @property
    def timezone(self) -> str | None:
        """The time zone of instants."""

    @property
    def text(self) -> bool:
        """Whether the values are strings."""

    def no_mask(self) -> Any:
        """Make a mask for a column that has none: a NumPy array that is false for every row."""


class ArrowStream(Protocol):
    """A result under the Arrow PyCapsule interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Hand the stream over."""


class ArrowArray(Protocol):
    """A record batch under the Arrow PyCapsule interface."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        """Hand the batch over."""


@runtime_checkable
class ColumnsTarget(Protocol):
    """A frame that is made of finished columns."""

    @property
    def backend(self) -> Backend:
        """The name of the forms that columns take; the table is in the core."""

    @property
    def arrow_strings(self) -> bool:
        """Whether strings stay in Arrow memory."""

    def build(self, columns: Sequence[Column], rows: int) -> Any:
        """Make the frame of a whole result."""


class StreamTarget(Protocol):
    """A frame that is made of an Arrow stream."""

    @property
    def for_polars(self) -> bool:
        """Whether the stream has the types and names that polars takes."""

    def build(self, stream: ArrowStream) -> Any:
        """Make the frame of a whole result."""


Target = ColumnsTarget | StreamTarget
