"""Rows into a table by ``adbc_ingest``, in one transaction."""

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import pyarrow as pa

from longshore.errors import NotSupportedError, ProgrammingError

#: Databases in which a new table is part of a transaction, by the name that their driver gives them.
_TRANSACTIONAL = {"postgresql", "sqlite", "duckdb"}
_MODES = {"fail": "create", "replace": "replace"}
_OWN = "write by the source's own URL, or with if_exists fail, append or replace"


class IngestLoader:
    """Rows on their way into a table, all of them or none."""

    def __init__(
        self,
        session: Any,
        *,
        schema: str | None,
        table: str,
        columns: object,
        required: Sequence[str],
        if_exists: str,
        key: Sequence[str],
        types: Mapping[str, str],
    ) -> None:
        """Make the table, or see that the one that is there has the data's own types."""
        del required
        self._session, self._schema, self._table = session, schema, table
        if if_exists in {"truncate", "upsert"} or key or types:
            what = f"if_exists={if_exists!r}" if if_exists in {"truncate", "upsert"} else "a key or types"
            _refuse(f"{what}: an ADBC driver has no dialect for it")
        if session.vendor not in _TRANSACTIONAL:
            _refuse("this database may keep a part of a write that fails")
        self._owns = session.transaction == "none"
        if self._owns:
            session.begin()
        try:
            if if_exists == "append":
                self._check(pa.RecordBatchReader.from_stream(columns).schema)
            else:
                self._ingest(columns, _MODES[if_exists])
        except BaseException:
            self.abort()
            raise

    def _check(self, data: pa.Schema) -> None:
        """Refuse data of other types than the table's: a driver may write its bytes as they are."""
        with self._session.running():
            found = self._session.connection.adbc_get_table_schema(self._table, db_schema_filter=self._schema)
        if unknown := [name for name in data.names if name not in found.names]:
            message = f"the table {self._table} has no column {', '.join(map(repr, unknown))}"
            raise ProgrammingError(message)
        for field in data:
            kind = found.field(field.name).type
            if not kind.equals(field.type):
                _refuse(f"column {field.name!r} is {kind} in the table and {field.type} in the data")

    def _ingest(self, frame: object, mode: str) -> None:
        with self._session.running():
            self._session.cursor().adbc_ingest(self._table, frame, mode=mode, db_schema_name=self._schema)

    def push(self, frame: object, before: int) -> None:
        """Write rows."""
        del before
        self._ingest(frame, "append")

    def commit(self) -> None:
        """Make the rows the table's, unless a transaction of the caller's is open."""
        if self._owns:
            self._session.commit()

    def abort(self) -> None:
        """Leave the table as it was; a transaction of the caller's has to be rolled back."""
        if self._owns and self._session.transaction != "none":
            self._session.rollback()


def _refuse(reason: str) -> NoReturn:
    message = f"{reason}\nHint: {_OWN}"
    raise NotSupportedError(message, hint=_OWN)
