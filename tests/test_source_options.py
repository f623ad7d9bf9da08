"""The keys of `options`: `longshore.Options` and the reference show what the core's reads and the sources declare."""

import ast
import dataclasses
import inspect
from pathlib import Path
from typing import Any, get_args

import pytest

from longshore import Options, _core

FIELDS = {field.name: field for field in dataclasses.fields(Options)}
DECLARED = {**_core.READ_OPTIONS, **_core.SOURCE_OPTIONS}
PAGE = Path(__file__).parents[1] / "docs/reference/options.md"


def sentences() -> dict[str, str]:
    """Return the texts under the fields, in Markdown."""
    body = ast.parse(inspect.getsource(Options)).body[0]
    assert isinstance(body, ast.ClassDef)
    found = {}
    for field, text in zip(body.body, body.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
            found[ast.unparse(field.target)] = " ".join(str(text.value.value).split()).replace("``", "`")
    return found


def choices(key: str) -> list[Any]:
    """Return what a key takes, the default first."""
    field = FIELDS[key]
    words = (True, False) if field.type is bool else get_args(field.type)
    return sorted(words, key=lambda word: word != field.default)


@pytest.mark.parametrize("key", DECLARED)
def test_a_key_is_shown_as_it_is_declared(key: str) -> None:
    words, sentence = DECLARED[key]
    switches = {"true": True, "false": False}
    assert [switches.get(word, word) for word in words] == choices(key)
    assert sentences()[key] == sentence


def test_what_is_declared_comes_first() -> None:
    assert list(FIELDS)[: len(DECLARED)] == list(DECLARED)
    assert set(_core.SOURCE_OPTIONS) == {"zero_date", "tinyint1", "lock", "nested", "sqlite_types", "verify"}


def test_the_reference_has_every_key() -> None:
    numbers = {"threads": "`None`, a number", "memory_limit": '`"auto"`, `None`, bytes, `"2GB"`, `"512MiB"`'}
    rows = []
    for key, sentence in sentences().items():
        words = numbers.get(key) or ", ".join(f"`{word!r}`".replace("'", '"') for word in choices(key))
        rows.append(f"| `{key}` | {words} | {sentence} |")
    assert list(sentences()) == list(FIELDS)
    assert PAGE.read_text(encoding="utf-8").partition("|---|---|---|\n")[2].splitlines() == rows
