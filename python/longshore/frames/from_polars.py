"""polars' lazy frames, collected piece by piece where polars can."""

from collections.abc import Iterable

import polars as pl


def lazy(frame: pl.LazyFrame) -> Iterable[object]:
    """Give the frame's rows as they are computed; before polars 1.34 all at once."""
    if hasattr(frame, "collect_batches"):
        # A frame without rows gives no batch, and its columns with it.
        yield frame.clear().collect()
        yield from frame.collect_batches(maintain_order=True)
    else:
        yield frame.collect()
