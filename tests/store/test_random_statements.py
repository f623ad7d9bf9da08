"""Random statements over a store and the same ones over DuckDB's own tables: the same rows, counts and errors."""

import random
from pathlib import Path
from typing import Any

import duckdb
import pytest

import longshore
from tests.long import IS_LONG

TABLES = (
    "CREATE TABLE t (k INTEGER PRIMARY KEY, a INTEGER, b VARCHAR DEFAULT 'none' NOT NULL, c DOUBLE, CHECK (a < 90))",
    "CREATE TABLE u (k INTEGER, v INTEGER)",
)
STATEMENTS = 80


class Maker:
    """A maker of statements."""

    def __init__(self, seed: int) -> None:
        """Begin with a seed."""
        self.random = random.Random(seed)  # noqa: S311  no secret

    def one_of(self, *texts: str) -> str:
        """Give one of some texts."""
        return self.random.choice(texts)

    def number(self) -> str:
        """Give a number."""
        return str(self.random.randrange(40))

    def value(self) -> str:
        """Give a value of the column a."""
        return self.one_of(
            "a", "k", "a + 1", "k * 2", self.number(), "NULL", f"CASE WHEN a > {self.number()} THEN a END"
        )

    def text(self) -> str:
        """Give a value of the column b."""
        return self.one_of("b", "upper(b)", f"b || '{self.number()}'", "'WHERE'", "DEFAULT", "'it''s'")

    def condition(self, of: str = "") -> str:
        """Give a condition."""
        number, column = self.number(), of + self.one_of("k", "a", "c")
        return self.one_of(
            f"{column} {self.one_of('=', '<', '<=', '>', '>=', 'IS DISTINCT FROM')} {number}",
            f"{of}a IS {self.one_of('', 'NOT ')}NULL",
            f"{column} BETWEEN {number} AND {number} + 9",
            f"{of}k IN (SELECT v FROM u)",
            f"{of}b LIKE '{self.one_of('n', 'N', 'it', '')}%' AND {column} < {number}",
            f"EXISTS (SELECT * FROM t AS x WHERE x.a = {of}k)",
        )

    def returning(self) -> str:
        """Give what is returned."""
        return self.one_of("", "", " RETURNING *", " RETURNING k, a + 1, b")

    def statement(self) -> str:
        """Give a statement."""
        makers = (self.insert, self.insert, self.upsert, self.update, self.update, self.delete, self.other)
        return self.random.choice(makers)()

    def insert(self) -> str:
        """Give an INSERT."""
        rows = f"SELECT k + {self.number()} + 1, a, b, c FROM t WHERE {self.condition()}"
        values = ", ".join(
            f"({self.number()}, {self.number()}, 'n', {self.number()}.5)" for _ in range(20 if IS_LONG else 2)
        )
        return f"INSERT INTO t {self.one_of(rows, 'VALUES ' + values)}{self.returning()}"

    def upsert(self) -> str:
        """Give an INSERT that says what becomes of rows with its keys."""
        keys = self.random.sample(range(40), 3)
        values = ", ".join(f"({key}, {self.number()})" for key in keys)
        change = self.one_of("a = excluded.a", "a = t.a + excluded.a, c = NULL", "b = t.b || 'x'")
        where = self.one_of("", f" WHERE t.a < {self.number()}")
        conflict = self.one_of("DO NOTHING", f"(k) DO UPDATE SET {change}{where}")
        return self.one_of(
            f"INSERT INTO t (k, a) VALUES {values} ON CONFLICT {conflict}{self.returning()}",
            f"INSERT OR {self.one_of('REPLACE', 'IGNORE')} INTO t (k, a) VALUES {values}",
        )

    def update(self) -> str:
        """Give an UPDATE."""
        sets = self.one_of(
            f"a = {self.value()}", f"b = {self.text()}, c = {self.number()}", f"c = k, a = {self.value()}"
        )
        joined = "UPDATE t AS x SET a = g.v FROM (SELECT k, max(v) AS v FROM u GROUP BY k) AS g WHERE x.k = g.k"
        return self.one_of(
            f"UPDATE t SET {sets} WHERE {self.condition()}{self.returning()}",
            f"WITH w AS (SELECT v FROM u) UPDATE t SET {sets} WHERE k IN (SELECT v FROM w)",
            f"{joined} AND {self.condition('x.')}",
        )

    def delete(self) -> str:
        """Give a DELETE."""
        return self.one_of(
            f"DELETE FROM t WHERE {self.condition()} AND k % 3 = 0{self.returning()}",
            f"DELETE FROM t AS x USING u WHERE x.k = u.v AND {self.condition('x.')}",
            f"DELETE FROM u WHERE v > {self.number()}",
        )

    def other(self) -> str:
        """Give a statement over the other table, or one that is wrong."""
        return self.one_of(
            f"INSERT INTO u SELECT k, a FROM t WHERE {self.condition()} ORDER BY ALL LIMIT 5",
            f"INSERT INTO u VALUES ({self.number()}, {self.number()})",
            "DELETE FROM u WHERE v IS NULL",
            f"UPDATE t SET a = a + 1, nope = {self.number()}",
        )


def outcome(run: Any, statement: str) -> Any:
    """Give the rows or the count of a statement, or the kind of its error."""
    try:
        return run(statement)
    except (duckdb.ConstraintException, longshore.IntegrityError):
        return "broken"
    except (duckdb.BinderException, longshore.ProgrammingError):
        return "wrong"


@pytest.mark.parametrize("seed", range(20 if IS_LONG else 2))
def test_a_store_does_what_duckdb_does(lake: Path, seed: int) -> None:
    maker, engine = Maker(seed), duckdb.connect(config={"python_enable_replacements": False})
    longshore.open(lake).close()
    with longshore.connect(f"store:///{lake}", autocommit=True) as connection, connection.cursor() as cursor:

        def by_engine(statement: str) -> Any:
            found = engine.execute(statement).fetchall()
            return sorted(found, key=repr) if "RETURNING" in statement else found[0][0]

        def by_store(statement: str) -> Any:
            cursor.execute(statement)
            return sorted(cursor.fetchall(), key=repr) if "RETURNING" in statement else cursor.rowcount

        for statement in TABLES:
            engine.execute(statement)
            cursor.execute(statement)
        for at in range(STATEMENTS):
            statement = maker.statement()
            where = f"seed {seed}, statement {at}: {statement}"
            assert outcome(by_store, statement) == outcome(by_engine, statement), where
            for table in ("t", "u"):
                query = f"SELECT * FROM {table} ORDER BY ALL"
                assert cursor.execute(query).fetchall() == engine.execute(query).fetchall(), where
    engine.close()
