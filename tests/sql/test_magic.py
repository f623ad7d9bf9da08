"""``%%sql`` in a notebook's shell."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

import longshore

pytestmark = pytest.mark.packages


@pytest.fixture
def shell() -> Iterator[Any]:
    """Give a shell that has loaded the extension; IPython's own types are not whole."""
    shell: Any = InteractiveShell.instance()
    _run(shell, "%load_ext longshore")
    yield shell
    shell.reset(new_session=False)
    InteractiveShell.clear_instance()


def _run(shell: Any, cell: str) -> Any:
    ran = shell.run_cell(cell)
    ran.raise_error()
    return ran.result


def test_a_cell_reads_the_notebooks_variables(shell: Any) -> None:
    _run(shell, "import pandas\nboats = pandas.DataFrame({'berth': [1, 2]})")
    found = _run(shell, "%%sql\nSELECT sum(berth)::INT AS berths\nFROM boats")
    assert found.to_dict("records") == [{"berths": 3}]


def test_a_line_has_keywords_and_a_name_for_the_result(shell: Any) -> None:
    _run(shell, "least = 1\nboats = {'berth': [1, 2]}")
    assert _run(shell, "%%sql more << return_type='arrow', params=[least]\nSELECT * FROM boats WHERE berth > ?") is None
    assert _run(shell, "more.to_pylist()") == [{"berth": 2}]


def test_variables_of_any_name_are_found(shell: Any) -> None:
    for name in ("query", "line", "cell", "result", "arguments"):
        _run(shell, f"{name} = {{'x': [1]}}")
        assert len(_run(shell, f"%%sql\nSELECT * FROM {name}")) == 1


def test_a_line_that_is_no_keywords_is_an_error(shell: Any) -> None:
    with pytest.raises(longshore.InterfaceError, match="not 'some words'"):
        shell.run_cell_magic("sql", "some words", "SELECT 1")


def test_a_line_is_a_query(shell: Any) -> None:
    _run(shell, "boats = {'berth': [1, 2]}")
    assert len(_run(shell, "%sql SELECT * FROM boats WHERE berth > 1")) == 1
    assert _run(shell, "%sql more << FROM boats") is None
    assert len(_run(shell, "more")) == 2
    assert _run(shell, "found = %sql SELECT 5 AS five\nfound['five'][0]") == 5


@pytest.mark.parametrize("line", ["%sql {} FROM db.boats", "%%sql {}\nFROM db.boats", "%%sql more << {}"])
@pytest.mark.parametrize("form", ["--attach db={}", "--attach db='{}'", "--attach=db={}", "--attach db=env:BOATS"])
def test_databases_are_attached(
    line: str, form: str, shell: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path}/boats.db"
    longshore.write_sql({"berth": [1, 2]}, "boats", f"{url}?mode=rwc")
    monkeypatch.setenv("BOATS", url)
    if line.startswith("%%sql more"):
        with pytest.raises(longshore.InterfaceError) as caught:
            _run(shell, line.format(form.format(url)) + "\nFROM db.boats")
        assert url not in str(caught.value)
        return
    assert len(_run(shell, line.format(form.format(url)))) == 2


@pytest.mark.parametrize(
    "cell",
    [
        "%%sql postgresql://me:rope-walk@host/x\nSELECT 1",
        "%sql postgresql://me:rope-walk@host/x",
        "%%sql more << postgresql://me:rope-walk@host/x\nSELECT 1",
        "%%sql password='rope-walk' x\nSELECT 1",
        "%%sql --attach postgresql://me:rope-walk@host/x\nSELECT 1",
        "%%sql --atach pg=postgresql://me:rope-walk@host/x\nSELECT 1",
    ],
)
def test_a_url_in_the_line_is_told_how_to_attach_and_is_not_shown(cell: str, shell: Any) -> None:
    with pytest.raises(longshore.InterfaceError) as caught:
        _run(shell, cell)
    assert "rope-walk" not in f"{caught.value}{caught.value.hint}"
    if "://" in cell:
        assert "--attach" in str(caught.value.hint)


def test_parameters_are_variables(shell: Any) -> None:
    _run(shell, "least, boats = 1, {'berth': [1, 2]}")
    for name in (":least", "$least"):
        assert _run(shell, f"%sql SELECT berth FROM boats WHERE berth > {name}").to_dict("list") == {"berth": [2]}
    assert _run(shell, "%%sql params={'least': 5}\nSELECT $least AS x").to_dict("list") == {"x": [5]}
    for name in (":unknown", "$unknown"):
        with pytest.raises(longshore.ProgrammingError) as caught:
            _run(shell, f"%sql SELECT {name}")
        assert "params=" in str(caught.value.hint)


def test_a_typo_shows_one_frame_of_the_library(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    shell.run_cell("%%sql\nSELEC 1")
    shown = capsys.readouterr()
    text = shown.out + shown.err
    assert "syntax error" in text
    assert "ParserException" not in text
    assert text.count("longshore/") == text.count("longshore/magic.py") == 1
