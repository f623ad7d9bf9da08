"""Each source by each verb: written, copied, read by its name in SQL, through a cursor, and by the command."""

from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
import pytest

import longshore
from longshore.shell import main
from tests.contract.conftest import Database

pytestmark = pytest.mark.usefixtures("leaves_nothing")

ROWS = [{"id": n, "berth": n % 3, "ship": f"ship {n}" if n % 4 else None} for n in range(1, 10)]


@pytest.fixture
def boats(database: Database, table: str) -> str:
    """Give a table with ROWS."""
    assert longshore.write_sql(pl.DataFrame(ROWS), table, database.url) == 9
    return table


def test_a_table_by_its_name_in_sql(database: Database, boats: str) -> None:
    fees = pl.DataFrame({"berth": [1, 2], "fee": [10, 12]})
    query = f"SELECT id, fee FROM harbour.{boats} JOIN fees USING (berth) WHERE id > 4 AND ship IS NOT NULL ORDER BY id"
    attach = {"harbour": database.url}
    wanted = [(5, 12), (7, 10)]
    assert longshore.sql(query, attach=attach, return_type="polars", fees=fees).rows() == wanted
    asked = longshore.sql(query, attach=attach, fees=fees, explain=True).partition("-- engine")[0]
    # SQLite's types are those of the values, and a store has no query.
    assert ("> 4" in asked) is (database.source not in {"sqlite", "store"})
    with longshore.connect(database.url) as harbour:
        assert longshore.sql(query, return_type="polars", fees=fees, harbour=harbour).rows() == wanted
        # What the engine does not need of a stream does not end a transaction.
        assert longshore.sql(f"SELECT berth FROM harbour.{boats} LIMIT 1", return_type="arrow").num_rows == 1
        assert longshore.sql(f"SELECT count(*) AS n FROM harbour.{boats}", return_type="arrow")["n"].to_pylist() == [9]
    # Twice the same table, whose columns only the engine compares.
    twice = f"SELECT count(*) AS n FROM harbour.{boats} AS a JOIN harbour.{boats} AS b ON a.id + 1 = b.id * 1"
    assert longshore.sql(twice, attach=attach, return_type="arrow")["n"].to_pylist() == [8]
    with pytest.raises(longshore.ProgrammingError, match="not_there"):
        longshore.sql("SELECT * FROM harbour.not_there", attach=attach)


def test_a_copy_and_a_cursor(database: Database, boats: str) -> None:
    copied = f"{boats}_2"
    try:
        assert longshore.copy(f"SELECT * FROM {boats} WHERE id < 4", database.url, copied, database.url) == 3
        with longshore.connect(database.url) as connection, connection.cursor() as cursor:
            cursor.execute(f"SELECT id, ship FROM {copied} ORDER BY id")
            assert cursor.fetchall() == [(1, "ship 1"), (2, "ship 2"), (3, "ship 3")]
    finally:
        database.execute(f"DROP TABLE {copied}")


def test_the_command(database: Database, boats: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query, file = f"SELECT id, ship FROM {boats} ORDER BY id", tmp_path / "boats.parquet"
    assert main(["read", query, "--from", database.url, "--to", str(file)]) == 0, capsys.readouterr().err
    names = [database.quirks.kept(name) for name in ("id", "ship")]
    rows = [(row["id"], row["ship"]) for row in ROWS]
    assert pq.read_table(file).to_pylist() == [dict(zip(names, row, strict=True)) for row in rows]
    capsys.readouterr()
    query = f"SELECT max(id) AS id FROM harbour.{boats}"
    assert main(["sql", query, "--attach", f"harbour={database.url}", "--to", "-"]) == 0, capsys.readouterr().err
    assert capsys.readouterr().out.split() == ["id", "9"]
    assert main(["write", str(file), "--table", boats, "--to", database.url, "--if-exists", "replace"]) == 0
    assert database.rows(boats) == rows
