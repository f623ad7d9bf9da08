"""pyarrow: slices whose structs lie within structs, which the engine does not take."""

from typing import Any

import pyarrow as pa


def is_deep(kind: Any) -> bool:
    """Whether a type is a struct with a struct or a union for a field."""
    if not pa.types.is_struct(kind):
        return False
    below = [kind.field(at).type for at in range(kind.num_fields)]
    return any(pa.types.is_struct(each) or pa.types.is_union(each) for each in below)


def unsliced(batch: Any) -> Any:
    """Give the batch with copies of the deep columns that begin within their memory."""
    columns = [_copied(column) if is_deep(column.type) and _begins_within(column) else column for column in batch]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _begins_within(array: Any) -> bool:
    if array.offset != 0:
        return True
    return pa.types.is_struct(array.type) and any(
        _begins_within(array.field(at)) for at in range(array.type.num_fields)
    )


def _copied(array: Any) -> Any:
    try:
        # One array alone would be given back as it is.
        return pa.concat_arrays([array, array[:0]])
    except pa.ArrowNotImplementedError:
        # The engine refuses it, and says why.
        return array
