"""Arguments that are wrong: an error that names the argument, before anything is read, written or connected."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import longshore
from tests.contract.conftest import Database

pytestmark = pytest.mark.usefixtures("leaves_nothing")

Wrong = tuple[dict[str, Any], str]

#: The arguments of a read, a write and a connection alike.
SHARED: list[Wrong] = [
    *(
        ({"timeout": value}, "timeout is a number of seconds, zero or more")
        for value in ("soon", -1, True, float("nan"))
    ),
    ({"nonsense": 1}, "unexpected keyword argument 'nonsense'"),
]
#: The arguments of a read and a write alike.
MOVING: list[Wrong] = [
    *SHARED,
    *(({"batch_size": value}, "batch_size is a number of rows from 1") for value in (0, -1, "many", 1.5, True)),
    *(({"progress": value}, "progress is True, False or a callable") for value in ("loud", 7)),
    ({"options": {"nonsense": 1}}, "unknown option 'nonsense'; known are numeric_nan"),
    ({"options": {"protocols": "text"}}, "unknown option 'protocols'.*protocol"),
    ({"options": {"protocol": "smoke"}}, r"options\['protocol'\] is one of 'binary', 'text'"),
    ({"options": {"snapshot": 1}}, r"options\['snapshot'\] is True or False"),
    *(
        ({"options": value}, "options is a mapping or longshore.Options")
        for value in (7, "numeric_nan", ["numeric_nan"])
    ),
    *(
        ({"conn": value}, "conn is a URL, a file, env:NAME")
        for value in (None, 7, b"sqlite://", ["sqlite://"], object())
    ),
    ({"conn": ""}, "URL"),
]
READS: list[Wrong] = [
    *MOVING,
    *(({"return_type": value}, "unknown return_type .*choose one of pandas") for value in ("nonsense", "", None, 7)),
    ({"dtype_backend": "nonsense"}, "unknown dtype_backend 'nonsense'"),
    ({"dtype_backend": "pyarrow", "return_type": "polars"}, 'dtype_backend is an option of return_type="pandas"'),
    ({"index_col": "nothing"}, "index_col names 'nothing'"),
    ({"index_col": 7}, "index_col is a column's name"),
    ({"index_col": "n", "return_type": "arrow"}, 'index_col is an option of return_type="pandas"'),
    ({"schema": {"nothing": "int64"}}, 'schema= names "nothing"'),
    ({"schema": {"n": "nonsense"}}, 'column "n": its type in schema= is not an Arrow type'),
    ({"schema": ["n"]}, "schema is a dict from column to type"),
    *(({"params": value}, "params is a list, a tuple or a dict") for value in ("x", b"x", 7, {1, 2}, frozenset({1}))),
    *(
        ({"query": value}, "query is a text or a list of texts")
        for value in (None, 7, b"SELECT 1", ["SELECT 1 AS n", 7])
    ),
    *(({"query": value}, "statement|[Qq]uery was empty") for value in ("", "  ", "-- nothing", ";")),
    ({"pre_execution_query": 7}, "pre_execution_query is a text"),
]
KEPT, NEW = {"if_exists": "append"}, {"if_exists": "replace"}
WRITES: list[Wrong] = [
    *(({**KEPT, **arguments}, message) for arguments, message in MOVING),
    *(
        ({"if_exists": value}, "unknown if_exists .*choose one of fail")
        for value in ("nonsense", "", "Append", None, 7)
    ),
    ({"if_exists": "upsert"}, "an upsert needs a key"),
    ({"if_exists": "upsert", "key": "nothing"}, 'key names "nothing"'),
    *(
        ({"if_exists": "upsert", "key": value}, "key is a column's name or a list of")
        for value in ((), ["id", "id"], 7)
    ),
    ({**KEPT, "types": {"id": "int"}}, "types are for a new table"),
    ({**NEW, "types": {"nothing": "int"}}, 'types names "nothing"'),
    *(({**NEW, "types": value}, "types is a dict") for value in ({"id": 7}, "int", ["id"])),
    *(({**KEPT, "parallel": value}, "parallel is a number of connections") for value in (0, -1, "two", True)),
    ({**KEPT, "index": "yes"}, "index is True or False"),
    *(({**KEPT, "data": value}, "cannot be written: give a pandas") for value in (7, None, "text", b"bytes")),
    ({**KEPT, "data": {"id": [1], "n": [1, 2]}}, "one dimension and one length"),
    *(({**KEPT, "table": value}, "names no table") for value in ("", "a..b", "a\0")),
    *(({**KEPT, "table": value}, "table is a name or a pair") for value in (None, 7, b"t")),
]
CONNECTS: list[Wrong] = [
    *SHARED,
    *(({"autocommit": value}, "autocommit is True or False") for value in (1, "yes", None)),
]
POOLS: list[Wrong] = [
    ({"size": value}, "size is a number of connections from 1") for value in (0, -1, "3", True, 2.5, None, 1 << 70)
]

ERRORS = (TypeError, longshore.InterfaceError, longshore.ProgrammingError)


def unsaid(verb: Callable[..., Any], usual: dict[str, Any], wrong: list[Wrong]) -> Iterator[str]:
    """Give the arguments that a verb takes, or refuses in other words."""
    for arguments, message in wrong:
        try:
            with pytest.raises(ERRORS, match=message):
                verb(**{**usual, **arguments})
        except BaseException as found:  # noqa: BLE001  told with its arguments
            yield f"{arguments}: {found!r}"


@pytest.mark.parametrize("how", ["frame", "stream"])
def test_of_a_read(database: Database, how: str) -> None:
    wrong, usual = READS, {"query": "SELECT 1 AS n"}
    if how == "stream":
        usual["return_type"] = "arrow_stream"
        frames = {"return_type", "dtype_backend", "index_col"}
        wrong = [each for each in READS if not frames & set(each[0])]
    with longshore.connect(database.url, autocommit=True) as connection:
        assert [*unsaid(longshore.read_sql, {**usual, "conn": connection}, wrong)] == []


def test_of_a_write(database: Database, table: str) -> None:
    database.execute(f"CREATE TABLE {table} ({database.column('id', 'int64', database.quirks.primary_key)}, n int)")
    usual = {"data": {"id": [1], "n": [2]}, "table": table, "conn": database.url}
    assert [*unsaid(longshore.write_sql, usual, WRITES)] == []
    assert database.rows(table) == []


def test_of_a_connection_and_a_pool(database: Database) -> None:
    assert [*unsaid(longshore.connect, {"conn": database.url}, CONNECTS)] == []
    assert [*unsaid(longshore.Pool, {"conn": database.url}, POOLS)] == []


def test_of_a_statement(database: Database) -> None:
    with longshore.connect(database.url, autocommit=True) as connection:
        wrong: list[Wrong] = [
            *(({"sql": value}, "statement|text") for value in (None, 7, b"SELECT 1")),
            *(({"params": value}, "params is a list, a tuple or a dict") for value in ("x", 7)),
            *SHARED,
        ]
        assert [*unsaid(connection.execute, {"sql": "SELECT 1"}, wrong)] == []
        # It goes on.
        assert database.rows("SELECT 7 AS n", connection) == [(7,)]


def test_of_a_copy(database: Database, table: str) -> None:
    query = f"SELECT 1 AS {database.quirks.name('id')}"
    usual = {"query": query, "source": database.url, "table": table, "target": database.url}
    wrong = [({name: value}, "conn is a URL, a file, env:NAME") for name in ("source", "target") for value in (None, 7)]
    others = {"data", "index", "conn", "parallel", "table", "batch_size"}
    wrong += [each for each in WRITES if not others & set(each[0])]
    # The query's one column is the key that there is.
    assert [*unsaid(longshore.copy, usual, wrong)] == []
    assert table not in database.tables()
