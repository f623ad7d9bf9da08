"""Letters that a source cannot write, numbers that it cannot subtract, and statements that are no SELECT."""

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

import longshore
from tests.servers import Endpoint, MySQLEndpoint

LETTERS = ["a", "ä", "€", "日本", "💧", "a💧"]


@pytest.fixture
def narrow(postgres: Endpoint) -> Iterator[dict[str, str]]:
    """Give databases of PostgreSQL by their encoding, where `words` has an ä."""
    names = {encoding: f"narrow_{encoding.lower()}_{uuid.uuid4().hex[:8]}" for encoding in ("LATIN1", "SQL_ASCII")}
    for encoding, name in names.items():
        postgres.psql(f"CREATE DATABASE {name} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0")
        postgres.psql(r"CREATE TABLE words (word text)", database=name)
    with longshore.connect(postgres.url(database=names["LATIN1"]), autocommit=True) as connection:
        connection.execute("INSERT INTO words VALUES ('a'), ('ä')")
    yield {encoding: postgres.url(database=name) for encoding, name in names.items()}
    for name in names.values():
        postgres.psql(f"DROP DATABASE {name}")


@pytest.fixture
def words(mariadb: MySQLEndpoint) -> Iterator[str]:
    """Give a database of MariaDB, where `words` has a column for each character set."""
    name = f"words_{uuid.uuid4().hex[:8]}"
    sets = ["utf8mb4", "utf8mb3", "latin1", "latin2", "ascii", "ucs2", "swe7", "cp1251"]
    columns = ", ".join(f"{one} varchar(9) CHARACTER SET {one} COLLATE {one}_bin" for one in sets)
    mariadb.sql(f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
    mariadb.sql(f"CREATE TABLE words ({columns})", database=name)
    mariadb.sql("INSERT INTO words VALUES (" + ", ".join(["'a'"] * len(sets)) + ")", database=name)
    mariadb.sql("CREATE TABLE counts (u int unsigned, b bigint unsigned, i int)", database=name)
    mariadb.sql("INSERT INTO counts VALUES (1, 2, 5), (3, 18446744073709551615, -7)", database=name)
    yield mariadb.url(database=name)
    mariadb.sql(f"DROP DATABASE {name}")


def rows(query: str, url: str) -> list[tuple[Any, ...]]:
    """Give the rows of a query over `db`."""
    found = longshore.sql(query, attach={"db": url}, return_type="arrow")
    return [tuple(row.values()) for row in found.to_pylist()]


@pytest.mark.parametrize("letters", LETTERS)
def test_letters_that_postgresql_cannot_write(narrow: dict[str, str], letters: str) -> None:
    query = f"SELECT count(*) FROM db.words WHERE word = '{letters}'"
    assert rows(query, narrow["LATIN1"]) == [(int(letters in {"a", "ä"}),)]
    plan = longshore.sql(query, attach={"db": narrow["LATIN1"]}, explain=True)
    assert (" WHERE " in plan.partition("-- engine")[0]) is (letters in {"a", "ä"})
    assert rows(query, narrow["SQL_ASCII"]) == [(0,)]


@pytest.mark.filterwarnings("ignore::longshore.DataWarning")
@pytest.mark.parametrize("letters", [*LETTERS, "[a]"])
def test_letters_that_mysql_cannot_write(words: str, letters: str) -> None:
    for column in ("utf8mb4", "utf8mb3", "latin1", "latin2", "ascii", "ucs2", "swe7", "cp1251"):
        for condition in (f"= '{letters}'", f"IN ('{letters}', 'b')"):
            assert rows(f"SELECT count(*) FROM db.words WHERE {column} {condition}", words) == [(int(letters == "a"),)]
    for column, known in {"utf8mb4": LETTERS, "utf8mb3": LETTERS[:4], "latin1": LETTERS[:3], "ascii": ["a"]}.items():
        query = f"SELECT count(*) FROM db.words WHERE {column} = '{letters}'"
        plan = longshore.sql(query, attach={"db": words}, explain=True)
        assert (" WHERE " in plan.partition("-- engine")[0]) is (letters in [*known, "[a]"])


@pytest.mark.parametrize("number", ["u - i", "u + -5", "i - u", "u * -1", "b - i", "u - u", "-7 + u", "sum(u)"])
def test_what_becomes_of_unsigned_numbers_may_be_negative(words: str, number: str) -> None:
    table = longshore.read_sql("SELECT * FROM counts", words, return_type="arrow")
    expected = longshore.sql(f"SELECT {number} AS n FROM counts ORDER BY n", counts=table, return_type="arrow")
    assert rows(f"SELECT {number} AS n FROM db.counts ORDER BY n", words) == [
        (value,) for value in expected["n"].to_pylist()
    ]


@pytest.fixture
def tons(postgres: Endpoint) -> Iterator[str]:
    """Give the URL of a database where `tons` has a number of more decimals than a stream's."""
    postgres.psql("""
        CREATE TABLE tons AS SELECT i AS id, i % 2 AS pier, 'w' || i % 3 AS word, i * 1.123456789012345678901234 AS n
        FROM generate_series(0, 5) AS i
    """)
    yield postgres.url()
    postgres.psql("DROP TABLE tons")


@pytest.mark.parametrize("query", ["SELECT n FROM db.tons", "SELECT id, n + 1 AS m FROM db.tons"])
def test_a_number_of_too_many_decimals_names_a_remedy_of_sql(tons: str, query: str) -> None:
    with pytest.raises(longshore.DataError, match="more than 20 decimals") as caught:
        rows(query, tons)
    assert caught.value.column == "n"
    assert caught.value.row == 1
    assert str(caught.value).endswith(f"\nHint: {caught.value.hint}")
    assert "read_sql" in str(caught.value.hint)
    frame = longshore.read_sql("SELECT id, n FROM tons", tons, schema={"n": "string"}, return_type="arrow")
    assert longshore.sql("SELECT max(n) AS n FROM frame", frame=frame).n[0] == "5.617283945061728394506170"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("PIVOT db.tons ON word USING sum(id) GROUP BY pier ORDER BY pier", [(0, 0, 4, 2), (1, 3, 1, 5)]),
        ("PIVOT db.public.tons ON word USING sum(id) GROUP BY pier ORDER BY pier LIMIT 1", [(0, 0, 4, 2)]),
        ("PIVOT_WIDER db.tons ON word USING sum(id) GROUP BY pier ORDER BY pier DESC", [(1, 3, 1, 5), (0, 0, 4, 2)]),
        ("SELECT w1 FROM (PIVOT db.tons ON word USING sum(id) GROUP BY pier ORDER BY pier)", [(4,), (1,)]),
        ("WITH p AS (PIVOT db.tons ON word USING count(*) GROUP BY pier ORDER BY pier) SELECT w0 FROM p", [(1,), (1,)]),
        ("SELECT v FROM (UNPIVOT db.tons ON id INTO NAME n VALUE v ORDER BY v LIMIT 2)", [(0,), (1,)]),
        ("SELECT column_name FROM (DESCRIBE db.tons)", [("id",), ("pier",), ("word",), ("n",)]),
        ("SELECT count(*) FROM (SHOW db.tons)", [(4,)]),
    ],
)
def test_statements_that_name_a_table_without_from(tons: str, query: str, expected: Any) -> None:
    with longshore.connect(tons, autocommit=True) as connection:
        connection.execute("ALTER TABLE tons ALTER COLUMN n TYPE numeric(20, 3)")
        found = longshore.sql(query, attach={"db": connection}, return_type="arrow")
        assert [tuple(row.values()) for row in found.to_pylist()] == expected
        assert rows(query, tons) == expected
