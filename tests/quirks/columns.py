"""Columns that all sources share: written, read into every frame, and bound as parameters."""

import datetime as dt
import uuid
from decimal import Decimal

import pyarrow as pa

from tests.quirks.quirks import Column


def _integers(bits: int) -> dict[str, Column]:
    signed, unsigned = (getattr(pa, f"{sign}int{bits}")() for sign in ("", "u"))
    return {
        f"int{bits}": Column(signed, (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)),
        f"uint{bits}": Column(unsigned, (0, 2**bits - 1)),
    }


#: The oldest pyarrow knows their storage alone.
UUID = getattr(pa, "uuid", lambda: pa.binary(16))()
JSON = getattr(pa, "json_", pa.string)()

COLUMNS: dict[str, Column] = {
    "bool": Column(pa.bool_(), (False, True)),
    **_integers(8),
    **_integers(16),
    **_integers(32),
    **_integers(64),
    "float32": Column(pa.float32(), (1.5, -2.0)),
    "float64": Column(pa.float64(), (1e300, -0.1)),
    "decimal": Column(
        pa.decimal128(38, 10), (Decimal("1234567890123456789012345678.1234567890"), Decimal("-0.0000000001"))
    ),
    "text": Column(pa.string(), ("", "ä€𝄞 'and' more than twenty-four bytes")),
    "binary": Column(pa.binary(), (b"", b"\x00\xff")),
    "date": Column(pa.date32(), (dt.date(1, 1, 1), dt.date(9999, 12, 31))),
    "time": Column(pa.time64("us"), (dt.time(0), dt.time(23, 59, 59))),
    "timestamp": Column(
        pa.timestamp("us"),
        (dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999_999)),  # noqa: DTZ001  naive
    ),
    "instant": Column(
        pa.timestamp("us", "UTC"),
        (dt.datetime(2020, 6, 1, 10, tzinfo=dt.UTC), dt.datetime(2038, 1, 19, 3, 14, 7, 1, tzinfo=dt.UTC)),
    ),
    "uuid": Column(UUID, (uuid.UUID(int=0), uuid.UUID("12345678-1234-5678-1234-567812345678"))),
    "json": Column(JSON, ('{"a": [1, null]}', '"null"')),
}
