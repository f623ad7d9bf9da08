"""Rows into a table of Trino's, whose connectors write without transactions: they become the table's in one statement.

They come as JSON in INSERTs into a table of their own, which becomes the new one, or whose rows the table gets: a list
of literals takes the server fifty times as long to plan.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

from longshore.errors import DataError, Error, NotSupportedError
from longshore.sources.arrow import UnrepresentableError, first_failure, is_bytes, is_list, is_text, plain, plain_type
from longshore.sources.dialects import TRINO, literal
from longshore.sources.loading import HiddenTableLoader, misfit

if TYPE_CHECKING:
    from longshore.sources.trino import Session

UPSERT = "write the rows into another table, and run a MERGE from it, where the catalog's connector has one"
_TYPED = "give them as Arrow's type arrow.json, of which JSON is parsed"
_AS_TEXT = "give it as texts, without Arrow's type arrow.json"
#: The letters of a statement's rows, of the million that the server takes.
_LETTERS = 400_000
_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}

#: Texts, or lists of them.
Cells = list[Any]


class TrinoLoader(HiddenTableLoader):
    """Rows on their way into a table."""

    _session: "Session"

    def _begin(self, columns: object, if_exists: str, types: Mapping[str, str]) -> None:
        self._look(if_exists)
        schema = pa.table(columns).schema
        self._writers = [writer_of(field) for field in schema]
        self._from = [(field.name, each.kind) for field, each in zip(schema, self._writers, strict=True)]
        if self._key:
            raise NotSupportedError("Trino's tables have no keys: leave out key")
        self._needed = set()
        self._to = (
            [(name, types.get(name) or kind) for name, kind in self._from]
            if if_exists in {"fail", "replace"}
            else self._columns()
        )
        self._parse_texts()
        self._hidden = self._dialect.quoted_name(*self._path[:-1], self._rows)
        try:
            self._make_hidden(self._required if if_exists in {"fail", "replace"} else set())
        except NotSupportedError:
            # Some connectors have no NOT NULL. The statement was for itself, and nothing is to be undone.
            self._session.transaction = "open"
            self._make_hidden(set())

    def _parse_texts(self) -> None:
        """Have texts parsed that go into JSON, and JSON not that goes into texts: a cast is of JSON's strings."""
        for at, ((name, kind), (to, native)) in enumerate(zip(self._from, self._to, strict=True)):
            known = _plain_kind(native)
            if known == "json":
                self._to[at] = (to, known)
            if (kind, known) == ("varchar", "json"):
                self._from[at] = (name, known)
                self._writers[at] = JSON.after(plain)
            elif kind == "json" and known.startswith("varchar"):
                self._from[at] = (name, "varchar")
                self._writers[at] = TEXT.after(plain)
            elif "varchar" in kind and _has_json(known) and known not in {"json", _plain_kind(kind)}:
                message = f"texts within {kind} would become JSON strings within {native}"
                raise NotSupportedError(message, hint=_TYPED, column=name)
            elif "varchar" in known and _has_json(kind) and known != _plain_kind(kind):
                message = f"JSON within {kind} would become its strings within {native}"
                raise NotSupportedError(message, hint=_AS_TEXT, column=name)

    def _make_hidden(self, required: set[str]) -> None:
        names = [self._dialect.quoted_name(name) for name, _ in self._to]
        constraints = [" NOT NULL" if name in required else "" for name, _ in self._to]
        kinds = [kind for _, kind in self._to]
        columns = [f"{name} {kind}{more}" for name, kind, more in zip(names, kinds, constraints, strict=True)]
        self._change(f"CREATE TABLE {self._hidden} ({', '.join(columns)})")

    def push(self, frame: object, before: int) -> None:
        """Write rows; raises ``DataError`` for a value that the column does not hold exactly."""
        table = pa.table(frame)
        cells = [self._cells(at, column, before) for at, column in enumerate(table.columns)]
        for at, (to, native) in enumerate(self._to):
            name = self._from[at][0]
            if to in self._needed and None in cells[at]:
                message = "NULL in a column that must have a value"
                raise DataError(message, column=name, row=before + cells[at].index(None), native_type=native)
        tests, names = self._tests(), [f"c{at}" for at in range(len(cells))]
        parts = list(zip(names, self._writers, strict=True))
        kind = f"array(row({', '.join(f'{name} {each.json}' for name, each in parts)}))"
        typed = ", ".join(f"{each.sql(name)} AS {name}" for name, each in parts)
        casts = ", ".join(self._cast(name, *pair) for name, pair in zip(names, self._pairs(), strict=True))
        for text, count in _pieces(cells):
            unnested = f"UNNEST(CAST(json_parse({literal(text)}) AS {kind})) WITH ORDINALITY"
            rows = f"(SELECT n, {typed} FROM {unnested} AS v ({', '.join(names)}, n)) AS typed"
            if tests:
                self._check_rows(rows, tests, cells, before)
            stored = self._session.execute(f"INSERT INTO {self._hidden} SELECT {casts} FROM {rows}")
            if stored != count:
                raise DataError(f"of {count} rows the table took {stored}")
            before += count
            cells = [each[count:] for each in cells]

    def _cells(self, at: int, column: Any, before: int) -> Cells:
        write, (name, kind), (_, native) = self._writers[at].cells, self._from[at], self._to[at]
        try:
            return write(column)
        except UnrepresentableError:
            row = first_failure(column, write)
        raise DataError(misfit(column[row].as_py(), kind, native), column=name, row=before + row, native_type=native)

    def _pairs(self) -> list[tuple[str, str]]:
        return [(kind, native) for (_, kind), (_, native) in zip(self._from, self._to, strict=True)]

    def _cast(self, name: str, kind: str, native: str) -> str:
        return name if kind == native else self._dialect.cast.format(name, native)

    def _tests(self) -> dict[int, str]:
        """Give the condition of a value that would change, by the place of its column."""
        tests = {}
        for at, (kind, native) in enumerate(self._pairs()):
            self._check_zones(self._from[at][0], kind, native)
            if (lossy := self._dialect.lossy(self._dialect, f"c{at}", kind, native)) is not None:
                tests[at] = lossy
        return tests

    def _check_rows(self, rows: str, tests: Mapping[int, str], cells: Sequence[Any], before: int) -> None:
        """Raise for the first value that would change."""
        cases = " ".join(f"WHEN {test} THEN {at}" for at, test in tests.items())
        found = f"SELECT n, CASE {cases} END AS c FROM {rows}"
        first = f"SELECT n, c FROM ({found}) AS found WHERE c IS NOT NULL ORDER BY n LIMIT 1"
        for row, at in self._session.rows(first):
            (name, kind), (_, native) = self._from[at], self._to[at]
            message = misfit(cells[at][row - 1], kind, native)
            raise DataError(message, column=name, row=before + row - 1, native_type=native)

    def commit(self) -> None:
        """Make the rows the table's."""
        if self._mode in {"fail", "replace"}:
            with self._session.connection.interruption.suspend():
                self._take_place()
        else:
            self._insert()
        self._drop()
        self._session.commit()

    def _take_place(self) -> None:
        """Give the new table its name; the one before is there until it has it."""
        before = self._dialect.quoted_name(*self._path[:-1], self._rows + "_old")
        if self._is_there:
            self._session.execute(f"ALTER TABLE {self._target} RENAME TO {before}")
        try:
            self._session.execute(f"ALTER TABLE {self._hidden} RENAME TO {self._target}")
        except Error:
            if self._is_there:
                self._session.execute(f"ALTER TABLE {before} RENAME TO {self._target}")
            raise
        # What is dropped at the end.
        self._hidden = before if self._is_there else None

    def _insert(self) -> None:
        names = self._quoted_names([name for name, _ in self._to])
        if self._mode == "truncate":
            self._session.execute(f"TRUNCATE TABLE {self._target}")
        try:
            self._session.execute(f"INSERT INTO {self._target} ({names}) SELECT {names} FROM {self._hidden}")
        except Error as error:
            if self._mode == "truncate":
                # No one else has them.
                hidden, self._hidden = self._hidden, None
                message = f"{error}\nThe table is empty now; the rows that were written are in {hidden}"
                raise type(error)(message, sqlstate=error.sqlstate) from None
            raise


def _pieces(cells: Sequence[Cells]) -> Iterator[tuple[str, int]]:
    """Give rows as JSON, as many as a statement takes, and how many they are."""
    lines: list[str] = []
    letters = 0
    for row in zip(*cells, strict=True):
        lines.append(json.dumps(row, ensure_ascii=False, separators=(",", ":")))
        letters += len(lines[-1])
        if letters > _LETTERS:
            yield f"[{','.join(lines)}]", len(lines)
            lines, letters = [], 0
    if lines:
        yield f"[{','.join(lines)}]", len(lines)


@dataclass(frozen=True)
class Writer:
    """How a column's values come: as texts and lists of texts, of which SQL makes values of their type."""

    #: The type that the values have.
    kind: str
    cells: Callable[[Any], Cells]
    #: The SQL of a value, by that of its text.
    sql: Callable[[str], str]
    #: The type of what JSON holds.
    json: str = "varchar"

    def after(self, convert: Callable[[Any], Any]) -> "Writer":
        """Give the writer of a column that becomes one of this type."""
        return replace(self, cells=lambda column: self.cells(convert(column)))


def _plain_kind(kind: str) -> str:
    """Give a type's text without what may be written otherwise."""
    return re.sub(r'[\s"]', "", kind).lower()


def _has_json(kind: str) -> bool:
    return re.search(r"\bjson\b", kind) is not None


def writer_of(field: pa.Field) -> Writer:
    """Choose by the column's type."""
    kind = field.type
    if own := _EXTENSIONS.get(getattr(kind, "extension_name", "")):
        return own.after(plain)
    if (within := plain_type(kind)) != kind:
        return writer_of(field.with_type(within)).after(plain)
    writer = next((make(field) for is_one, make in _WRITERS if is_one(kind)), None)
    if writer is None:
        raise NotSupportedError(f"{kind} has no type in Trino", column=field.name)
    return writer


def _cast(kind: str, cells: Callable[[Any], Cells]) -> Writer:
    return Writer(kind, cells, lambda text: f"CAST({text} AS {kind})")


def _arrows(column: Any) -> Cells:
    return column.cast(pa.string()).to_pylist()  # type: ignore[no-any-return]


def _by(text: Callable[[Any], str]) -> Callable[[Any], Cells]:
    return lambda column: [None if value is None else text(value) for value in column.to_pylist()]


def _number(value: float) -> str:
    return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(repr(value), repr(value))


def _decimal(field: pa.Field) -> Writer:
    kind = field.type
    if kind.precision > 38:  # noqa: PLR2004  Trino's digits
        raise NotSupportedError(f"{kind} has more digits than Trino's decimals, which have 38", column=field.name)
    return _cast(f"decimal({kind.precision},{kind.scale})", _by(lambda value: f"{value:f}"))


def _timestamp(field: pa.Field) -> Writer:
    kind = field.type
    if kind.tz is None:
        return _cast(f"timestamp({_DIGITS[kind.unit]})", _arrows)

    def cells(column: Any) -> Cells:
        texts = _arrows(column.cast(pa.timestamp(kind.unit)))
        return [None if text is None else f"{text} UTC" for text in texts]

    return _cast(f"timestamp({_DIGITS[kind.unit]}) with time zone", cells)


def _list(field: pa.Field) -> Writer:
    kind = field.type
    element = writer_of(kind.value_field)

    def cells(column: Any) -> Cells:
        inner = iter(element.cells(pa.chunked_array([each.flatten() for each in column.chunks], kind.value_type)))
        counts = pc.list_value_length(column).to_pylist()
        return [None if count is None else [next(inner) for _ in range(count)] for count in counts]

    def sql(text: str) -> str:
        return f"transform({text}, {_inner(text)} -> {element.sql(_inner(text))})"

    return Writer(f"array({element.kind})", cells, sql, f"array({element.json})")


def _struct(field: pa.Field) -> Writer:
    fields = [field.type.field(at) for at in range(field.type.num_fields)]
    parts = [writer_of(each) for each in fields]
    names = [TRINO.quoted_name(each.name) for each in fields]
    kind = ", ".join(f"{name} {each.kind}" for name, each in zip(names, parts, strict=True))

    def cells(column: Any) -> Cells:
        chunks = [each.flatten() for each in column.chunks]
        inner = [
            each.cells(pa.chunked_array([chunk[at] for chunk in chunks], fields[at].type))
            for at, each in enumerate(parts)
        ]
        rows = zip(column.is_valid().to_pylist(), zip(*inner, strict=True), strict=True)
        return [row if is_valid else None for is_valid, row in rows]

    def sql(text: str) -> str:
        values = ", ".join(each.sql(f"{text}[{at}]") for at, each in enumerate(parts, 1))
        return f"IF({text} IS NOT NULL, CAST(ROW({values}) AS row({kind})))"

    inner = ", ".join(f"{name} {each.json}" for name, each in zip(names, parts, strict=True))
    return Writer(f"row({kind})", cells, sql, f"row({inner})")


def _map(field: pa.Field) -> Writer:
    kind = field.type
    parts = (writer_of(kind.key_field), writer_of(kind.item_field))

    def cells(column: Any) -> Cells:
        keys = iter(parts[0].cells(pa.chunked_array([each.keys for each in column.chunks], kind.key_type)))
        items = iter(parts[1].cells(pa.chunked_array([each.items for each in column.chunks], kind.item_type)))
        counts = [None if entries is None else len(entries) for entries in column.to_pylist()]
        return [None if count is None else [(next(keys), next(items)) for _ in range(count)] for count in counts]

    def sql(text: str) -> str:
        entry = _inner(text)
        pair = ", ".join(each.sql(f"{entry}[{at}]") for at, each in enumerate(parts, 1))
        return f"map_from_entries(transform({text}, {entry} -> ROW({pair})))"

    return Writer(
        f"map({parts[0].kind}, {parts[1].kind})", cells, sql, f"array(row(k {parts[0].json}, v {parts[1].json}))"
    )


def _inner(text: str) -> str:
    """Give the name of what is within a value, by the value's SQL."""
    return "e_" + "".join(filter(str.isalnum, text))


def _is(*kinds: pa.DataType) -> Callable[[pa.DataType], bool]:
    return lambda kind: kind in kinds


def _plain(kind: str, cells: Callable[[Any], Cells] = _arrows) -> Callable[[pa.Field], Writer]:
    return lambda _field: _cast(kind, cells)


def _json_texts(column: Any) -> Cells:
    """Give texts that the server's parser does not change: it keeps doubles, and the last of equal names."""
    texts = _arrows(column)
    for row, text in enumerate(texts):
        if text is not None:
            try:
                json.loads(text, parse_float=_double, parse_constant=_refuse, object_pairs_hook=_object)
            except (ValueError, ArithmeticError, RecursionError):
                raise UnrepresentableError(row) from None
    return texts


def _double(text: str) -> None:
    if Decimal(text) != Decimal(repr(float(text))):
        _refuse(text)


def _object(pairs: Sequence[tuple[str, Any]]) -> None:
    if len(dict(pairs)) < len(pairs):
        _refuse(pairs)


def _refuse(value: object) -> None:
    raise ValueError(value)


TEXT = _cast("varchar", lambda column: column.to_pylist())
JSON = Writer("json", _json_texts, "json_parse({})".format)

_EXTENSIONS = {
    "arrow.uuid": _cast("uuid", _by(lambda value: str(UUID(bytes=value)))),
    "arrow.json": JSON,
}

_WRITERS: Sequence[tuple[Callable[[pa.DataType], bool], Callable[[pa.Field], Writer]]] = (
    (_is(pa.bool_()), _plain("boolean")),
    (_is(pa.int8()), _plain("tinyint")),
    (_is(pa.int16(), pa.uint8()), _plain("smallint")),
    (_is(pa.int32(), pa.uint16()), _plain("integer")),
    (_is(pa.int64(), pa.uint32()), _plain("bigint")),
    (_is(pa.uint64()), _plain("decimal(20,0)")),
    (_is(pa.float16(), pa.float32()), _plain("real", _by(_number))),
    (_is(pa.float64()), _plain("double", _by(_number))),
    (_is(pa.date32()), _plain("date")),
    (_is(pa.date64()), _plain("date", lambda column: _arrows(column.cast(pa.date32())))),
    (_is(pa.null()), _plain("varchar", lambda column: [None] * len(column))),
    (is_text, lambda _field: TEXT),
    (is_bytes, lambda _field: Writer("varbinary", _by(bytes.hex), "from_hex({})".format)),
    (pa.types.is_decimal, _decimal),
    (pa.types.is_timestamp, _timestamp),
    (pa.types.is_time, lambda field: _cast(f"time({_DIGITS[field.type.unit]})", _arrows)),
    (pa.types.is_map, _map),
    (pa.types.is_struct, _struct),
    (is_list, _list),
)
