"""Which variable, if any, a table's name in a query is."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import longshore

pytestmark = pytest.mark.packages

boats = pa.table({"berth": [1]})
only_global = pa.table({"berth": [100]})


def _berths(query: str = "SELECT * FROM boats") -> list[int]:
    """Be a helper, as a user writes one; its own frames hold no boats."""
    table = longshore.sql(query, return_type="arrow")
    found: list[int] = table.column(0).to_pylist()
    return found


def test_a_local_comes_before_a_global() -> None:
    boats = pa.table({"berth": [2]})
    found = longshore.sql("SELECT * FROM boats", return_type="arrow")
    assert found.equals(boats)


def test_a_global_is_found() -> None:
    assert longshore.sql("FROM only_global", return_type="arrow").to_pylist() == [{"berth": 100}]


def test_a_helper_sees_its_module_before_its_caller() -> None:
    boats = pa.table({"berth": [2]})
    assert _berths() == [1]
    assert boats.num_rows == 1


def test_a_helper_sees_its_callers_frames() -> None:
    locally = pa.table({"berth": [3]})
    assert _berths("SELECT * FROM locally") == [3]
    assert locally.num_rows == 1


def test_a_helper_takes_no_dict_of_its_caller_that_is_no_table() -> None:
    settings = {"berth": 3}
    with pytest.raises(longshore.ProgrammingError, match="'settings'"):
        _berths("SELECT * FROM settings")
    assert settings


def test_the_functions_around_are_looked_at_from_the_inside_out() -> None:
    first = pa.table({"berth": [1]})
    boats = pa.table({"berth": [2]})

    def inner() -> list[Any]:
        boats = pa.table({"berth": [3]})

        def innermost() -> list[Any]:
            query = "SELECT * FROM boats UNION ALL SELECT * FROM first"
            found: list[Any] = longshore.sql(query, return_type="arrow").column(0).to_pylist()
            return found

        assert boats.num_rows == 1
        return innermost()

    assert inner() == [3, 1]
    assert first.num_rows == boats.num_rows == 1


def test_a_comprehension_and_a_lambda_see_the_function_around() -> None:
    here = pa.table({"berth": [4]})
    query = "SELECT * FROM here"
    assert [longshore.sql(query, return_type="arrow").num_rows for _ in range(2)] == [1, 1]
    call: Callable[[], Any] = lambda: longshore.sql(query, return_type="arrow").num_rows  # noqa: E731
    assert call() == here.num_rows


def test_a_generator_sees_its_own_variables_wherever_it_runs() -> None:
    def berths() -> Iterator[int]:
        for berth in (7, 8):
            own = pa.table({"berth": [berth]})
            yield longshore.sql("SELECT * FROM own", return_type="arrow").column(0)[0].as_py()
            assert own.num_rows == 1

    assert list(berths()) == [7, 8]


def test_a_class_body_sees_its_own_variables() -> None:
    class Harbour:
        own = pa.table({"berth": [9]})
        found = longshore.sql("SELECT * FROM own", return_type="arrow").to_pylist()

    assert Harbour.found == [{"berth": 9}]


def test_a_method_does_not_see_its_classs_variables() -> None:
    class Harbour:
        own = 5

        def found(self) -> Any:
            return longshore.sql("SELECT * FROM own")

    with pytest.raises(longshore.ProgrammingError, match="no variable is called 'own'"):
        Harbour().found()


def test_a_module_run_as_a_script_is_seen(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import longshore\nboats = {'berth': [1, 2]}\n"
        "def count():\n    return longshore.sql('SELECT count(*) AS n FROM boats', return_type='arrow').to_pylist()\n"
        "print(count())\n"
    )
    ran = subprocess.run([sys.executable, str(script)], check=True, capture_output=True, text=True)
    assert ran.stdout == "[{'n': 2}]\n"
    assert ran.stderr == ""


def test_a_keyword_comes_before_a_variable() -> None:
    found = longshore.sql("SELECT * FROM boats", boats=pa.table({"berth": [5]}), return_type="arrow")
    assert found.to_pylist() == [{"berth": 5}]


def test_a_keyword_comes_before_a_table_of_the_engine() -> None:
    mine = pa.table({"berth": [5]})
    found = longshore.sql("SELECT * FROM duckdb_tables", duckdb_tables=mine, return_type="arrow")
    assert found.equals(mine)


def test_a_keyword_may_have_any_name() -> None:
    mine = pa.table({"berth": [5]})
    query = 'SELECT * FROM "my ""old"" boats"'
    assert longshore.sql(query, return_type="arrow", **{'my "old" boats': mine}).equals(mine)


def test_an_unknown_keyword_names_the_closest() -> None:
    with pytest.raises(longshore.InterfaceError, match="'retrun_type'; did you mean 'return_type'"):
        longshore.sql("SELECT 1", retrun_type="arrow")


def test_two_keywords_of_one_name_are_refused() -> None:
    with pytest.raises(longshore.InterfaceError, match="'one' and 'ONE' are one name"):
        longshore.sql("SELECT * FROM one", one=boats, ONE=boats)


@pytest.mark.parametrize(
    "query",
    [
        "WITH boats AS (SELECT 42 AS berth) SELECT * FROM boats",
        "SELECT boats.berth FROM (SELECT 42 AS berth) AS boats",
        "SELECT * FROM (VALUES (42)) boats(berth)",
        "WITH RECURSIVE boats AS (SELECT 42 AS berth UNION ALL SELECT berth FROM boats WHERE berth < 42) FROM boats",
        "WITH o AS (WITH boats AS (SELECT 42 AS berth) SELECT * FROM boats) SELECT * FROM o",
        "SELECT * FROM range(42, 43) boats(berth)",
        "SELECT boats.berth FROM (SELECT {'berth': 42} AS boats)",
    ],
)
def test_a_variable_is_never_taken_for_a_name_of_the_query(query: str) -> None:
    assert longshore.sql(query, return_type="arrow").to_pylist() == [{"berth": 42}]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT berth FROM boats",
        'SELECT berth FROM "boats"',
        "FROM boats SELECT berth",
        "FROM boats",
        "TABLE boats",
        "SELECT b.berth FROM boats AS b",
        "SELECT berth FROM boats JOIN lone USING (berth)",
        "SELECT * FROM boats NATURAL JOIN lone",
        "SELECT berth FROM boats WHERE berth IN (SELECT berth FROM lone)",
        "SELECT (SELECT max(berth) FROM boats) AS berth",
        "WITH c AS (SELECT * FROM boats) SELECT c.berth FROM c",
        "SELECT o.berth FROM lone o, LATERAL (SELECT * FROM boats WHERE boats.berth = o.berth)",
        "SELECT berth FROM query_table('boats')",
        "SELECT berth FROM query('SELECT * FROM boats')",
        "SELECT boats.berth FROM boats POSITIONAL JOIN lone",
        "SELECT berth FROM boats UNION SELECT berth FROM lone",
        "SELECT #1 AS berth FROM boats",
        "SELECT renamed AS berth FROM boats AS b(renamed)",
        "SELECT unnest(boats) FROM boats",
        "SELECT struct_extract(boats, 'berth') AS berth FROM boats",
        "SELECT COLUMNS('be.*') FROM boats",
        "SELECT * EXCLUDE (name) FROM (SELECT *, 'x' AS name FROM boats)",
    ],
)
def test_a_variable_is_found_wherever_a_table_may_stand(query: str) -> None:
    boats = pa.table({"berth": [1]})
    lone = pd.DataFrame({"berth": [1], "Objects": [{}]})[["berth"]]
    assert longshore.sql(query, return_type="arrow").to_pylist() == [{"berth": 1}]
    assert len(boats) == len(lone)


def test_summarize_describe_pivot_and_unpivot() -> None:
    boats = pd.DataFrame({"berth": [1, 1], "kind": ["a", "b"], "tons": [5, 6]})
    described = longshore.sql("DESCRIBE boats", return_type="arrow").to_pylist()
    assert [(line["column_name"], line["column_type"]) for line in described] == [
        ("berth", "BIGINT"),
        ("kind", "VARCHAR"),
        ("tons", "BIGINT"),
    ]
    summary = longshore.sql("SUMMARIZE boats", return_type="arrow").to_pylist()
    assert [line["max"] for line in summary] == ["1", "b", "6"]
    wide = longshore.sql("PIVOT boats ON kind USING sum(tons)::INT GROUP BY berth", return_type="arrow").to_pylist()
    assert wide == [{"berth": 1, "a": 5, "b": 6}]
    long = longshore.sql("UNPIVOT boats ON berth, tons", return_type="arrow").to_pylist()
    assert {(line["name"], line["value"]) for line in long} == {("berth", 1), ("tons", 5), ("tons", 6)}
    assert len(boats) == 2


def test_several_statements_share_their_tables() -> None:
    mine = pa.table({"berth": [1, 2], "tons": [3, 4]})
    query = """
        CREATE TABLE heavy AS SELECT berth FROM mine WHERE tons > 3;
        INSERT INTO heavy SELECT berth + 10 FROM mine;
        SELECT * FROM heavy ORDER BY berth;
    """
    assert longshore.sql(query, return_type="arrow").column(0).to_pylist() == [2, 11, 12]
    with pytest.raises(longshore.ProgrammingError, match="'heavy'"):
        longshore.sql("SELECT * FROM heavy")
    assert mine.num_rows == 2


def test_a_name_that_is_no_variable_names_the_closest() -> None:
    frames = pd.DataFrame({"berth": [1]})
    with pytest.raises(longshore.ProgrammingError) as caught:
        longshore.sql("SELECT * FROM frame")
    assert caught.value.hint == "did you mean 'frames'?"
    with pytest.raises(longshore.ProgrammingError, match="did you mean 'frames'"):
        longshore.sql("SELECT * FROM Frames")
    with pytest.raises(longshore.ProgrammingError, match=r"give it as a keyword: .*zyxwvu=frame"):
        longshore.sql("SELECT * FROM zyxwvu")
    assert len(frames) == 1


def test_variables_that_differ_in_case_alone_are_refused_where_both_are_named() -> None:
    cargo, CARGO = pa.table({"x": [1]}), pa.table({"x": [2]})  # noqa: N806
    assert longshore.sql("SELECT * FROM cargo", return_type="arrow").equals(cargo)
    assert longshore.sql("SELECT * FROM CARGO", return_type="arrow").equals(CARGO)
    with pytest.raises(longshore.ProgrammingError, match="'cargo' and 'CARGO', which SQL does not tell apart"):
        longshore.sql("SELECT * FROM cargo, CARGO")


def test_a_qualified_name_is_no_variable() -> None:
    with pytest.raises(longshore.ProgrammingError, match="boats"):
        longshore.sql("SELECT * FROM memory.main.boats")
    with pytest.raises(longshore.ProgrammingError, match="boats"):
        longshore.sql("SELECT * FROM harbour.boats")


def test_a_variable_that_is_no_table_is_named() -> None:
    berths = 5
    with pytest.raises(longshore.InterfaceError, match="'berths' is of type int, which is not a table"):
        longshore.sql("SELECT * FROM berths")
    assert berths == 5


def test_a_table_function_is_no_variable() -> None:
    with pytest.raises(longshore.ProgrammingError, match="Table Function with name boats"):
        longshore.sql("SELECT * FROM boats()")


def test_the_engine_takes_no_variable_by_itself() -> None:
    """It would take what this library refuses, and a frame that a function of this library has."""
    for name in ("self", "statement", "params", "session"):
        with pytest.raises(longshore.ProgrammingError, match=f"no variable is called '{name}'"):
            longshore.sql(f"SELECT * FROM {name}")


def test_a_missing_column_names_the_closest_of_all_columns() -> None:
    wide = pd.DataFrame({"berth": [1], "tons": [2], "cargo": [{"kind": "coal"}]})
    with pytest.raises(longshore.ProgrammingError, match="did you mean 'tons'") as caught:
        longshore.sql("SELECT tonns FROM wide")
    assert "v0" not in str(caught.value)
    assert len(wide) == 1
