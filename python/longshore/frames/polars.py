"""polars: DataFrames over the core's own memory, without pyarrow; lazy frames computed piece by piece."""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from longshore.errors import DataError, NotSupportedError, OperationalError
from longshore.frames import needing, require_version
from longshore.frames.pushdown import Projection, column_positions
from longshore.options import Options
from longshore.texts import column_name

if TYPE_CHECKING:
    from longshore.frames.selection import Rows

with needing(library="polars", extra="polars", purpose='return_type="polars"'):
    import polars as pl

# Before 1.10, polars takes the first batch of an Arrow stream and loses the rest without a word.
require_version("polars", pl.__version__, (1, 10))


class PolarsTarget:
    """``return_type="polars"``."""

    for_polars = True

    def build(self, stream: Any) -> Any:
        """Make a ``polars.DataFrame`` with one chunk for each batch."""
        return _build(lambda: pl.DataFrame(stream))

    def build_batch(self, batch: Any) -> Any:
        """Make a ``polars.DataFrame`` of one batch."""
        return _build(lambda: pl.DataFrame(batch))


def _build(frame: Callable[[], pl.DataFrame]) -> pl.DataFrame:
    """Make the frame; a type that an older polars lacks, such as maps, is an error instead of a panic."""
    try:
        return frame()
    except pl.exceptions.PanicException as error:
        hint = "install a newer polars, or CAST the column in the query"
        raise NotSupportedError(f"polars {pl.__version__} lacks a column's type: {error}", hint=hint) from error


#: The remedies for what polars would hand over as something else: an object as its address, the others under a
#: name that Arrow does not have.
_LARGE = "cast it: pl.Decimal(38, 0) and pl.String hold large integers"
_HINTS = {
    "Object": "give its values one type of polars': pl.Series(name, frame[name].to_list(), dtype=...)",
    "Int128": _LARGE,
    "UInt128": _LARGE,
}


#: Types on whose memory predicates are tested.
_TESTABLE = (
    *(pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64),
    *(pl.Float32, pl.Float64, pl.Date, pl.Datetime, pl.String),
)


def batches(data: pl.DataFrame | pl.LazyFrame) -> Iterable[object]:
    """Return frames for Arrow's interface, a lazy one's as they are computed; before polars 1.34 all at once.

    Raises ``DataError`` for a type, and ``InterfaceError`` for a name, that Arrow does not have, and
    ``OperationalError`` for a lazy frame that polars cannot compute.
    """
    if isinstance(data, pl.DataFrame):
        yield _convert(data)
        return
    with _translating_errors("the lazy frame"):
        if hasattr(data, "collect_batches"):
            # A frame without rows gives no batch, and its columns with it.
            yield _convert(data.clear().collect())
            yield from map(_convert, data.collect_batches(maintain_order=True))
        else:
            yield _convert(data.collect())


def engine_table(data: pl.DataFrame | pl.LazyFrame, name: str, projection: Projection) -> object:
    """Return the columns that a query reads; a lazy frame computes no others. Raises as ``batches`` does."""
    from longshore.frames.scan import table_of

    with _translating_errors(repr(name)):
        schema = data.collect_schema()
    positions = column_positions([column_name(each) for each in schema.names()], projection(), name)
    # By position: polars takes a name such as ^a$ for a pattern. A frame without columns has no rows to count.
    lazy = data.select(pl.nth(positions)) if positions else data.select(pl.len())
    with _translating_errors(repr(name)):
        frame = lazy.collect() if isinstance(lazy, pl.LazyFrame) else lazy
    if not positions:
        return table_of([], [], range(frame.item()), name)
    table = _convert(frame).to_arrow()
    return table_of(list(table.schema), table.columns, frame, name)


def names(data: pl.DataFrame) -> list[str]:
    """Return the columns' names; raises ``InterfaceError`` for one that Arrow cannot have."""
    return [column_name(each) for each in data.columns]


def values(data: pl.DataFrame, at: int) -> object:
    """Return a column of numbers, days, times or texts as it lies in memory; None for all else."""
    column = data.to_series(at)
    if column.dtype not in _TESTABLE:
        return None
    import pyarrow as pa

    return pa.chunked_array([column.to_arrow(compat_level=pl.CompatLevel.newest())])


def take_rows(data: pl.DataFrame, positions: Sequence[int], rows: "Rows", options: Options) -> pl.DataFrame:
    """Return some rows of some columns."""
    del options
    taken: pl.DataFrame = data.select(pl.nth(positions))[rows.index]
    return taken


@contextlib.contextmanager
def _translating_errors(subject: str) -> Iterator[None]:
    """Raise ``OperationalError`` where a lazy frame fails, or a file that it reads is not there."""
    try:
        yield
    except (pl.exceptions.PolarsError, OSError) as error:
        raise OperationalError(f"polars could not compute {subject}: {error}") from error


def _convert(frame: pl.DataFrame) -> pl.DataFrame:
    casts: dict[str, pl.DataType] = {}
    for name, kind in frame.schema.items():
        # With a zero byte in it, polars would end the process.
        column_name(name)
        _refuse_foreign(name, kind)
        # polars gives columns of nothing a buffer, which Arrow forbids them.
        if kind == pl.Null:
            casts[name] = pl.String()
        elif kind == pl.List(pl.Null):
            casts[name] = pl.List(pl.String)
    return frame.cast(casts) if casts else frame  # type: ignore[arg-type]


def _refuse_foreign(name: str, kind: object) -> None:
    parts = [getattr(kind, "inner", None), *(field.dtype for field in getattr(kind, "fields", ()))]
    for part in parts:
        if part is not None:
            _refuse_foreign(name, part)
    if str(kind) in _HINTS:
        hint = _HINTS[str(kind)]
        raise DataError(f"column {name!r} is of polars' type {kind}, which Arrow does not have", hint=hint, column=name)
