"""Rows into a table of ClickHouse's, which has no transactions: they become the table's at the end, in one step."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from longshore.errors import NotSupportedError
from longshore.sources.clickhouse_values import NAIVE, NO_ZONE, ZONE, check_meaning, declaration
from longshore.sources.dialects import is_cut, literal
from longshore.sources.loading import HiddenTableLoader

if TYPE_CHECKING:
    from longshore.sources.clickhouse import Session

UPSERT = (
    'a ReplacingMergeTree keeps the last row of equal keys: append to it with if_exists="append", and read it FINAL'
)


_OVERFLOW = "date_time_overflow_behavior"
_WRAPPING = {_OVERFLOW: "ignore"}


class ClickHouseLoader(HiddenTableLoader):
    """Rows on their way into a table."""

    _session: "Session"

    def _begin(self, columns: object, if_exists: str, types: Mapping[str, str]) -> None:
        self._final = self._target
        self._look(if_exists)
        if if_exists in {"fail", "replace"}:
            self._hide()
            self._table = literal(self._rows + "_new")
        super()._begin(columns, "append" if if_exists == "truncate" else if_exists, types)
        if if_exists == "truncate":
            self._change(f"CREATE TABLE {self._hide()} AS {self._final}")
        elif if_exists == "append":
            lines = ", ".join(f"{self._dialect.quoted_name(name)} {declaration(kind)}" for name, kind in self._to)
            self._hidden = self._target = self._rows + "_new"
            self._session.execute(
                f"CREATE TEMPORARY TABLE {self._target} ({lines}) ENGINE = MergeTree ORDER BY tuple()"
            )

    def _hide(self) -> str:
        self._hidden = self._target = self._dialect.quoted_name(*self._path[:-1], self._rows + "_new")
        return self._hidden

    def _make(self, types: Mapping[str, str], *, replaces: bool) -> None:
        del replaces
        lines = []
        for name, kind in self._from:
            is_needed = name in self._required or name in self._key
            own = kind.removeprefix("Nullable(").removesuffix(")") if is_needed and kind.startswith("Null") else kind
            self._check_zone(name, kind, types.get(name) or kind)
            lines.append(f"{self._dialect.quoted_name(name)} {types.get(name) or declaration(own)}")
        order = f"({self._quoted_names(self._key)})" if self._key else "tuple()"
        self._change(f"CREATE TABLE {self._target} ({', '.join(lines)}) ORDER BY {order}")

    def _check_zone(self, name: str, kind: str, native: str) -> None:
        if NO_ZONE in kind and "DateTime" in native:
            raise NotSupportedError(NAIVE, hint=ZONE, column=name)

    def _check(self, name: str, kind: str, to: str, native: str, before: int) -> None:
        self._check_zone(name, kind, native)
        check_meaning(name, kind, native)
        settings = self._session.connection.settings
        # A date that is out of range is one that does not come back, and has a row.
        self._session.connection.settings = settings | _WRAPPING if _OVERFLOW in settings else settings
        try:
            super()._check(name, kind, to, native, before)
        finally:
            self._session.connection.settings = settings

    def _cast(self, name: str, kind: str, native: str) -> str:
        column = self._dialect.quoted_name(name)
        # A float that becomes a decimal is cut, and its text is not.
        return f"CAST(toString({column}) AS {native})" if is_cut(kind, native) else super()._cast(name, kind, native)

    def commit(self) -> None:
        """Make the rows the table's."""
        if self._mode == "append":
            names = self._quoted_names([name for name, _ in self._to])
            self._session.execute(f"INSERT INTO {self._final} ({names}) SELECT {names} FROM {self._target}")
        elif self._is_there:
            self._change(f"EXCHANGE TABLES {self._hidden} AND {self._final}")
        else:
            self._change(f"RENAME TABLE {self._hidden} TO {self._final}")
            self._hidden = None
        self._drop()
        super().commit()
