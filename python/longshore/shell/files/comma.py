"""CSV: a heading, a line for each row; NULL is nothing, and the empty text is ``""``."""

import pyarrow as pa
import pyarrow.compute as pc

from longshore.errors import NotSupportedError
from longshore.shell.files.faults import placed
from longshore.shell.files.fragments import fragments
from longshore.shell.files.sink import Out
from longshore.shell.files.texts import plain, texts

__all__ = ["CsvWriter"]

#: Not only what has to be quoted: spaces at the ends, which some readers drop.
_QUOTED = r'["\r\n]|^$|^\s|\s$'


class CsvWriter:
    """Writes batches as CSV in UTF-8."""

    def __init__(self, sink: Out, schema: pa.Schema, delimiter: str) -> None:
        """Write the heading."""
        self._delimiter = delimiter
        self._sink = sink
        self._rows = 0
        if not schema.names:
            message = "the result has no columns, and a row of none has no form in CSV"
            raise NotSupportedError(message)
        sink.write((delimiter.join(self._fields(pa.array(schema.names, pa.string())).to_pylist()) + "\n").encode())

    def write(self, batch: pa.RecordBatch) -> None:
        """Write a batch."""
        columns = [self._column(field, array) for field, array in zip(batch.schema, batch.columns, strict=True)]
        if batch.num_rows:
            lines = pc.binary_join_element_wise(*columns, self._delimiter).to_pylist()
            self._sink.write(("\n".join(lines) + "\n").encode())
        self._rows += batch.num_rows

    def close(self) -> None:
        """Do nothing: CSV has no end of its own."""

    def abandon(self) -> None:
        """Leave it as it is."""
        self._sink.break_off()

    def _column(self, field: pa.Field, array: pa.Array) -> pa.Array:
        with placed(field.name, self._rows):
            if not pa.types.is_nested(plain(array).type):
                return pc.fill_null(self._fields(texts(field, array)), "")
            # NULL is no text that JSON would have for it.
            said = pc.if_else(array.is_valid(), fragments(field, array), pa.scalar(None, pa.string()))
            return pc.fill_null(self._fields(said), "")

    def _fields(self, said: pa.Array) -> pa.Array:
        needs = pc.or_(pc.match_substring_regex(said, _QUOTED), pc.match_substring(said, self._delimiter))
        if not pc.any(needs).as_py():
            return said
        quoted = pc.binary_join_element_wise('"', pc.replace_substring(said, '"', '""'), '"', "")
        return pc.if_else(needs, quoted, said)
