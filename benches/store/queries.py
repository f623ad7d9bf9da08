"""Queries: both engines in one process, in turns."""

import math
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from benches.markdown import Goal, cell
from benches.store.section import Clients, Figures, Lines, Section, over
from benches.store.tables import open_duckdb, open_store
from benches.store.tpch import QUERIES, RANGE

#: A figure that is not a number of seconds: whether both engines have answered alike.
SAME = "same rows"
BOTH = "store and DuckDB"


def _queries(_url: str) -> Figures:
    queries = {f"Q{number}": query for number, query in QUERIES.items()} | {"range": RANGE}
    figures: Figures = {}
    with open_store() as store, open_duckdb() as connection:
        engines: dict[str, Callable[[str], Any]] = {
            "store": lambda query: store.sql(query, return_type="arrow"),
            "DuckDB": lambda query: connection.sql(query).to_arrow_table(),
        }
        for name, query in queries.items():
            answers = {engine: run(query) for engine, run in engines.items()}
            figures[f"{name}, {SAME}"] = _are_same(*answers.values())
            seconds: dict[str, list[float]] = {engine: [] for engine in engines}
            for _ in range(3):
                for engine, run in engines.items():
                    start = time.perf_counter()
                    run(query)
                    seconds[engine].append(time.perf_counter() - start)
            figures |= {f"{name}, {engine}": statistics.median(found) for engine, found in seconds.items()}
    return figures


def _are_same(ours: pa.Table, theirs: pa.Table) -> bool:
    """Whether two tables have the same rows; floats are added up in another order."""

    def same(one: object, other: object) -> bool:
        if isinstance(one, float) and isinstance(other, float):
            return math.isclose(one, other, rel_tol=1e-9)
        return one == other

    rows = [[tuple(row.values()) for row in answer.to_pylist()] for answer in (ours, theirs)]
    return len(rows[0]) == len(rows[1]) and all(
        len(one) == len(other) and all(map(same, one, other)) for one, other in zip(*rows, strict=True)
    )


def _query_lines(_section: str, clients: Clients) -> Lines:
    figures = clients[BOTH]
    lines = []
    for name in _query_names(figures):
        ours, theirs = (figures[f"{name}, {engine}"] for engine in ("store", "DuckDB"))
        same = "yes" if figures[f"{name}, {SAME}"] else "no"
        lines.append([name, same, cell(ours, digits=4), cell(theirs, digits=4), cell(over(ours, theirs))])
    return ["query", SAME, "store, s", "DuckDB, s", "x DuckDB"], lines


def _query_names(figures: Figures) -> list[str]:
    return [name.partition(",")[0] for name in figures if name.endswith(SAME)]


def _query_goals(clients: Clients) -> Iterator[Goal]:
    figures = clients[BOTH]
    names = _query_names(figures)
    times = {name: over(figures[f"{name}, store"], figures[f"{name}, DuckDB"]) for name in names}
    yield Goal(
        "queries with the same rows", sum(bool(figures[f"{name}, {SAME}"]) for name in names), at_least=len(names)
    )
    yield Goal("Q1 over DuckDB's file", times["Q1"], at_most=1.5)
    ratios = [value for name, value in times.items() if value and name != "range"]
    yield Goal("geometric mean of 22 over DuckDB's file", statistics.geometric_mean(ratios), at_most=1.35)
    yield Goal("a range of the sort column over DuckDB's file", times["range"], at_most=1)


SECTION = Section({BOTH: _queries}, _query_goals, _query_lines)
