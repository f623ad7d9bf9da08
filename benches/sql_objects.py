"""Columns of Python objects, as pandas has them from files, databases and JSON: frames, and queries over them."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd

_TEXTS = {
    "count distinct": "SELECT count(DISTINCT s) AS n FROM frame",
    "like": "SELECT count(*) AS n FROM frame WHERE s LIKE '%x%'",
    "min": "SELECT min(s) AS s FROM frame",
    "group": "SELECT s, count(*) AS n FROM frame GROUP BY s ORDER BY n DESC, s LIMIT 10",
}
_DICTS = {"dicts": "SELECT sum(v.id) AS id, min(v.name) AS name, avg(v.at.x) AS x, max(len(v.tags)) AS n FROM frame"}

#: How many texts there are of different characters; each row has an object of its own.
_DISTINCT = 100_000
#: There is one dict for so many texts.
_SHARE = 10


def cases(rows: int) -> Iterator[tuple[str, pd.DataFrame, dict[str, str]]]:
    """Give a title, a frame of the one column s or v, and queries by name; one frame after the other."""
    short = _column(rows, lambda number, _: f"tug {number}")
    yield "short", short, _TEXTS
    # Neighbours in the column are none in memory any more.
    yield "short, shuffled", short.sample(frac=1, random_state=1, ignore_index=True), _TEXTS
    del short
    yield "20 to 60", _column(rows, lambda number, _: f"crate {number:014}{'x' * (number % 41)}"), _TEXTS
    yield "not ASCII", _column(rows, lambda number, _: f"Kähne {number:08} до Ü"), _TEXTS
    yield "with None", _column(rows, lambda number, row: None if row % 3 == 0 else f"tug {number}"), _TEXTS
    yield "uniform", _frame("v", [_uniform(row) for row in range(rows // _SHARE)]), _DICTS
    yield "ragged", _frame("v", [_ragged(row) for row in range(rows // _SHARE)]), _DICTS


def _column(rows: int, text: Callable[[int, int], str | None]) -> pd.DataFrame:
    numbers = np.random.default_rng(1).integers(0, _DISTINCT, rows).tolist()
    return _frame("s", [text(number, row) for row, number in enumerate(numbers)])


def _frame(name: str, objects: list[Any]) -> pd.DataFrame:
    values = np.empty(len(objects), dtype=object)
    values[:] = objects
    # pandas 3 would make its own texts of them.
    return pd.DataFrame({name: pd.Series(values, dtype=object)})


def _uniform(row: int) -> dict[str, Any]:
    at = {"x": row / 7, "y": float(row % 90)}
    return {"id": row, "name": f"tug {row % 1000}", "at": at, "tags": ["new", f"berth {row % 40}"]}


def _ragged(row: int) -> dict[str, Any]:
    made = _uniform(row)
    if row % 3 == 0:
        del made["tags"]
    if row % 5 == 0:
        made["draught"] = row / 3
    if row % 7 == 0:
        made["note"] = row if row % 2 else f"note {row}"
    return made
