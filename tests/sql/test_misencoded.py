"""Texts of Arrow data whose bytes are no UTF-8, at any depth: no one looks at them before they arrive."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import longshore
from tests.sql.rows import rows

pytestmark = pytest.mark.packages

INVALID = b"\xff\xfe"


def texts(*values: bytes | None, kind: Any = None) -> Any:
    """Give an array of texts that pyarrow has not looked at."""
    return pa.array(values, pa.large_binary() if kind == pa.large_string() else pa.binary()).view(kind or pa.string())


#: Three rows, of which the third is at fault.
STRANGE = {
    "utf8": texts("ä".encode(), None, INVALID),
    "large": texts("ä".encode(), None, INVALID, kind=pa.large_string()),
    "sliced": texts(INVALID, "ä".encode(), b"", INVALID)[1:],
    "half a character": texts("ä".encode(), b"", "ä".encode()[:1], "ä".encode()[1:])[:3],
    "list": pa.ListArray.from_arrays([0, 1, 1, 3], texts(b"a", b"b", INVALID)),
    "fixed list": pa.FixedSizeListArray.from_arrays(texts(b"a", b"b", b"c", b"d", b"e", INVALID), 2),
    "struct": pa.StructArray.from_arrays([pa.array([1, 2, 3]), texts(b"a", b"b", INVALID)], ["n", "s"]),
    "map": pa.MapArray.from_arrays([0, 1, 1, 2], texts(b"a", b"b"), texts(b"a", INVALID)),
    "dictionary": pa.DictionaryArray.from_arrays(pa.array([0, 0, 1], pa.int8()), texts(b"a", INVALID)),
    "dictionaries": pa.ListArray.from_arrays(
        [0, 1, 1, 3], pa.DictionaryArray.from_arrays(pa.array([0, 0, 1], pa.int8()), texts(b"a", INVALID))
    ),
}


@pytest.mark.parametrize("return_type", ["arrow", "pandas", "polars", "numpy", "arrow_stream"])
@pytest.mark.parametrize("name", STRANGE)
def test_what_is_no_text_is_an_error_of_its_column_and_row(name: str, return_type: Any) -> None:
    data = pa.table({"n": [7, 8, 9], "x": STRANGE[name]})
    with pytest.raises(longshore.DataError, match="a text is not UTF-8") as caught:
        list(longshore.sql("SELECT n, x FROM data", return_type=return_type, data=data))
    assert (caught.value.column, caught.value.row) == ("x", 2)
    assert rows("SELECT max(n) AS n FROM data", data=data) == [{"n": 9}]


def test_rows_are_counted_over_the_whole_result() -> None:
    data = pa.table({"x": texts(*([b"a"] * 300_000), INVALID)})
    with pytest.raises(longshore.DataError) as caught:
        rows("SELECT x FROM data", data=data, options={"threads": 1})
    assert caught.value.row == 300_000


def test_bytes_of_no_value_are_no_ones_concern() -> None:
    hidden = pa.StructArray.from_arrays([texts(b"a", INVALID)], ["s"], mask=pa.array([False, True]))
    unused = pa.DictionaryArray.from_arrays(pa.array([0, 0], pa.int8()), texts("ä".encode(), INVALID))
    data = pa.table({"h": hidden, "u": unused, "s": texts(INVALID, "ä".encode(), b"b")[1:]})
    assert rows("FROM data", data=data) == [{"h": {"s": "a"}, "u": "ä", "s": "ä"}, {"h": None, "u": "ä", "s": "b"}]


@pytest.mark.parametrize("name", ["utf8", "large", "sliced", "half a character", "dictionary"])
def test_write_sql_refuses_what_is_no_text(tmp_path: Path, name: str) -> None:
    table = pa.table({"n": [7, 8, 9], "x": STRANGE[name]})
    frames = [table.slice(0, 1), table.slice(1)]
    with pytest.raises(longshore.DataError, match="a text is not UTF-8") as caught:
        longshore.write_sql(frames, "t", f"sqlite:///{tmp_path}/harbour.db?mode=rwc")
    assert (caught.value.column, caught.value.row) == ("x", 2)


@pytest.mark.skipif(not hasattr(pa, "string_view"), reason="this pyarrow has no views")
def test_views(tmp_path: Path) -> None:
    views = pa.array([b"a", None, b"b" * 20 + INVALID], pa.binary_view()).view(pa.string_view())
    data = pa.table({"x": views})
    for run in (
        lambda: rows("FROM data", data=data),
        lambda: longshore.write_sql(data, "t", f"sqlite:///{tmp_path}/harbour.db?mode=rwc"),
    ):
        with pytest.raises(longshore.DataError) as caught:
            run()
        assert (caught.value.column, caught.value.row) == ("x", 2)
