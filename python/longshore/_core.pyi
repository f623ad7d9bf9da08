from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

__all__ = ["SCHEMES", "Column", "Reading", "Stream", "__version__", "open_read"]

SCHEMES: list[str]
__version__: str

@final
class Column:
    """One finished column of a whole result."""

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def data(self) -> Any: ...
    @property
    def masked(self) -> bool: ...
    @property
    def mask(self) -> Any: ...
    @property
    def labels(self) -> list[str] | None: ...
    @property
    def ordered(self) -> bool: ...
    @property
    def timezone(self) -> str | None: ...
    @property
    def text(self) -> bool: ...

@final
class Stream:
    """A result under the Arrow PyCapsule interface; consumed once."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...
    def __enter__(self) -> Stream: ...
    def __exit__(self, *_exception: object) -> None: ...
    def close(self) -> None: ...

@final
class Reading:
    """A result whose statement has been sent and whose rows have not been taken."""

    def columns(
        self,
        *,
        backend: str,
        arrow_strings: bool,
        json_objects: bool,
        memory_limit: int | None,
        progress: Callable[[int], object] | None,
    ) -> tuple[list[Column], int]: ...
    def table(
        self, *, for_polars: bool, memory_limit: int | None, progress: Callable[[int], object] | None
    ) -> Stream: ...
    def stream(self) -> Stream: ...

def open_read(
    *,
    url: str | None,
    scheme: str,
    keywords: Mapping[str, str],
    password: Callable[[], str] | None,
    setup: Sequence[str],
    queries: Sequence[str],
    params: object,
    types: Mapping[str, Any],
    policy: Mapping[str, str],
    batch_rows: int,
    batch_bytes: int,
    timeout: float | None,
) -> Reading: ...
