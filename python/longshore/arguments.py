"""The arguments that ``read_sql`` and ``read_sql_async`` share, for type checkers."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypedDict

from longshore.options import Options
from longshore.partition import Number
from longshore.progress import Progress

__all__ = ["Backend", "ForPandas", "Query", "Shared"]

Backend = Literal["numpy", "numpy_nullable", "pyarrow"]
Query = str | Sequence[str]


class Shared(TypedDict, total=False):
    """The arguments that every return type takes."""

    params: Sequence[Any] | Mapping[str, Any] | None
    schema: Mapping[str, Any] | None
    partition_on: str | None
    partition_num: Number | None
    partition_range: tuple[Any, Any] | None
    batch_size: int | None
    pre_execution_query: str | Sequence[str] | None
    timeout: float | None
    progress: bool | Callable[[Progress], object]
    options: Mapping[str, Any] | Options | None


class ForPandas(Shared, total=False):
    """Those of pandas beside."""

    dtype_backend: Backend | None
    index_col: str | Sequence[str] | None
