"""MariaDB's INSERT, REPLACE and DELETE with RETURNING: run once, and their columns come with the rows."""

from typing import Any

import pytest

import longshore
from tests.mysql.reading import column, table
from tests.servers import MySQLEndpoint

BOTH = pytest.mark.parametrize("protocol", ["binary", "text"])


@pytest.fixture
def made(mariadb: MySQLEndpoint) -> Any:
    """Give a URL, and a function that runs a statement in it, next to a table that goes with the test."""
    mariadb.sql("CREATE TABLE returned (id int AUTO_INCREMENT PRIMARY KEY, a varchar(20), b decimal(9, 2))")
    yield mariadb.url()
    mariadb.sql("DROP TABLE returned")


def ids(conn: str) -> list[Any]:
    """Give the ids of all rows."""
    return column("SELECT id FROM returned ORDER BY id", conn)


@BOTH
def test_each_statement_runs_once(made: str, protocol: str) -> None:
    options: dict[str, Any] = {"options": {"protocol": protocol}}
    result = table("INSERT INTO returned (a, b) VALUES ('q', 1.5), ('r', NULL) RETURNING id, a, b", made, **options)
    assert [str(field.type) for field in result.schema] == ["int32", "string", "decimal128(9, 2)"]
    assert result["id"].to_pylist() == [1, 2]
    assert result["a"].to_pylist() == ["q", "r"]
    assert ids(made) == [1, 2]
    replaced = table("REPLACE INTO returned (id, a) VALUES (2, 's') RETURNING upper(a) AS a", made, **options)
    assert replaced["a"].to_pylist() == ["S"]
    assert column("DELETE FROM returned WHERE id = 1 RETURNING id", made, **options) == [1]
    assert column("DELETE FROM returned WHERE id = 1 RETURNING id", made, **options) == []
    assert ids(made) == [2]


def test_with_parameters(made: str) -> None:
    query = "insert into returned (a, b) values (?, ?) returning id, b"
    assert table(query, made, params=["x", 2]).to_pylist() == [{"id": 1, "b": 2}]
    named = "/* mine */ DELETE FROM returned WHERE a = :a RETURNING a"
    assert column(named, made, params={"a": "x"}) == ["x"]
    assert ids(made) == []


def test_into_every_frame(made: str) -> None:
    for number, return_type in enumerate(("pandas", "polars", "numpy"), 1):
        result: Any = longshore.read_sql(
            "INSERT INTO returned (a) VALUES ('q') RETURNING id", made, return_type=return_type
        )
        assert list(result["id"]) == [number]
    stream = longshore.read_sql("DELETE FROM returned RETURNING id", made, return_type="arrow_stream")
    assert [batch.num_rows for batch in stream] == [3]
    assert ids(made) == []


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO returned (a) VALUES ('RETURNING')",
        "INSERT INTO returned (a) VALUES ('q') -- RETURNING id",
        "INSERT INTO returned (a) SELECT 'q' AS `returning`",
        "UPDATE returned SET a = 'q'",
        "DELETE FROM returned",
    ],
)
def test_what_returns_no_rows_is_not_run(made: str, statement: str) -> None:
    longshore.read_sql("INSERT INTO returned (a) VALUES ('old') RETURNING id", made)
    with pytest.raises(longshore.ProgrammingError, match="returns no rows, and was not run"):
        table(statement, made)
    assert column("SELECT a FROM returned", made) == ["old"]


def test_a_wrong_type_in_schema_is_found_when_it_has_run(made: str) -> None:
    with pytest.raises(longshore.InterfaceError, match="which the query does not return"):
        table("INSERT INTO returned (a) VALUES ('q') RETURNING id", made, schema={"c": "int64"})


def test_in_a_transaction(made: str) -> None:
    with longshore.connect(made, autocommit=False) as connection:
        assert column("INSERT INTO returned (a) VALUES ('q') RETURNING id", connection) == [1]
        connection.rollback()
    assert ids(made) == []


def test_mysql_has_none(mysql: MySQLEndpoint) -> None:
    with pytest.raises(longshore.ProgrammingError):
        table("DELETE FROM nothing RETURNING id", mysql.url())
