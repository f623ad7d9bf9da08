"""The types that BigQuery's types become, decided by the query's schema before the first row."""

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from longshore.errors import DataError, NotSupportedError
from longshore.sources.arrow import first_failure

TYPES = {
    "STRING": pa.string(),
    "BYTES": pa.binary(),
    "INT64": pa.int64(),
    "FLOAT64": pa.float64(),
    "BOOL": pa.bool_(),
    "DATE": pa.date32(),
    "TIME": pa.time64("us"),
    "DATETIME": pa.timestamp("us"),
    "TIMESTAMP": pa.timestamp("us", "UTC"),
    "NUMERIC": pa.decimal128(38, 9),
    "BIGNUMERIC": pa.decimal256(76, 38),
    "GEOGRAPHY": pa.string(),
    "JSON": pa.string(),
    "INTERVAL": pa.month_day_nano_interval(),
}
#: Arrow's extension types. Geographies are on the sphere, by longitude and latitude.
_EXTENSIONS = {
    "JSON": {"ARROW:extension:name": "arrow.json"},
    "GEOGRAPHY": {
        "ARROW:extension:name": "geoarrow.wkt",
        "ARROW:extension:metadata": '{"crs":"OGC:CRS84","crs_type":"authority_code","edges":"spherical"}',
    },
}
_AS_TEXT = "read it as text: CAST(... AS STRING) in the query"


def schema_of(fields: Iterable[Any]) -> pa.Schema:
    """Give the Arrow schema of the client's fields."""
    return pa.schema([_field(field) for field in fields])


def _field(field: Any) -> pa.Field:
    metadata = {"bigquery:type": native_of(field), "longshore:exact": ""}
    is_list = (field.mode or "").upper() == "REPEATED"
    kind = _type(field)
    extension = _EXTENSIONS.get(field.field_type.upper(), {})
    if is_list:
        return pa.field(field.name, pa.list_(pa.field("item", kind, metadata=extension)), metadata=metadata)
    return pa.field(field.name, kind, metadata={**metadata, **extension})


def _type(field: Any) -> pa.DataType:
    name = name_of(field)
    if name == "STRUCT":
        return pa.struct([_field(inner) for inner in field.fields])
    if name == "RANGE":
        bound = TYPES[field.range_element_type.element_type.upper()]
        return pa.struct([("start", bound), ("end", bound)])
    if name not in TYPES:
        message = f"a column of {name} cannot be read"
        raise NotSupportedError(message, column=field.name, native_type=name.lower(), hint=_AS_TEXT)
    return TYPES[name]


def name_of(field: Any) -> str:
    """Give the name of a type without what is in it, as SQL writes it."""
    legacy = {"INTEGER": "INT64", "FLOAT": "FLOAT64", "BOOLEAN": "BOOL", "RECORD": "STRUCT"}
    name: str = field.field_type.upper()
    return legacy.get(name, name)


def native_of(field: Any) -> str:
    """Give BigQuery's own name of a type, as SQL writes it."""
    name = name_of(field)
    if name == "RANGE":
        name = f"RANGE<{field.range_element_type.element_type}>"
    return f"ARRAY<{name}>" if (field.mode or "").upper() == "REPEATED" else name


def conform(batch: pa.RecordBatch, schema: pa.Schema, before: int) -> pa.RecordBatch:
    """Give a batch under the schema; raises ``DataError`` where a value does not fit it."""
    if len(batch.columns) != len(schema):
        raise DataError(f"a batch of {len(batch.columns)} columns in a result of {len(schema)}")
    arrays = []
    for field, array in zip(schema, batch.columns, strict=True):
        try:
            arrays.append(array if array.type == field.type else array.cast(field.type))
            if pa.types.is_decimal256(field.type):
                # BIGNUMERIC has a part of a 77th digit, which Arrow's decimals have not.
                arrays[-1].validate(full=True)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            kind, native = field.type, field.metadata[b"bigquery:type"].decode()
            row = before + max(first_failure(array, lambda part: part.cast(kind).validate(full=True)), 0)  # noqa: B023  run here
            raise DataError(str(error), column=field.name, row=row, native_type=native, hint=_AS_TEXT) from None
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
