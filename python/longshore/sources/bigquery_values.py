"""Values on their way into a table of BigQuery's: each as its column holds it, in a type that a file of Parquet keeps.

What the service is documented to load goes as it is. The rest goes as text, of which SQL makes a value of its type.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc
from google.cloud import bigquery

from longshore.errors import DataError, NotSupportedError, ProgrammingError
from longshore.sources import arrow
from longshore.sources.arrow import UnrepresentableError, decode, first_failure, plain, plain_type, refuse
from longshore.sources.bigquery_types import TYPES, name_of
from longshore.sources.loading import CONVERT, misfit

_NUMERIC, _BIGNUMERIC = (38, 9), (76, 38)
#: The types that are loaded as text, with the SQL of a value.
_AS_TEXT = {
    "TIME": "CAST({} AS TIME)",
    "DATETIME": "CAST({} AS DATETIME)",
    "JSON": "PARSE_JSON({})",
    "GEOGRAPHY": "ST_GEOGFROMTEXT({})",
    "INTERVAL": "CAST({} AS INTERVAL)",
}
_LOADED = {name: kind for name, kind in TYPES.items() if name not in _AS_TEXT}
#: The classes of values that a type takes, where each of them fits.
_TAKES = {
    "INT64": {"number", "bool", "text"},
    "FLOAT64": {"number", "text"},
    "NUMERIC": {"number", "text"},
    "BIGNUMERIC": {"number", "text"},
    "BOOL": {"bool", "text"},
    "STRING": {"text", "number", "bool", "date", "time", "naive", "zoned"},
    "BYTES": {"binary"},
    "DATE": {"date", "naive", "text"},
    "TIME": {"time", "text"},
    "DATETIME": {"date", "naive", "text"},
    "TIMESTAMP": {"zoned"},
    "JSON": {"text"},
    "GEOGRAPHY": {"text"},
    "INTERVAL": {"interval"},
}
_CLASSES: Sequence[tuple[Callable[[Any], bool], str]] = (
    (pa.types.is_boolean, "bool"),
    (lambda kind: pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind), "number"),
    (arrow.is_text, "text"),
    (arrow.is_bytes, "binary"),
    (pa.types.is_date, "date"),
    (pa.types.is_time, "time"),
    (lambda kind: pa.types.is_timestamp(kind) and kind.tz is None, "naive"),
    (pa.types.is_timestamp, "zoned"),
    (lambda kind: kind == pa.month_day_nano_interval(), "interval"),
)  # fmt: skip
_SPELT = {
    **dict.fromkeys(("INT", "SMALLINT", "INTEGER", "BIGINT", "TINYINT", "BYTEINT"), "INT64"),
    "BOOLEAN": "BOOL",
    "DECIMAL": "NUMERIC",
    "BIGDECIMAL": "BIGNUMERIC",
}
#: The type of a new table's column, by the class of its values.
_NEW = {"bool": "BOOL", "text": "STRING", "binary": "BYTES", "date": "DATE", "time": "TIME", "null": "STRING"} | {
    "naive": "DATETIME", "zoned": "TIMESTAMP", "interval": "INTERVAL", "float": "FLOAT64", "integer": "INT64",
}  # fmt: skip
_TOKEN = re.compile(r"\s*(?:(\w+)|`([^`]*)`|([<>(),]))")
_EMPTY = "write an empty list: BigQuery keeps no NULL of an ARRAY"


@dataclass(frozen=True)
class Column:
    """A column of the table, and how the data's values come to it."""

    #: The data's name of it.
    name: str
    native: str
    field: bigquery.SchemaField

    @property
    def is_loaded(self) -> bool:
        """Whether the service loads its values as they are."""
        return self.sql("c") == "c"

    @property
    def staged_field(self) -> bigquery.SchemaField:
        """The field that a file is loaded by."""
        return _staged_field(self.field, self.field.name)

    @property
    def arrow(self) -> pa.Field:
        """The field of the file."""
        return pa.field(self.field.name, _arrow(self.field))

    def sql(self, column: str) -> str:
        """Give the SQL of its values, by that of what is loaded."""
        return _sql(self.field, column)

    def check(self, kind: Any) -> None:
        """Raise for a type of the data's of which the column holds no value."""
        _check(kind, self.field, self.name)

    def fit(self, values: Any, before: int) -> pa.Array:
        """Give the values as they are loaded; raises ``DataError`` for one that the column does not hold exactly."""
        array = values.combine_chunks()
        array = pa.concat_arrays(array.chunks) if isinstance(array, pa.ChunkedArray) else array
        try:
            return _fit(array, self.field)
        except UnrepresentableError as unfit:
            row = unfit.row
            plain = _plain(array.slice(row, 1))
            # Without pandas, pyarrow shows no nanoseconds.
            value = plain.cast(pa.string())[0] if pa.types.is_timestamp(plain.type) else plain[0]
            reason = str(unfit) or misfit(str(value), str(plain.type), self.native)
            hint = _EMPTY if self.field.mode == "REPEATED" else CONVERT
        raise DataError(reason, column=self.name, row=before + row, native_type=self.native.lower(), hint=hint)


def new_type(field: Any) -> str:
    """Give the type of a new table's column that holds each value of an Arrow field's."""
    kind = field.type
    extension = getattr(kind, "extension_name", "")
    if extension == "arrow.json" or (field.metadata or {}).get(b"ARROW:extension:name") == b"arrow.json":
        return "JSON"
    if extension:
        return "STRING" if extension == "arrow.uuid" else new_type(field.with_type(kind.storage_type))
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return new_type(field.with_type(kind.value_type))
    native = None
    if pa.types.is_struct(kind):
        native = f"STRUCT<{', '.join(f'`{each.name}` {new_type(each)}' for each in kind)}>"
    elif arrow.is_list(kind):
        native = None if arrow.is_list(kind.value_type) else f"ARRAY<{new_type(kind.value_field)}>"
    elif pa.types.is_decimal(kind):
        native = _new_decimal(kind.precision - kind.scale, kind.scale)
    elif kind == pa.uint64():
        native = _new_decimal(20, 0)
    else:
        native = _NEW.get(_class(kind)) or _NEW.get("float" if pa.types.is_floating(kind) else "integer")
        native = native if _class(kind) else None
    if native is None:
        message = f"{kind} has no type in BigQuery"
        raise NotSupportedError(message, column=field.name, hint=f'name one: types={{"{field.name}": ...}}')
    return native


def _new_decimal(whole: int, scale: int) -> str | None:
    kinds = (("NUMERIC", _NUMERIC), ("BIGNUMERIC", _BIGNUMERIC))
    return next((name for name, (most, places) in kinds if whole <= most - places and scale <= places), None)


def parse_field(name: str, native: str, mode: str = "NULLABLE") -> bigquery.SchemaField:
    """Give the field of a type that is written as SQL has it."""
    tokens = [found.group(1) or found.group(2) or found.group(3) for found in _TOKEN.finditer(native)]
    field = None
    if "".join(found.group(0) for found in _TOKEN.finditer(native)) == native.rstrip():
        field = _parse(name, tokens, mode)
    if field is None or tokens:
        message = f"{native!r} is not a type of BigQuery's"
        raise ProgrammingError(message, column=name, hint="write it as CREATE TABLE has it: NUMERIC(10, 2)")
    return field


def _parse(name: str, tokens: list[str], mode: str, *, skipped: int = 0) -> bigquery.SchemaField | None:
    """Take a type from the front of the tokens, after some that are skipped; None where there is none."""
    del tokens[:skipped]
    kind = tokens.pop(0).upper() if tokens else ""
    if kind == "ARRAY" and tokens[:1] == ["<"]:
        del tokens[0]
        inner = _parse(name, tokens, "REPEATED")
        return inner if tokens and tokens.pop(0) == ">" else None
    if kind == "STRUCT" and tokens[:1] == ["<"]:
        fields = []
        while tokens[:1] in (["<"], [","]) and len(tokens) > 1:
            fields.append(_parse(tokens[1], tokens, "NULLABLE", skipped=2))
        inner_fields = [each for each in fields if each is not None]
        is_whole = tokens[:1] == [">"] and len(inner_fields) == len(fields)
        del tokens[:1]
        return bigquery.SchemaField(name, "RECORD", mode=mode, fields=inner_fields) if is_whole else None
    kind = _SPELT.get(kind, kind)
    sizes: list[int] = []
    while tokens and tokens[0] in ({","} if sizes else {"("}):
        sizes += [int(each) for each in tokens[1:2] if each.isdecimal()]
        del tokens[:2]
    if kind not in _TAKES or (sizes and (not tokens or tokens.pop(0) != ")")):
        return None
    names = ("precision", "scale") if "NUMERIC" in kind else ("maxLength",)
    resource = {"name": name, "type": kind, "mode": mode}
    return bigquery.SchemaField.from_api_repr({**resource, **dict(zip(names, sizes, strict=False))})


def _class(kind: Any) -> str:
    if pa.types.is_null(kind):
        return "null"
    return next((name for is_one, name in _CLASSES if is_one(kind)), "")


def _is_list(field: Any) -> bool:
    return bool((field.mode or "").upper() == "REPEATED")


def _element(field: Any) -> Any:
    return bigquery.SchemaField.from_api_repr({**field.to_api_repr(), "mode": "NULLABLE"})


def _staged_field(field: Any, name: str) -> bigquery.SchemaField:
    kind, mode = name_of(field), "REPEATED" if _is_list(field) else "NULLABLE"
    inner = [_staged_field(each, each.name) for each in field.fields]
    kind = "RECORD" if kind == "STRUCT" else "STRING" if kind in _AS_TEXT else kind
    return bigquery.SchemaField(name, kind, mode=mode, fields=inner)


def _arrow(field: Any) -> pa.DataType:
    if _is_list(field):
        return pa.list_(_arrow(_element(field)))
    if name_of(field) == "STRUCT":
        return pa.struct([(each.name, _arrow(each)) for each in field.fields])
    return _LOADED.get(name_of(field), pa.string())


def _sql(field: Any, column: str) -> str:
    if _is_list(field):
        inner = _sql(_element(field), "e")
        made = f"ARRAY(SELECT {inner} FROM UNNEST({column}) AS e WITH OFFSET AS n ORDER BY n)"  # noqa: S608
        return column if inner == "e" else made
    if name_of(field) == "STRUCT":
        parts = [(each.name, f"{column}.`{each.name}`", each) for each in field.fields]
        if all(_sql(each, plain) == plain for _, plain, each in parts):
            return column
        made = ", ".join(f"{_sql(each, plain)} AS `{name}`" for name, plain, each in parts)
        return f"IF({column} IS NULL, NULL, STRUCT({made}))"
    return _AS_TEXT.get(name_of(field), "{}").format(column)


def _check(kind: Any, field: Any, name: str) -> None:
    kind = pa.string() if getattr(kind, "extension_name", "") == "arrow.uuid" else plain_type(kind)
    native, of_data = name_of(field), _class(kind)
    if _is_list(field) and arrow.is_list(kind):
        _check(kind.value_type, _element(field), name)
        return
    known = {each.name.lower(): each for each in field.fields}
    if known and not _is_list(field) and pa.types.is_struct(kind) and {each.name.lower() for each in kind} == {*known}:
        for each in kind:
            _check(each.type, known[each.name.lower()], name)
        return
    is_known = native in _TAKES or known
    if is_known and (of_data == "null" or (not _is_list(field) and of_data in _TAKES.get(native, ()))):
        return
    zones = {"naive": "TIMESTAMP", "zoned": "DATETIME"}
    if zones.get(of_data) == native or (of_data, native) == ("zoned", "DATE"):
        message = f"{kind} would become {native.lower()} by a time zone"
    else:
        message = f"{kind} does not go into a column of {native.lower()}"
    raise NotSupportedError(message, column=name, native_type=native.lower(), hint=CONVERT)


def _plain(values: Any) -> pa.Array:
    """Give values without an encoding of Arrow's around them."""
    values = decode(values)
    if getattr(values.type, "extension_name", "") == "arrow.uuid":
        cells = values.storage.to_pylist()
        return pa.array([None if each is None else str(UUID(bytes=each)) for each in cells], pa.string())
    values = plain(values)
    if pa.types.is_date64(values.type):
        return values.cast(pa.date32())
    return values.cast(pa.float32()) if pa.types.is_float16(values.type) else values


def _fit(values: Any, field: Any) -> pa.Array:
    values = _plain(values)
    if pa.types.is_null(values.type):
        if _is_list(field) and len(values):
            raise UnrepresentableError(0, "NULL, and not a list")
        return pa.nulls(len(values), _arrow(field))
    if _is_list(field):
        return _list(values, field)
    native = name_of(field)
    if native == "STRUCT":
        return _struct(values, field)
    if native == "INTERVAL":
        return _intervals(values)
    fitted = _exact(values, _precise(field))
    _check_bounds(fitted, field)
    return fitted.cast(_LOADED.get(native, pa.string()))


def _list(values: Any, field: Any) -> pa.Array:
    refuse(values.is_null(), "NULL, and not a list")
    counts = pc.list_value_length(values).cast(pa.int32())
    inner, parents = values.flatten(), pc.list_parent_indices(values)
    try:
        refuse(inner.is_null(), "an ARRAY of BigQuery's has no NULL")
        fitted = _fit(inner, _element(field))
    except UnrepresentableError as unfit:
        raise UnrepresentableError(parents[unfit.row].as_py(), str(unfit)) from None
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(counts)])
    return pa.ListArray.from_arrays(offsets, fitted)


def _struct(values: Any, field: Any) -> pa.Array:
    # What is in a NULL counts for nothing, as a list that is NULL.
    places = pc.indices_nonzero(values.is_valid())
    inner = dict(zip((each.name.lower() for each in values.type), values.take(places).flatten(), strict=True))
    try:
        parts = [_fit(inner[each.name.lower()], each) for each in field.fields]
    except UnrepresentableError as unfit:
        raise UnrepresentableError(places[unfit.row].as_py(), str(unfit)) from None
    fitted = pa.StructArray.from_arrays(parts, fields=[*_arrow(field)])
    return fitted.take(pc.index_in(pa.array(range(len(values)), places.type), value_set=places))


def _precise(field: Any) -> pa.DataType:
    """Give the type whose values are those of the column, with the digits that it is declared with."""
    native, precision, scale = name_of(field), field.precision, field.scale
    if native in {"NUMERIC", "BIGNUMERIC"} and precision is not None:
        wide = pa.decimal128 if native == "NUMERIC" else pa.decimal256
        return wide(precision, scale or 0)
    return TYPES[native]


def _exact(values: Any, kind: pa.DataType) -> pa.Array:
    """Cast values of which each is the same after it; raises ``UnrepresentableError`` for the first other."""
    if values.type == kind:
        return values
    try:
        cast = _cast(values, kind)
    except pa.ArrowInvalid:
        raise UnrepresentableError(first_failure(values, lambda part: _cast(part, kind))) from None
    if pa.types.is_string(kind):
        return cast
    is_text = _class(values.type) == "text"
    is_other_float = pa.types.is_floating(kind) != pa.types.is_floating(values.type)
    if is_text or is_other_float or (pa.types.is_date32(kind) and pa.types.is_timestamp(values.type)):
        back = _cast(cast, pa.string() if is_text else values.type)
        before = values.cast(back.type)
        if is_text and _class(kind) == "number":
            before, back = _short(before), _short(back)
        refuse(pc.not_equal(before, back), "")
    return cast


def _cast(values: Any, kind: pa.DataType) -> pa.Array:
    is_decimal = pa.types.is_decimal(values.type) or pa.types.is_decimal(kind)
    if is_decimal and (pa.types.is_floating(values.type) or pa.types.is_floating(kind)):
        # The digits of a float are those of its text.
        return values.cast(pa.string()).cast(kind)
    is_wide = pa.types.is_integer(values.type) and pa.types.is_floating(kind)
    return values.cast(kind, safe=not is_wide)


def _short(texts: Any) -> Any:
    """Give numbers' texts without the zeros at their ends."""
    return pc.replace_substring_regex(texts, r"\.0*$|(\.\d*[1-9])0+$", r"\1")


def _check_bounds(values: Any, field: Any) -> None:
    native = name_of(field)
    if pa.types.is_timestamp(values.type) or pa.types.is_date32(values.type):
        years = pc.year(values)
        refuse(pc.or_(pc.less(years, 1), pc.greater(years, 9999)), f"{native.lower()} has the years 1 to 9999")
    if (most := field.max_length) is not None:
        length = pc.utf8_length(values) if native == "STRING" else pc.binary_length(values)
        refuse(pc.greater(length, most), f"longer than the {most} that the column holds")


def _intervals(values: Any) -> pa.Array:
    texts: list[str | None] = []
    for row, value in enumerate(values.to_pylist()):
        if value is None:
            texts.append(None)
            continue
        microseconds, rest = divmod(abs(value.nanoseconds), 1000)
        if rest:
            raise UnrepresentableError(row, f"{value} has nanoseconds, and an interval of BigQuery's microseconds")
        seconds, fraction = divmod(microseconds, 1_000_000)
        signs = ["-" if each < 0 else "" for each in (value.months, value.nanoseconds)]
        years, months = divmod(abs(value.months), 12)
        clock = f"{seconds // 3600}:{seconds // 60 % 60}:{seconds % 60}.{fraction:06}"
        texts.append(f"{signs[0]}{years}-{months} {value.days} {signs[1]}{clock}")
    return pa.array(texts, pa.string())
