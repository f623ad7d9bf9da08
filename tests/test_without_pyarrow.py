"""Without pyarrow every frame but its own is read, and those that need it, or pandas, say so."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.packages

# The query has text, whose pandas dtype depends on whether pyarrow is there.
BEFORE = """
import sys
from importlib.machinery import PathFinder

find = PathFinder.find_spec

def find_others(name, path=None, target=None):
    return None if name.partition(".")[0] == "pyarrow" else find(name, path, target)

PathFinder.find_spec = find_others
from longshore import read_sql
url = sys.argv[1]
query = "SELECT * FROM (VALUES (7, 'a', 0.5::float8, true), (NULL, NULL, NULL, NULL)) AS t (i, t, f, b)"
"""
NAMES = ["i", "t", "f", "b"]


def run(url: str, body: str) -> str:
    """Run a program whose imports of pyarrow fail, and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", BEFORE + body, url], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()


def test_polars(url: str) -> None:
    printed = run(url, "frame = read_sql(query, url, return_type='polars')\nprint(frame.schema.names(), frame.rows())")
    assert printed == f"{NAMES} [(7, 'a', 0.5, True), (None, None, None, None)]"


def test_numpy(url: str) -> None:
    body = "print({name: column.tolist() for name, column in read_sql(query, url, return_type='numpy').items()})"
    assert run(url, body) == "{'i': [7, None], 't': ['a', None], 'f': [0.5, None], 'b': [True, None]}"


@pytest.mark.parametrize(
    ("backend", "dtypes"),
    [
        (None, ["Int32", None, "float64", "boolean"]),
        ("numpy_nullable", ["Int32", "string", "Float64", "boolean"]),
    ],
)
def test_pandas(url: str, backend: str | None, dtypes: list[str | None]) -> None:
    body = f"""
import pandas as pd
frame = read_sql(query, url, dtype_backend={backend!r})
print([str(dtype) for dtype in frame.dtypes])
print([column.tolist()[0] for _, column in frame.items()], frame.iloc[1].isna().tolist())
print(pd.Series([""]).dtype)
"""
    found, values, text = run(url, body).splitlines()
    assert found == str([dtype or text for dtype in dtypes])
    assert values == "[7, 'a', 0.5, True] [True, True, True, True]"


def test_pandas_of_numpy(url: str) -> None:
    body = """
frame = read_sql("SELECT 7 AS i, 'a' AS t, 0.5::float8 AS f, true AS b", url, dtype_backend="numpy")
print([str(dtype) for dtype in frame.dtypes], [column.tolist() for _, column in frame.items()])
"""
    assert run(url, body) == "['int32', 'object', 'float64', 'bool'] [[7], ['a'], [0.5], [True]]"


def test_a_stream(url: str) -> None:
    body = """
import polars
print(polars.DataFrame(read_sql(query, url, return_type="arrow_stream")).rows())
"""
    assert run(url, body) == "[(7, 'a', 0.5, True), (None, None, None, None)]"


def test_a_streams_batches(url: str) -> None:
    body = """
import polars
stream = read_sql(query, url, return_type="arrow_stream", batch_size=1)
print(type(stream.schema.__arrow_c_schema__()).__name__)
for batch in stream:
    print(batch.num_rows, batch.num_columns, polars.DataFrame(batch).rows())
"""
    assert run(url, body).splitlines() == [
        "PyCapsule",
        "1 4 [(7, 'a', 0.5, True)]",
        "1 4 [(None, None, None, None)]",
    ]


def test_a_streams_frames(url: str) -> None:
    body = """
import pandas
frames = list(read_sql(query, url, return_type="arrow_stream", batch_size=1).pandas())
print([frame.index.tolist() for frame in frames], frames[1].isna().all().tolist())
print(pandas.concat(frames).equals(read_sql(query, url)))
"""
    assert run(url, body).splitlines() == ["[[0], [1]] [True, True, True, True]", "True"]


@pytest.mark.parametrize("argument", ["dtype_backend", "return_type"])
def test_what_needs_pyarrow_says_so(url: str, argument: str) -> None:
    word = {"dtype_backend": "pyarrow", "return_type": "arrow"}[argument]
    body = f"""
try:
    read_sql(query, url, {argument}={word!r})
except ImportError as error:
    print(error.name, error)
"""
    assert run(url, body) == f"pyarrow {argument}=\"{word}\" needs pyarrow: pip install 'longshore[arrow]'"


def test_a_schema(url: str) -> None:
    body = "import longshore\nprint(type(longshore.schema(query, url).__arrow_c_schema__()).__name__)"
    assert run(url, body) == "PyCapsule"


def test_without_pandas_the_other_frames_are_named(url: str) -> None:
    body = """
others = PathFinder.find_spec
PathFinder.find_spec = lambda name, *rest: None if name.partition(".")[0] == "pandas" else others(name, *rest)
try:
    read_sql(query, url)
except ImportError as error:
    print(error.name, error)
"""
    said = 'needs pandas: pip install \'longshore[pandas]\', or give return_type="polars", "arrow" or "numpy"'
    assert run(url, body) == f'pandas return_type="pandas", the default, {said}'
