"""Arrow columns as texts and as JSON, which say their values exactly; JSON lines."""

import contextlib
import decimal
import json
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, NoReturn
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from longshore.errors import DataError, NotSupportedError
from longshore.shell.files.inference import InferredType, TextColumns, ValueClass
from longshore.shell.files.storage import Source


class UnrepresentableError(Exception):
    """A value that a format does not have, by its index in the array."""

    def __init__(self, index: int, problem: str, hint: str) -> None:
        """Keep the index, the problem and the remedy."""
        super().__init__(problem)
        self.index = index
        self.problem = problem
        self.hint = hint


@contextlib.contextmanager
def locating_value(column: str, first: int) -> Iterator[None]:
    """Locate an unrepresentable value of a batch, whose first row has the number ``first``, in a ``DataError``."""
    try:
        yield
    except UnrepresentableError as fault:
        row = first + fault.index
        message = f'column "{column}", row {row}: {fault.problem}'
        raise DataError(message, column=column, row=row, hint=fault.hint) from fault


_UNITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
_NANO = 10**9
_MINUTE = 60
_YEARS = ("0001-01-01", "9999-12-31T23:59:59")
_EXTENSION = b"ARROW:extension:name"


def extension_name(field: pa.Field) -> str | None:
    """Return the name of a field's extension type; pyarrow that does not know it leaves it in the metadata."""
    if isinstance(field.type, pa.BaseExtensionType):
        return str(field.type.extension_name)
    name = (field.metadata or {}).get(_EXTENSION)
    return None if name is None else name.decode()


def plain_values(array: pa.Array) -> pa.Array:
    """Return an array's values without an extension type and without a dictionary."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def to_text(field: pa.Field, array: pa.Array) -> pa.Array:
    """Return each value of a flat column as text; NULL stays.

    Raises ``NotSupportedError`` for a type that has none.
    """
    array = plain_values(array)
    if extension_name(field) == "arrow.uuid":
        return _each(array, lambda value: str(UUID(bytes=value)))
    for matches, convert in _CONVERSIONS:
        if matches(array.type):
            return convert(array)
    raise no_text_form(field)


def no_text_form(field: pa.Field) -> NotSupportedError:
    """Make the error for a type that has no form as text."""
    hint = f'cast it in the query, give --schema "{field.name}=string", or write a parquet or arrow file'
    message = f'column "{field.name}" is {field.type}, which has no text here'
    return NotSupportedError(message, column=field.name, hint=hint)


def _each(array: pa.Array, convert: Callable[[Any], str]) -> pa.Array:
    return pa.array([None if value is None else convert(value) for value in array.to_pylist()], pa.string())


def _cast(array: pa.Array) -> pa.Array:
    return array.cast(pa.string())


def _decimals(array: pa.Array) -> pa.Array:
    texts = array.cast(pa.string())
    if not pc.any(pc.match_substring(texts, "E")).as_py():
        return texts
    return _each(texts, lambda text: format(decimal.Decimal(text), "f"))


def _dates_and_times(array: pa.Array) -> pa.Array:
    """Return dates and timestamps in the form of ISO 8601, those with a time zone in UTC with a Z."""
    if pa.types.is_timestamp(array.type) and array.type.tz not in {None, "UTC"}:
        array = array.cast(pa.timestamp(array.type.unit, "UTC"))
    if pa.types.is_date64(array.type):
        array = array.cast(pa.date32())
    unit: Any
    unit, end = ("D", "") if pa.types.is_date(array.type) else (array.type.unit, "Z" if array.type.tz else "")
    counts = array.cast(pa.int32() if unit == "D" else pa.int64())
    if not _is_beyond(counts, unit):
        return array.cast(pa.string())
    # Arrow truncates such a year to sixteen bits.
    return _each(counts, lambda count: str(np.datetime64(count, unit)).replace("T", " ") + end)


def _is_beyond(counts: pa.Array, unit: Any) -> bool:
    """Whether a year does not have four digits; those of nanoseconds do."""
    if unit == "ns":
        return False
    lowest, highest = (np.datetime64(day, unit).astype(np.int64).item() for day in _YEARS)
    return bool(pc.any(pc.or_(pc.less(counts, lowest), pc.greater(counts, highest))).as_py())


def _bytes(array: pa.Array) -> pa.Array:
    return _each(array, lambda value: f"\\x{value.hex()}")


def _durations(array: pa.Array) -> pa.Array:
    digits = _UNITS[array.type.unit]
    return _each(array.cast(pa.int64()), lambda count: _duration(count, digits))


def _duration(count: int, digits: int) -> str:
    """Return hours, of any number of digits, minutes and seconds.

    >>> _duration(-90_000_500, 6)
    '-00:01:30.000500'
    """
    seconds, fraction = divmod(abs(count), 10**digits)
    minutes, seconds = divmod(seconds, _MINUTE)
    hours, minutes = divmod(minutes, _MINUTE)
    end = f".{fraction:0{digits}}" if fraction else ""
    return f"{'-' if count < 0 else ''}{hours:02}:{minutes:02}:{seconds:02}{end}"


def _interval(months: int, days: int, nanoseconds: int) -> str:
    """Return an interval's three parts as ISO 8601 does, none carried into another.

    >>> _interval(14, -3, -1_500_000_000), _interval(0, 0, 0)
    ('P14M-3DT-1.5S', 'PT0S')
    """
    seconds, fraction = divmod(abs(nanoseconds), _NANO)
    end = f".{fraction:09}".rstrip("0") if fraction else ""
    date = (f"{months}M" if months else "") + (f"{days}D" if days else "")
    time = f"T{'-' if nanoseconds < 0 else ''}{seconds}{end}S" if nanoseconds or not date else ""
    return f"P{date}{time}"


def _is_any(*tests: Callable[[pa.DataType], bool]) -> Callable[[pa.DataType], bool]:
    return lambda kind: any(test(kind) for test in tests)


_types = pa.types
_CONVERSIONS: list[tuple[Callable[[pa.DataType], bool], Callable[[pa.Array], pa.Array]]] = [
    (_is_any(_types.is_null, _types.is_boolean, _types.is_integer, _types.is_float32, _types.is_float64), _cast),
    (_is_any(_types.is_string, _types.is_large_string, pa.string_view().equals, _types.is_time), _cast),
    (_types.is_decimal, _decimals),
    (_types.is_float16, lambda array: array.cast(pa.float32()).cast(pa.string())),
    (_is_any(_types.is_date, _types.is_timestamp), _dates_and_times),
    (_types.is_duration, _durations),
    (_types.is_interval, lambda array: _each(array, lambda value: _interval(*value))),
    (_is_any(_types.is_binary, _types.is_large_binary, _types.is_fixed_size_binary), _bytes),
]


def write_json(batches: Iterable[pa.RecordBatch], schema: pa.Schema, file: Any) -> None:
    """Write batches as JSON lines in UTF-8."""
    keys = object_keys(schema.names)
    first = 0
    for batch in batches:
        columns = []
        for field, array in zip(batch.schema, batch.columns, strict=True):
            with locating_value(field.name, first):
                columns.append(to_json(field, array))
        if batch.num_rows:
            file.write(("\n".join(json_objects(keys, columns, batch.num_rows).to_pylist()) + "\n").encode())
        first += batch.num_rows


_ESCAPED = r'["\\\x00-\x1f\x7f]'
_NULL = "null"


def to_json(field: pa.Field, array: pa.Array) -> pa.Array:
    """Return each value as JSON, none of them NULL.

    Raises ``UnrepresentableError`` for a value that JSON cannot say, and ``NotSupportedError`` for a type.
    """
    array = plain_values(array)
    kind, types = array.type, pa.types
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        pieces = _list_pieces(array)
    elif types.is_struct(kind):
        pieces = _struct_pieces(array)
    elif types.is_nested(kind):
        raise no_text_form(field)
    elif extension_name(field) == "arrow.json":
        pieces = _documents(array)
    elif types.is_floating(kind):
        pieces = _finite(field, array)
    elif types.is_boolean(kind) or types.is_integer(kind) or types.is_decimal(kind):
        pieces = to_text(field, array)
    else:
        pieces = _quoted(to_text(field, array))
    return pc.fill_null(pieces, _NULL)


def object_keys(names: list[str]) -> list[str]:
    """Return what comes before each value of an object; raises ``NotSupportedError`` for a repeated name."""
    for name in names:
        if names.count(name) > 1:
            hint = "give each column a name of its own: SELECT a AS one, b AS two"
            message = f'two columns are called "{name}", which JSON cannot tell apart'
            raise NotSupportedError(message, column=name, hint=hint)
    return [f"{',' if number else ''}{json.dumps(name, ensure_ascii=False)}:" for number, name in enumerate(names)]


def json_objects(keys: list[str], columns: list[pa.Array], length: int) -> pa.Array:
    """Return an object for each row, of the columns' values."""
    if not columns:
        return pa.array(["{}"] * length, pa.string())
    pieces = [piece for key, column in zip(keys, columns, strict=True) for piece in (key, column)]
    return pc.binary_join_element_wise("{", *pieces, "}", "")


def _quoted(texts: pa.Array) -> pa.Array:
    if pc.any(pc.match_substring_regex(texts, _ESCAPED)).as_py():
        encode = json.JSONEncoder(ensure_ascii=False).encode
        return pa.array([None if text is None else encode(text) for text in texts.to_pylist()], pa.string())
    return pc.binary_join_element_wise('"', texts, '"', "")


def _finite(field: pa.Field, array: pa.Array) -> pa.Array:
    wide = array.cast(pa.float32()) if pa.types.is_float16(array.type) else array
    beyond = pc.index(pc.is_finite(wide), value=False).as_py()
    if beyond >= 0:
        hint = "read it as NULL (NULLIF in the query), or write another format"
        raise UnrepresentableError(beyond, f"{array[beyond].as_py()} is not a JSON number", hint)
    return to_text(field, array)


def _documents(array: pa.Array) -> pa.Array:
    """Return JSON as it is, in its digits, spaces and order; a line's end can only be a space between two tokens."""
    texts = array.to_pylist()
    for index, text in enumerate(texts):
        if text is not None:
            _check_document(index, text)
    return pa.array(
        [None if text is None else text.replace("\r", " ").replace("\n", " ") for text in texts], pa.string()
    )


def _check_document(index: int, text: str) -> None:
    def refuse(word: str) -> NoReturn:
        raise UnrepresentableError(index, f"{word} is not a JSON number", "cast the column to text in the query")

    try:
        json.loads(text, parse_int=str, parse_float=str, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise UnrepresentableError(index, f"it is not JSON: {error}", "cast the column to text in the query") from error


def _list_pieces(array: pa.Array) -> pa.Array:
    is_there = array.is_valid()
    lengths = pc.if_else(is_there, pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    try:
        items = to_json(array.type.value_field, array.flatten())
    except UnrepresentableError as fault:
        row = int(np.searchsorted(offsets, fault.index, side="right")) - 1
        raise UnrepresentableError(row, fault.problem, fault.hint) from fault
    joined = pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), items), ",")
    return pc.if_else(is_there, pc.binary_join_element_wise("[", joined, "]", ""), pa.scalar(None, pa.string()))


def _struct_pieces(array: pa.Array) -> pa.Array:
    fields = [array.type.field(number) for number in range(array.type.num_fields)]
    keys = object_keys([inner.name for inner in fields])
    columns = [to_json(inner, column) for inner, column in zip(fields, array.flatten(), strict=True)]
    return pc.if_else(array.is_valid(), json_objects(keys, columns, len(array)), pa.scalar(None, pa.string()))


#: Rows that are decoded at a time.
_ROWS = 1 << 14


class _Number(str):
    """A number's own digits."""

    __slots__ = ()


_CLASSES = {_Number: ValueClass.NUMBER, str: ValueClass.TEXT, bool: ValueClass.BOOLEAN}


def json_columns(source: Source) -> TextColumns:
    """Infer the columns' types of a whole file; raises ``DataError`` for a line that is not a JSON object."""
    types: dict[str, InferredType] = {}
    classes: dict[str, ValueClass] = {}
    first = 0
    for rows in _chunks(source):
        for name in dict.fromkeys(key for row in rows for key in row):
            values = [row.get(name) for row in rows]
            _check_class(name, values, classes, first)
            types.setdefault(name, InferredType()).add(_texts(values), classes.get(name))
        first += len(rows)
    names = list(types)
    return TextColumns(types, lambda: _read(source, names))


def _read(source: Source, names: list[str]) -> Iterator[pa.RecordBatch]:
    for rows in _chunks(source):
        yield pa.RecordBatch.from_arrays([_texts([row.get(name) for row in rows]) for name in names], names=names)


def _chunks(source: Source) -> Iterator[list[dict[str, Any]]]:
    with source.text(newline="\n") as file:
        rows = (_row(line, number) for number, line in enumerate(file) if not line.isspace())
        while chunk := list(islice(rows, _ROWS)):
            yield chunk


def _row(line: str, number: int) -> dict[str, Any]:
    try:
        row = _DECODER.decode(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"line {number + 1} is not JSON: {error}", row=number) from error
    if isinstance(row, dict):
        return row
    raise DataError(f"line {number + 1} is not an object: a file of JSON has one object in each line", row=number)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) < len(pairs):
        raise ValueError("an object has a key twice")
    return row


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a JSON number")


_DECODER = json.JSONDecoder(parse_int=_Number, parse_float=_Number, parse_constant=_refuse, object_pairs_hook=_object)


def _check_class(name: str, values: list[Any], classes: dict[str, ValueClass], first: int) -> None:
    """Check that a column's values are of one class; raises ``DataError`` for the first that is of another."""
    present = next((value for value in values if value is not None), None)
    if present is None:
        return
    expected = classes.setdefault(name, _class(type(present)))
    if {_class(kind) for kind in set(map(type, values)) - {type(None)}} == {expected}:
        return
    for index, value in enumerate(values):
        one = _class(type(value))
        if value is not None and one is not expected:
            row = first + index
            hint = "write all values of a column alike"
            message = f'column "{name}", row {row}: a {one.value} after a {expected.value}'
            raise DataError(message, column=name, row=row, hint=hint)


def _class(kind: type) -> ValueClass:
    return _CLASSES.get(kind, ValueClass.NESTED)


def _texts(values: list[Any]) -> pa.Array:
    if not any(isinstance(value, bool | list | dict) for value in values):
        return pa.array(values, pa.string())
    return pa.array([None if value is None else _text(value) for value in values], pa.string())


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str) else _json(value)


def _json(value: Any) -> str:
    """Return JSON with the digits that it came with, which ``json`` would put into quotes."""
    match value:
        case None:
            return "null"
        case bool() | _Number():
            return _text(value)
        case str():
            return json.dumps(value, ensure_ascii=False)
        case list():
            return f"[{','.join(map(_json, value))}]"
        case _:
            return "{" + ",".join(f"{_json(str(key))}:{_json(inner)}" for key, inner in value.items()) + "}"
