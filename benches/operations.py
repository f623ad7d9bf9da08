"""Fourteen everyday operations on a DataFrame called frame, in pandas and in SQL.

`frame` has the columns id, grp, key, value, amount, name, at; `other`, to join with, has grp and label.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd


@dataclass(frozen=True)
class Operation:
    """One operation, as pandas' users and as SQL's users write it."""

    name: str
    pandas: Callable[[Any, Any], Any]
    sql: str


OPERATIONS = [
    Operation("count", lambda frame, _: len(frame), "SELECT count(*) AS n FROM frame"),
    Operation("head", lambda frame, _: frame.head(10), "SELECT * FROM frame LIMIT 10"),
    Operation("filter", lambda frame, _: frame[frame["value"] > 0.99], "SELECT * FROM frame WHERE value > 0.99"),
    Operation(
        "filter by three",
        lambda frame, _: frame[(frame["value"] > 0.9) & (frame["grp"] < 50) & (frame["name"] != "crane 7")],
        "SELECT * FROM frame WHERE value > 0.9 AND grp < 50 AND name <> 'crane 7'",
    ),
    Operation(
        "columns",
        lambda frame, _: frame.loc[frame["key"] == 7, ["id", "name"]],
        "SELECT id, name FROM frame WHERE key = 7",
    ),
    Operation(
        "sort and head",
        lambda frame, _: frame.sort_values("value", ascending=False).head(10),
        "SELECT * FROM frame ORDER BY value DESC LIMIT 10",
    ),
    Operation(
        "group and sum",
        lambda frame, _: frame.groupby("grp", as_index=False)["value"].sum(),
        "SELECT grp, sum(value) AS value FROM frame GROUP BY grp ORDER BY grp",
    ),
    Operation(
        "group by two, five aggregates",
        lambda frame, _: frame.groupby(["grp", "key"], as_index=False).agg(
            rows=("id", "count"),
            total=("value", "sum"),
            mean=("amount", "mean"),
            low=("value", "min"),
            high=("value", "max"),
        ),
        "SELECT grp, key, count(id) AS rows, sum(value) AS total, avg(amount) AS mean, min(value) AS low, "
        "max(value) AS high FROM frame GROUP BY grp, key ORDER BY grp, key",
    ),
    Operation(
        "group by text",
        lambda frame, _: frame.groupby("name", as_index=False)["amount"].mean(),
        "SELECT name, avg(amount) AS amount FROM frame GROUP BY name ORDER BY name",
    ),
    Operation("distinct", lambda frame, _: frame["key"].nunique(), "SELECT count(DISTINCT key) AS n FROM frame"),
    Operation(
        "join and sum",
        lambda frame, other: frame.merge(other, on="grp").groupby("label", as_index=False)["amount"].sum(),
        "SELECT label, sum(amount) AS amount FROM frame JOIN other USING (grp) GROUP BY label ORDER BY label",
    ),
    Operation(
        "search text",
        lambda frame, _: frame["name"].str.contains("tug").sum(),
        "SELECT count(*) AS n FROM frame WHERE name LIKE '%tug%'",
    ),
    Operation(
        "by month",
        lambda frame, _: frame.groupby(frame["at"].dt.month)["value"].mean(),
        'SELECT month("at") AS month, avg(value) AS value FROM frame GROUP BY 1 ORDER BY 1',
    ),
    Operation(
        "filter, group, sort and head",
        lambda frame, _: (
            frame[frame["value"] > 0.5]
            .groupby("key", as_index=False)["amount"]
            .sum()
            .sort_values("amount", ascending=False)
            .head(10)
        ),
        "SELECT key, sum(amount) AS amount FROM frame WHERE value > 0.5 GROUP BY key ORDER BY amount DESC LIMIT 10",
    ),
]


def frames(rows: int) -> dict[str, pd.DataFrame]:
    """Make the two frames, the same ones every time."""
    random = np.random.default_rng(rows)
    words = pd.Series([f"{word} {number}" for word in ("crane", "tug", "rope", "pilot") for number in range(25)])
    frame = pd.DataFrame(
        {
            "id": np.arange(rows),
            "grp": random.integers(0, 100, rows),
            "key": random.integers(0, 1000, rows),
            "value": random.random(rows),
            "amount": random.random(rows) * 1000,
            "name": words.take(random.integers(0, len(words), rows)).reset_index(drop=True),
            "at": pd.Timestamp("2025-01-01") + pd.to_timedelta(random.integers(0, 365 * 86_400, rows), unit="s"),
        }
    )
    other = pd.DataFrame({"grp": np.arange(100), "label": [f"label {number % 10}" for number in range(100)]})
    return {"frame": frame, "other": other}
