"""Readers of the caller's that fail while the engine reads them."""

from collections.abc import Callable, Iterator
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import longshore
from tests.sql.rows import rows

pytestmark = pytest.mark.packages

BATCH = pa.record_batch({"n": [1, 2, 3]})


class ClosedError(Exception):
    """An exception of the caller's own."""


class Foreign:
    """A stream of another library, which has no more to say of a failure than a text."""

    def __init__(self, reader: Any) -> None:
        """Keep what is handed over."""
        self._reader = reader

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        """Hand it over."""
        return self._reader.__arrow_c_stream__(requested_schema)


class Sized(Foreign):
    """Such a library's table."""

    def __len__(self) -> int:
        """Count rows that no one reaches."""
        return 6


class Unopened:
    """A failure before there is a stream."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        """Fail."""
        message = "the pier is closed"
        raise ClosedError(message)


def failing(error: BaseException, *, after: int = 1) -> Any:
    def batches() -> Iterator[Any]:
        yield from [BATCH] * after
        raise error

    return pa.RecordBatchReader.from_batches(BATCH.schema, batches())


def nested(error: BaseException) -> Any:
    """Give a reader whose batches are changed on their way."""
    batch = pa.record_batch({"n": [{"p": {"q": 1}}]})

    def batches() -> Iterator[Any]:
        yield batch
        raise error

    return pa.RecordBatchReader.from_batches(batch.schema, batches())


def streamed(query: str, **tables: Any) -> None:
    for _ in longshore.sql(query, return_type="arrow_stream", **tables):
        pass


@pytest.mark.parametrize("run", [rows, streamed])
@pytest.mark.parametrize("make", [failing, lambda error: failing(error, after=0), nested])
@pytest.mark.parametrize("kind", [ClosedError, OSError, KeyError, ValueError, longshore.DataError, KeyboardInterrupt])
def test_a_readers_own_exception_is_raised(
    run: Callable[..., None], make: Callable[[BaseException], Any], kind: type[BaseException]
) -> None:
    error = kind("the pier is closed")
    with pytest.raises(kind) as caught:
        run("SELECT n FROM data", data=make(error))
    assert caught.value is error


@pytest.mark.parametrize("query", ["CREATE TABLE t AS FROM data", "COPY (FROM data) TO '/dev/null' (FORMAT csv)"])
def test_a_readers_own_exception_ends_every_statement(query: str) -> None:
    error = ClosedError("the pier is closed")
    with pytest.raises(ClosedError) as caught:
        longshore.sql(query, data=failing(error))
    assert caught.value is error


def test_a_reader_whose_batches_lie_is_a_data_error() -> None:
    data = pa.RecordBatchReader.from_batches(pa.schema({"n": pa.string()}), [BATCH])
    with pytest.raises(longshore.DataError, match=r"^column 'n' is int64 in batch 0") as caught:
        rows("FROM data", data=data)
    assert caught.value.column == "n"


@pytest.mark.parametrize("run", [rows, streamed])
def test_a_foreign_stream_tells_its_reason_without_a_traceback(run: Callable[..., None]) -> None:
    with pytest.raises(longshore.OperationalError) as caught:
        run("FROM data", data=Foreign(failing(ClosedError("the pier is closed"))))
    assert str(caught.value) == "reading 'data' stopped: the pier is closed"


def test_a_foreign_table_tells_its_reason_without_a_traceback() -> None:
    with pytest.raises(longshore.OperationalError) as caught:
        rows("FROM data", data=Sized(failing(ClosedError("the pier is closed"))))
    assert str(caught.value) == "reading 'data' stopped: the pier is closed"


@pytest.mark.parametrize("wrap", [Foreign, Sized])
def test_ctrl_c_in_a_foreign_stream_is_ctrl_c(wrap: Callable[[Any], Any]) -> None:
    with pytest.raises(KeyboardInterrupt):
        rows("FROM data", data=wrap(failing(KeyboardInterrupt())))


def test_an_object_that_gives_no_stream_raises_its_own_exception() -> None:
    with pytest.raises(ClosedError, match="the pier is closed"):
        rows("FROM data", data=Unopened())


def test_what_a_lazy_frame_calls_raises_its_own_exception() -> None:
    def fail(_: Any) -> Any:
        message = "the pier is closed"
        raise ClosedError(message)

    data = pl.LazyFrame({"n": [1]}).map_batches(fail, schema={"n": pl.Int64})
    # The oldest polars hands on no more than its text.
    is_oldest = pl.__version__.startswith("1.10.")
    expected = longshore.OperationalError if is_oldest else ClosedError
    with pytest.raises(expected, match="the pier is closed"):
        rows("FROM data", data=data)
