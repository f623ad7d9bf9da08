"""The keys of `options` that are a source's own: the registry declares what `longshore.Options` shows."""

import dataclasses
from typing import get_args

import pytest

from longshore import Options, _core

FIELDS = {field.name: field for field in dataclasses.fields(Options)}
WORDS = {True: "true", False: "false"}


@pytest.mark.parametrize("key", _core.SOURCE_OPTIONS)
def test_a_source_s_key_is_shown_as_it_is_declared(key: str) -> None:
    words, sentence = _core.SOURCE_OPTIONS[key]
    field = FIELDS[key]
    default = WORDS[field.default] if isinstance(field.default, bool) else field.default
    assert words[0] == default
    assert set(words) == (set(WORDS.values()) if field.type is bool else set(get_args(field.type)))
    assert sentence.endswith(".")


def test_the_sources_declare_their_keys() -> None:
    assert set(_core.SOURCE_OPTIONS) == {"zero_date", "tinyint1", "lock"}
