"""``sql``: SQL over dataframes, files and remote tables."""

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

from longshore.arguments import Backend
from longshore.connection import ConnectionLike
from longshore.options import Options
from longshore.stream import Stream

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import polars as pl
    import pyarrow as pa

__all__ = ["sql"]

_Params = Sequence[Any] | Mapping[str, Any] | None
_Attach = Mapping[str, ConnectionLike] | None
_Options = Mapping[str, Any] | Options | None


@overload
def sql(
    query: str,
    *,
    params: _Params = None,
    return_type: Literal["pandas"] = "pandas",
    dtype_backend: Backend | None = None,
    attach: _Attach = None,
    explain: Literal[False] = False,
    options: _Options = None,
    **tables: Any,
) -> "pd.DataFrame": ...
@overload
def sql(
    query: str,
    *,
    params: _Params = None,
    return_type: Literal["arrow"],
    attach: _Attach = None,
    explain: Literal[False] = False,
    options: _Options = None,
    **tables: Any,
) -> "pa.Table": ...
@overload
def sql(
    query: str,
    *,
    params: _Params = None,
    return_type: Literal["arrow_stream"],
    attach: _Attach = None,
    explain: Literal[False] = False,
    options: _Options = None,
    **tables: Any,
) -> Stream: ...
@overload
def sql(
    query: str,
    *,
    params: _Params = None,
    return_type: Literal["polars"],
    attach: _Attach = None,
    explain: Literal[False] = False,
    options: _Options = None,
    **tables: Any,
) -> "pl.DataFrame": ...
@overload
def sql(
    query: str,
    *,
    params: _Params = None,
    return_type: Literal["numpy"],
    attach: _Attach = None,
    explain: Literal[False] = False,
    options: _Options = None,
    **tables: Any,
) -> "dict[str, np.ma.MaskedArray[Any, Any]]": ...
@overload
def sql(
    query: str,
    *,
    params: _Params = None,
    return_type: str = "pandas",
    dtype_backend: Backend | None = None,
    attach: _Attach = None,
    explain: Literal[True],
    options: _Options = None,
    **tables: Any,
) -> str: ...
def sql(
    query: str,
    *,
    params: Sequence[Any] | Mapping[str, Any] | None = None,
    return_type: str = "pandas",
    dtype_backend: str | None = None,
    attach: Mapping[str, ConnectionLike] | None = None,
    explain: bool = False,
    options: Mapping[str, Any] | Options | None = None,
    **tables: Any,
) -> Any:
    """Run SQL over dataframes by their variables' names, over files and over remote tables.

    >>> import longshore, pandas
    >>> boats = pandas.DataFrame({"berth": [1, 2, 2], "tons": [10.5, 4.0, None]})
    >>> longshore.sql("SELECT berth, sum(tons) AS tons FROM boats GROUP BY berth ORDER BY berth")
       berth  tons
    0      1  10.5
    1      2   4.0

    DuckDB executes the query, in its dialect. A table's name that DuckDB does not know is a keyword of this call, else
    a variable: of the caller, of the functions around it, of its module.
    """
    # DuckDB is imported with it.
    from longshore.engine.running import run

    return run(
        query,
        sys._getframe(1),  # noqa: SLF001  the caller's variables are the query's tables
        params=params,
        return_type=return_type,
        dtype_backend=dtype_backend,
        attach=attach,
        explain=explain,
        options=options,
        tables=tables,
    )
