"""Results with LOBs: rows by a cursor, in which a short LOB comes whole, and a long one as a locator, read in pieces.

The driver's Arrow batches have no locators: they ask for 2,147,483,647 bytes of a LOB, and do not look at whether there
are more. A locator for each LOB would have an exchange with the server for each.
"""

from array import array
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import oracledb
import pyarrow as pa

from longshore.errors import OperationalError

if TYPE_CHECKING:
    from longshore.sources.oracle_columns import Column

#: The most characters or bytes of a LOB that comes whole. The query has others in one more column: longer ones, and
#: empty ones, which whole could not be told from NULL.
_MOST = 32 << 10
SHORT = f"CASE WHEN DBMS_LOB.GETLENGTH({{0}}) BETWEEN 1 AND {_MOST} THEN {{0}} END"
LONG = f"CASE WHEN DBMS_LOB.GETLENGTH({{0}}) NOT BETWEEN 1 AND {_MOST} THEN {{0}} END"
#: The begin of the names of columns of locators, and the end is the place of the column that a LOB is of.
LOCATOR = "longshore_lob_"
#: The rows that are fetched at once, the LOBs' characters and bytes after which a batch ends, and those of a piece.
_ROWS, _BUDGET, _PIECE = 128, 8 << 20, 16 << 20
_WHOLE = {
    oracledb.DB_TYPE_CLOB: oracledb.DB_TYPE_LONG,
    oracledb.DB_TYPE_NCLOB: oracledb.DB_TYPE_LONG_NVARCHAR,
    oracledb.DB_TYPE_BLOB: oracledb.DB_TYPE_LONG_RAW,
}


def read(
    cursor: Any, statement: str, params: Any, columns: Sequence["Column"], rows: int
) -> Iterator[list[pa.ChunkedArray]]:
    """Run a query, and give the columns of each batch as the driver has their values."""
    cursor.arraysize = cursor.prefetchrows = min(rows, _ROWS)
    cursor.outputtypehandler = _variable
    cursor.execute(statement, params or None, fetch_lobs=True, fetch_decimals=True)
    lobs = [at for at, each in enumerate(columns) if each.is_lob]
    held: list[list[Any]] = []
    size = 0
    for row in iter(cursor.fetchone, None):
        values = [*row[: len(columns)]]
        for at, locator in zip(lobs, row[len(columns) :], strict=True):
            values[at] = values[at] if locator is None else whole(locator)
            size += len(values[at] or ())
        held.append(values)
        if len(held) == cursor.arraysize or size > _BUDGET:
            yield _arrays(held, columns)
            held, size = [], 0
    if held:
        yield _arrays(held, columns)


def _variable(cursor: Any, info: Any) -> Any:
    """Give what a column's values are fetched into: a LOB whole, unless it is to be a locator."""
    whole = None if info.name.startswith(LOCATOR) else _WHOLE.get(info.type_code)
    return None if whole is None else cursor.var(whole, arraysize=cursor.arraysize)


def whole(locator: Any) -> str | bytes:
    """Give all of a LOB, read in pieces. Their sizes and places are in units of UTF-16, or in bytes."""
    size, done = locator.size(), 0
    pieces: list[Any] = [b"" if locator.type is oracledb.DB_TYPE_BLOB else ""]
    while done < size:
        amount = min(_PIECE, size - done)
        try:
            piece = locator.read(done + 1, amount)
        except UnicodeDecodeError:
            # The piece ends with half a character, of which the driver makes this error.
            amount -= 1
            piece = locator.read(done + 1, amount)
        if (units := len(piece) if isinstance(piece, bytes) else len(piece.encode("utf-16-le")) // 2) != amount:
            raise OperationalError(f"of a LOB came {done + units} characters or bytes at place {done}, and not {size}")
        pieces.append(piece)
        done += amount
    joined: str | bytes = pieces[0].join(pieces)
    return joined


def _arrays(rows: list[list[Any]], columns: Sequence["Column"]) -> list[pa.ChunkedArray]:
    arrays = []
    for column, values in zip(columns, zip(*rows, strict=True), strict=True):
        # A vector is an array of Python's.
        plain = [[*value] if isinstance(value, array) else value for value in values]
        found = pa.array(plain, column.kind if column.is_lob else None)
        arrays.append(found if isinstance(found, pa.ChunkedArray) else pa.chunked_array([found]))
    return arrays
