"""polars: a DataFrame over the core's own memory, without pyarrow."""

from collections.abc import Callable
from typing import Any

from longshore.errors import NotSupportedError
from longshore.frames.libraries import missing, require_version
from longshore.frames.target import ArrowArray, ArrowStream

try:
    import polars as pl
except ImportError as error:
    raise missing(library="polars", extra="polars", purpose='return_type="polars"') from error

# Before 1.10, polars takes the first batch of an Arrow stream and loses the rest without a word.
require_version("polars", pl.__version__, (1, 10))


class PolarsTarget:
    """``return_type="polars"``."""

    for_polars = True

    def build(self, stream: ArrowStream) -> Any:
        """Make a ``polars.DataFrame`` with one chunk for each batch."""
        return _whole(lambda: pl.DataFrame(stream))

    def build_batch(self, batch: ArrowArray) -> Any:
        """Make a ``polars.DataFrame`` of one batch."""
        return _whole(lambda: pl.DataFrame(batch))


def _whole(frame: Callable[[], pl.DataFrame]) -> pl.DataFrame:
    """Make the frame; what an older polars lacks, such as maps, is an error and no panic."""
    try:
        return frame()
    except pl.exceptions.PanicException as error:
        hint = "install a newer polars, or CAST the column in the query"
        message = f"polars {pl.__version__} lacks a column's type: {error}\nHint: {hint}"
        raise NotSupportedError(message, hint=hint) from error
