"""Rows into a table of a store: as they are where the types are the table's, else by SQL."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from longshore.errors import DataError, ProgrammingError
from longshore.frames.pushdown import fold_name
from longshore.frames.stored import first_null, has_lesser_type, schema_of
from longshore.sources.loading import EXISTS, TableLoader

if TYPE_CHECKING:
    from longshore._core import StoreTable, StoreTransaction
    from longshore.sources.store import Session


class StoreLoader(TableLoader):
    """Rows on their way into a table of a store."""

    _session: "Session"
    #: Whether the store takes the rows as they come.
    _is_direct = False

    def _begin(self, columns: object, if_exists: str, types: Mapping[str, str]) -> None:
        if self._path[:-1] in {(), ("main",)} and not types:
            self._schema_of_rows = schema_of(columns)
            self._session.within(lambda transaction: self._take_directly(transaction, if_exists))
        if not self._is_direct:
            super()._begin(columns, if_exists, types)

    def _take_directly(self, transaction: "StoreTransaction", if_exists: str) -> None:
        name, schema = self._path[-1], self._schema_of_rows
        # Who writes first is waited for.
        transaction.lock(name)
        table = transaction.table(name)
        makes = if_exists in {"fail", "replace"}
        if makes:
            if table is not None and if_exists == "fail":
                raise ProgrammingError(f"the table {self._name} is there already", hint=EXISTS)
            transaction.create(name, schema, self._key, None, table is not None)
            self._session.mirror.is_stale = True
            table = transaction.table(name)
        self._is_direct = table is not None and _fits(schema, table, self._key if self._is_upsert else None)
        if self._is_direct and table is not None:
            self._stored = table.name
            self._not_null = {fold_name(each.name) for each in schema_of(table.schema) if not each.nullable}
            if if_exists == "truncate":
                transaction.truncate(name)
            if not self._is_upsert:
                transaction.begin_append(name, schema)

    def push(self, frame: object, before: int) -> None:
        """Write rows; raises ``DataError`` for a value that the column does not hold exactly."""
        if not self._is_direct:
            super().push(frame, before)
            return
        if found := first_null(frame, self._not_null):
            name, row = found
            raise DataError("NULL in a column that must have a value", column=name, row=before + row)
        with self._session.running():
            self._session.within(lambda transaction: self._add(transaction, frame))

    def _add(self, transaction: "StoreTransaction", frame: object) -> None:
        if self._is_upsert:
            transaction.upsert(self._stored, self._key, frame)
        else:
            transaction.push(frame)

    def commit(self) -> None:
        """End the write, and the transaction that it has begun."""
        if self._is_direct and not self._is_upsert:
            with self._session.running():
                self._session.within(lambda transaction: transaction.end_append())
        super().commit()


def _fits(schema: Any, table: "StoreTable", key: Sequence[str] | None) -> bool:
    """Whether rows have the table's columns in its types, and the engine has nothing to check or to compute."""
    stored = {fold_name(each.name): each.type for each in schema_of(table.schema)}
    rows = {fold_name(each.name): each.type for each in schema}
    definition = (table.definition or "").upper()
    is_plain = not any(word in definition for word in ("CHECK", "GENERATED"))
    # The engine's types lack values of these, which it looks for.
    is_plain &= table.definition is None or not any(map(has_lesser_type, stored.values()))
    is_keyed = key is None or {*map(fold_name, key)} == {*map(fold_name, table.key)} != set()
    return is_plain and is_keyed and stored == rows and len(schema) == len(rows)
