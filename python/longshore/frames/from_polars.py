"""polars: eager frames as they are, lazy ones collected piece by piece where polars can."""

import contextlib
from collections.abc import Iterable, Iterator, Sequence

import polars as pl

from longshore.errors import DataError, OperationalError
from longshore.frames.rows import Rows
from longshore.frames.selected import selected
from longshore.frames.use import Wanted
from longshore.options import Options
from longshore.texts import column_name

#: What to do with what polars hands over as something else than it is: an object as its address, the others under a
#: name of its own.
_LARGE = "cast it: pl.Decimal(38, 0) and pl.String hold large integers"
_HINTS = {
    "Object": "give its values one type of polars': pl.Series(name, frame[name].to_list(), dtype=...)",
    "Int128": _LARGE,
    "UInt128": _LARGE,
}


#: Types whose memory is read beside the engine.
_COMPARED = (
    *(pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64),
    *(pl.Float32, pl.Float64, pl.Date, pl.Datetime, pl.String),
)


def frames(data: pl.DataFrame | pl.LazyFrame) -> Iterable[object]:
    """Give frames for Arrow's interface, a lazy one's as they are computed; before polars 1.34 all at once.

    Raises ``DataError`` for a type, and ``InterfaceError`` for a name, that Arrow does not have, and
    ``OperationalError`` for a lazy frame that polars cannot compute.
    """
    if isinstance(data, pl.DataFrame):
        yield _fit(data)
        return
    with _translated("the lazy frame"):
        if hasattr(data, "collect_batches"):
            # A frame without rows gives no batch, and its columns with it.
            yield _fit(data.clear().collect())
            yield from map(_fit, data.collect_batches(maintain_order=True))
        else:
            yield _fit(data.collect())


def table(data: pl.DataFrame | pl.LazyFrame, name: str, wanted: Wanted) -> object:
    """Give the columns that a query reads; a lazy frame computes no others. Raises as ``frames`` does."""
    from longshore.frames.from_arrow import of_columns

    with _translated(repr(name)):
        schema = data.collect_schema()
    places = selected([column_name(each) for each in schema.names()], wanted(), name)
    # By place: polars takes a name such as ^a$ for a pattern. A frame without columns has no rows to count.
    chosen = data.select(pl.nth(places)) if places else data.select(pl.len())
    with _translated(repr(name)):
        frame = chosen.collect() if isinstance(chosen, pl.LazyFrame) else chosen
    if not places:
        return of_columns([], [], range(frame.item()), name)
    made = _fit(frame).to_arrow()
    return of_columns(list(made.schema), made.columns, frame, name)


def names(data: pl.DataFrame) -> list[str]:
    """Give the columns' names; raises ``InterfaceError`` for one that is none."""
    return [column_name(each) for each in data.columns]


def values(data: pl.DataFrame, at: int) -> object:
    """Give a column of numbers, days, moments or texts as it lies in memory; None for all else."""
    column = data.to_series(at)
    if column.dtype not in _COMPARED:
        return None
    import pyarrow as pa

    return pa.chunked_array([column.to_arrow(compat_level=pl.CompatLevel.newest())])


def taken(data: pl.DataFrame, places: Sequence[int], rows: Rows, options: Options) -> pl.DataFrame:
    """Give some rows of some columns."""
    del options
    made: pl.DataFrame = data.select(pl.nth(places))[rows.index]
    return made


@contextlib.contextmanager
def _translated(what: str) -> Iterator[None]:
    """Raise ``OperationalError`` where a lazy frame fails, or a file that it reads is not there."""
    try:
        yield
    except (pl.exceptions.PolarsError, OSError) as error:
        message = f"polars could not compute {what}: {error}"
        raise OperationalError(message) from error


def _fit(frame: pl.DataFrame) -> pl.DataFrame:
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
        message = f"column {name!r} is of polars' type {kind}, which Arrow does not have\nHint: {hint}"
        raise DataError(message, column=name, hint=hint)
