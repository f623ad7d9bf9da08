"""The public names: what ``dir`` shows, and what type checkers make of them."""

import types

import pytest

import longshore

pytestmark = pytest.mark.packages

FRAMES = {"pandas": "DataFrame", "arrow": "Table", "polars": "DataFrame", "numpy": "dict", "arrow_stream": "Stream"}


def test_dir_shows_the_public_names() -> None:
    assert dir(longshore) == sorted(longshore.__all__)
    # A submodule of a public name, such as copy, would hide it.
    assert not [name for name in dir(longshore) if isinstance(getattr(longshore, name), types.ModuleType)]


@pytest.mark.parametrize("name", FRAMES)
def test_a_return_type_may_be_a_variable(name: str, url: str) -> None:
    # mypy --strict finds an overload for any text.
    read = longshore.read_sql("SELECT 1 AS a", url, return_type=name)
    made = longshore.sql("SELECT 1 AS a", return_type=name)
    assert type(read).__name__ == type(made).__name__ == FRAMES[name]
