"""Databases of the encoding SQL_ASCII, whose texts are bytes of no known letters."""

from collections.abc import Iterator
from typing import Any

import pytest

import longshore
from tests.servers import Endpoint

PROTOCOLS = pytest.mark.parametrize("protocol", ["binary", "text"])
#: Three rows, the second of which has the byte 0xE9 in its text.
ROWS = "(VALUES (1, 'a', 0.5), (2, chr(233), 1.5), (3, 'b', 2.5)) AS t (n, a, x)"


@pytest.fixture(scope="module")
def ascii_url(postgres: Endpoint) -> Iterator[str]:
    """Give the URL of such a database."""
    postgres.psql("CREATE DATABASE narrow TEMPLATE template0 ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C'")
    yield postgres.url(database="narrow")
    postgres.psql("DROP DATABASE narrow")


@PROTOCOLS
def test_a_byte_that_is_no_letter_has_a_place_and_a_remedy(ascii_url: str, protocol: str) -> None:
    with pytest.raises(longshore.DataError, match="0xe9") as caught:
        longshore.read_sql(f"SELECT n, a, x FROM {ROWS}", ascii_url, options={"protocol": protocol})
    error = caught.value
    assert (error.column, error.row, error.native_type, error.sqlstate) == ("a", 1, "text", "22021")
    assert "convert_to" in (error.hint or "")


def test_several_columns_of_texts_are_named(ascii_url: str) -> None:
    with pytest.raises(longshore.DataError) as caught:
        longshore.read_sql(f"SELECT n, a, 'ok' AS b FROM {ROWS}", ascii_url)
    assert (caught.value.column, caught.value.row) == (None, 1)
    assert "a, b" in (caught.value.hint or "")


@PROTOCOLS
def test_the_remedies(ascii_url: str, protocol: str) -> None:
    options: Any = {"return_type": "arrow", "options": {"protocol": protocol}}
    query = f"SELECT convert_to(a, 'SQL_ASCII') AS a FROM {ROWS}"
    assert longshore.read_sql(query, ascii_url, **options)["a"].to_pylist() == [b"a", b"\xe9", b"b"]
    query = f"SELECT convert_from(convert(convert_to(a, 'SQL_ASCII'), 'LATIN1', 'UTF8'), 'SQL_ASCII') AS a FROM {ROWS}"
    assert longshore.read_sql(query, ascii_url, **options)["a"].to_pylist() == ["a", "é", "b"]
