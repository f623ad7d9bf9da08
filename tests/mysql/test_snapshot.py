"""Parts see one snapshot, whatever others do meanwhile: each read equals one state that the database was in."""

import contextlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow.compute as pc
import pytest

import longshore
from tests.changes import changing
from tests.mysql.comparing import ROWS, Options
from tests.mysql.reading import table
from tests.servers import MySQLEndpoint

pytestmark = pytest.mark.costly

Tables = Callable[[str], None]


@contextlib.contextmanager
def session(server: MySQLEndpoint) -> Iterator[Callable[[str], object]]:
    """Give what runs a statement in a session of another client's."""
    with contextlib.closing(server.client()) as client, client.cursor() as cursor:
        yield cursor.execute


CHANGES = [
    "UPDATE moving SET version = version + 1",
    "UPDATE moving SET amount = amount + if(id % 2 = 0, 1, -1)",
    "START TRANSACTION",
    "DELETE FROM moving WHERE id % 10 = 3",
    "INSERT INTO moving SELECT id, (SELECT max(version) FROM moving), 100 FROM ids WHERE id % 10 = 3",
    "UPDATE moving SET amount = 100",
    "COMMIT",
]


@pytest.mark.parametrize(
    "arguments",
    [
        {"partition_num": 4},
        {"partition_num": 3, "partition_on": "version"},
        {"partition_num": 2, "partition_on": "amount", "partition_range": (50, 150)},
        {"partition_num": 1},
    ],
    ids=["key", "one value", "range", "serial"],
)
@pytest.mark.parametrize("lock", [False, True])
def test_one_snapshot_of_a_table_that_changes(
    arguments: dict[str, Any],
    lock: bool,  # noqa: FBT001
    server: MySQLEndpoint,
    tables: Tables,
) -> None:
    values = ", ".join(f"({i}, 0, 100)" for i in range(ROWS))
    tables(f"""
        CREATE TABLE moving (id int PRIMARY KEY, version int, amount int);
        INSERT INTO moving VALUES {values};
        CREATE TABLE ids AS SELECT id FROM moving;
        ANALYZE TABLE moving;
    """)
    reads, parallel = 0, 0
    with changing(session(server), CHANGES) as more:
        while more(reads):
            with warnings.catch_warnings(record=True, action="always") as caught:
                result = table("SELECT * FROM moving", server.url(), options={"lock": lock}, **arguments)
            parallel += not caught
            assert result.num_rows == ROWS
            assert len(pc.unique(result["id"])) == ROWS
            assert len(pc.unique(result["version"])) == 1
            assert pc.sum(result["amount"]).as_py() == 100 * ROWS
            reads += 1
    assert reads > 1
    if lock:
        assert parallel == reads


@pytest.mark.parametrize("parts", [2, 4])
def test_one_snapshot_between_quick_changes(
    parts: int,
    server: MySQLEndpoint,
    tables: Tables,
    together: Options,
) -> None:
    # MariaDB shows one session the position of another's snapshot now and then, where both ask at once.
    values = ", ".join(f"({i}, 0)" for i in range(8))
    tables(f"CREATE TABLE moving (id int PRIMARY KEY, version int); INSERT INTO moving VALUES {values}")
    reads = 0
    with changing(session(server), ["UPDATE moving SET version = version + 1"]) as more:
        while more(reads):
            try:
                result = table(
                    "SELECT * FROM moving",
                    server.url(),
                    options=together,
                    partition_num=parts,
                    partition_on="id",
                    partition_range=(0, 8),
                )
            except longshore.OperationalError as error:
                # Where all processors are busy, four sessions may not come between two changes. They say so.
                if "no common snapshot" not in str(error):
                    raise
                continue
            assert sorted(result["id"].to_pylist()) == list(range(8))
            assert len(pc.unique(result["version"])) == 1
            reads += 1
    assert reads > 1
