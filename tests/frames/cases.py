"""Types whose values differ from frame to frame, queries of their values with NULLs, and what pandas holds."""

from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd

from longshore import Interval

#: The dtype of strings.
TEXT = str(pd.Series([""]).dtype)


def values(series: "pd.Series[Any]") -> list[Any]:
    """List a column's values as Python's own, NULL as None."""
    return [_python(value) for value in series.astype(object)]


def _python(value: Any) -> Any:
    match value:
        case pd.Timestamp():
            return value.to_pydatetime()
        case pd.Timedelta():
            return value.to_pytimedelta()
        case np.generic():
            return value.item()
        case list():
            return value
        case _:
            return None if value is None or value is pd.NA or value is pd.NaT or value != value else value  # noqa: PLR0124  NaN


_ID = UUID("12345678-1234-5678-1234-567812345678")

#: PostgreSQL's type, literals, Python's values.
DECIMAL = ("numeric(38,10)", ("1234567890123456789012345678.1234567890", "-0.0000000001"))
DECIMALS = tuple(Decimal(text) for text in DECIMAL[1])
IDENTIFIER = ("uuid", (str(_ID), str(UUID(int=0))))
IDENTIFIERS = (_ID, UUID(int=0))
SPAN = ("interval", ("1 mon -2 days 3 us", "0"))
SPANS = (Interval(1, -2, 3_000), Interval(0, 0, 0))


def query(sql: str, literals: tuple[str, ...], nulls: str = "last") -> str:
    """Select `literals` as column `c`, with a NULL first or last, with NULLs alone, or none; or no row at all."""
    texts: list[str | None] = [*literals]
    match nulls:
        case "first":
            texts.insert(0, None)
        case "last":
            texts.append(None)
        case "all":
            texts = [None] * len(texts)
        case "none" | "empty":
            pass
    rows = ", ".join(f"({number}, {_literal(text)}::{sql})" for number, text in enumerate(texts))
    where = "WHERE false" if nulls == "empty" else ""
    return f"SELECT c FROM (VALUES {rows}) AS t(number, c) {where} ORDER BY number"


def _literal(text: str | None) -> str:
    return "NULL" if text is None else "'" + text.replace("'", "''") + "'"


def expected(values: tuple[Any, ...], nulls: str) -> list[Any]:
    """List what `query` selects."""
    match nulls:
        case "first":
            return [None, *values]
        case "last":
            return [*values, None]
        case "all":
            return [None] * len(values)
        case "empty":
            return []
        case _:
            return [*values]


NULLS = ["first", "last", "all", "none", "empty"]
