"""The arguments that a verb and its twin for asyncio share, for type checkers."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypedDict

from longshore.options import Options
from longshore.partition import Number
from longshore.progress import Progress
from longshore.target import SQLAlchemyText

__all__ = ["Backend", "Copying", "ForPandas", "IfExists", "Query", "Shared", "Writing"]

Backend = Literal["numpy", "numpy_nullable", "pyarrow"]
Query = str | SQLAlchemyText | Sequence[str | SQLAlchemyText]


IfExists = Literal["fail", "append", "replace", "truncate", "upsert"]


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
    """Those and pandas' own."""

    dtype_backend: Backend | None
    index_col: str | Sequence[str] | None


class Copying(TypedDict, total=False):
    """Those of a copy."""

    if_exists: IfExists
    key: str | Sequence[str] | None
    types: Mapping[str, str] | None
    params: Sequence[Any] | Mapping[str, Any] | None
    schema: Mapping[str, Any] | None
    partition_on: str | None
    partition_num: Number | None
    timeout: float | None
    progress: bool | Callable[[Progress], object]
    options: Mapping[str, Any] | Options | None


class Writing(TypedDict, total=False):
    """Those of a write."""

    if_exists: IfExists
    key: str | Sequence[str] | None
    types: Mapping[str, str] | None
    index: bool
    columns: Sequence[str] | None
    batch_size: int | None
    parallel: int
    timeout: float | None
    progress: bool | Callable[[Progress], object]
    options: Mapping[str, Any] | Options | None
