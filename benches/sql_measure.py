"""One engine's section, in a process of its own: prints its median seconds as JSON.

python -m benches.sql_measure SECTION ENGINE ROWS ROUNDS
"""

import json
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

from benches import clickbench, operations, sql_objects
from benches.hits import hits
from benches.sql_peers import ENGINES, Engine
from benches.sql_tables import EXPORTS, lineitem

Task = tuple[str, Callable[[], Any]]
Section = Callable[[Engine, int], Iterable[Task]]


def main(section: str, engine: str, rows: str, rounds: str) -> None:
    """Run all tasks of a section, and print the median of each; one that fails has none."""
    peer = next(peer for peer in ENGINES if peer.name == engine)
    peer.prepare()
    print(json.dumps({name: measured(task, int(rounds)) for name, task in SECTIONS[section](peer, int(rows))}))


def measured(task: Callable[[], Any], rounds: int) -> float | None:
    """Return the median seconds of a task, after one run that does not count."""
    seconds = []
    for number in range(rounds + 1):
        start = time.perf_counter()
        try:
            result = task()
        except Exception as error:  # noqa: BLE001  every library has failures of its own
            sys.stderr.write(f"{type(error).__name__}: {str(error).strip().splitlines()[:1]}\n")
            return None
        if number:
            seconds.append(time.perf_counter() - start)
        # The next run begins with free memory.
        del result
    return statistics.median(seconds)


def _exports(engine: Engine, rows: int) -> Iterable[Task]:
    for name, (table, columns) in EXPORTS.items():
        file = lineitem() if table == "lineitem" else hits(min(rows, 1_000_000) if columns == "*" else rows)
        yield name, lambda file=file, columns=columns: engine.export(file, columns, None)  # type: ignore[misc]


def _queries(engine: Engine, rows: int) -> Iterable[Task]:
    import pandas as pd

    if (run := engine.run) is None:
        return
    frame = pd.read_parquet(hits(rows))
    for number, query in enumerate(clickbench.QUERIES):
        yield f"Q{number}", lambda query=query: run(query, {"hits": frame})  # type: ignore[misc]


def _operations(engine: Engine, rows: int) -> Iterable[Task]:
    frames = operations.frames(rows)
    for operation in operations.OPERATIONS:
        if (run := engine.run) is None:
            yield operation.name, lambda operation=operation: operation.pandas(frames["frame"], frames["other"])  # type: ignore[misc]
        else:
            tables = frames if "other" in operation.sql else {"frame": frames["frame"]}
            yield operation.name, lambda run=run, query=operation.sql, tables=tables: run(query, tables)  # type: ignore[misc]


def _fixed(engine: Engine, rows: int) -> Iterable[Task]:
    if (run := engine.run) is None:
        return
    frame = operations.frames(rows)["frame"]
    query = "SELECT grp, sum(value) AS value FROM frame GROUP BY grp"

    def many() -> None:
        for _ in range(100):
            run(query, {"frame": frame})

    yield "a hundred queries", many


def _objects(engine: Engine, rows: int) -> Iterable[Task]:
    if (run := engine.run) is None:
        return
    for title, frame, queries in sql_objects.cases(rows):
        for name, query in queries.items():
            yield f"{title}: {name}", lambda query=query, frame=frame: run(query, {"frame": frame})  # type: ignore[misc]


SECTIONS: dict[str, Section] = {
    "exports": _exports,
    "queries": _queries,
    "operations": _operations,
    "fixed": _fixed,
    "objects": _objects,
}

if __name__ == "__main__":
    main(*sys.argv[1:])
