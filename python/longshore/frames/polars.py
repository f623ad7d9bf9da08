"""polars: a DataFrame over the core's own memory, without pyarrow."""

from typing import Any

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
        return pl.DataFrame(stream)

    def build_batch(self, batch: ArrowArray) -> Any:
        """Make a ``polars.DataFrame`` of one batch."""
        return pl.DataFrame(batch)
