"""``%%sql`` in a notebook's shell."""

from collections.abc import Iterator
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

import longshore


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
