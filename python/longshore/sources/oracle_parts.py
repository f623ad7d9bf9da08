"""A read of Oracle in parts: a SELECT over one table, by ranges of ROWIDs or of a column, as of one SCN.

Any bounds make parts that are disjoint and exhaustive, as each has what those before it have left: so a sample of the
table's blocks tells them. The SCN stands in each part's text, so that no session has a state of its own.
"""

import contextlib
import datetime as dt
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from longshore import errors

if TYPE_CHECKING:
    from longshore.sources.oracle import Session

#: The queries of the SCN of all that is committed; each needs a privilege. TIMESTAMP_TO_SCN needs none, but its SCN may
#: be seconds old, and without what the caller has just written.
_SCN = ("SELECT DBMS_FLASHBACK.GET_SYSTEM_CHANGE_NUMBER FROM DUAL", "SELECT CURRENT_SCN FROM V$DATABASE")
_NO_SCN = "no SCN is told: the user needs EXECUTE on DBMS_FLASHBACK, or SELECT on V_$DATABASE"
#: A table whose rows are the same in each session, and have physical ROWIDs: no view, and none that a policy filters.
_TABLE = """SELECT t.owner, t.blocks FROM all_tables t WHERE t.table_name = :1
    AND t.owner = COALESCE(:2, SYS_CONTEXT('USERENV', 'CURRENT_SCHEMA')) AND t.iot_type IS NULL AND t.temporary = 'N'
    AND t.external = 'NO' AND t.nested = 'NO' AND NOT EXISTS (SELECT 1 FROM all_policies p
    WHERE p.object_owner = t.owner AND p.object_name = t.table_name)"""
_COLUMNS = "SELECT column_name, data_type FROM all_tab_cols WHERE owner = :1 AND table_name = :2"
_NOT_TABLE = "{} is not a table with blocks of its own (a view, a synonym, one organised by its index), or has a policy"
_NOT_SURE = "{} is not surely a column, or the same in each part; another name for a column needs AS"
_WORDS = """
    SELECT FROM WHERE ALL AS AND OR NOT IN IS NULL LIKE ESCAPE BETWEEN CASE WHEN THEN ELSE END CAST ROWID NUMBER FLOAT
    VARCHAR2 NVARCHAR2 CHAR NCHAR RAW BINARY_FLOAT BINARY_DOUBLE DATE TIMESTAMP INTERVAL TO WITH TIME ZONE AT YEAR MONTH
    DAY HOUR MINUTE SECOND LEADING TRAILING BOTH ABS ACOS ADD_MONTHS ASCII ASIN ATAN ATAN2 CEIL CHR COALESCE CONCAT COS
    DECODE EXP EXTRACT FLOOR GREATEST HEXTORAW INITCAP INSTR LAST_DAY LEAST LENGTH LENGTHB LN LOG LOWER LPAD LTRIM MOD
    MONTHS_BETWEEN NULLIF NUMTODSINTERVAL NUMTOYMINTERVAL NVL NVL2 POWER RAWTOHEX REGEXP_INSTR REGEXP_LIKE
    REGEXP_REPLACE REGEXP_SUBSTR REPLACE ROUND ROWIDTOCHAR RPAD RTRIM SIGN SIN SQRT SUBSTR SYS_EXTRACT_UTC TAN TO_CHAR
    TO_NUMBER TRANSLATE TRIM TRUNC UPPER
"""
#: The words of a plain SELECT that are no names, and the functions whose value depends on their arguments alone.
_KNOWN = frozenset(_WORDS.split())
#: The functions that take from today's date what a mask leaves out.
_DATES = frozenset({"TO_DATE", "TO_TIMESTAMP", "TO_TIMESTAMP_TZ"})
_WHOLE_DATE = re.compile(r"'(?=.*YYYY)(?=.*(?:MM|MON|DDD))", re.IGNORECASE)
#: Values of the clock, of the session or of the order of rows, whatever the table's columns are called.
_CHANGING = frozenset(
    {"CURRENT_DATE", "CURRENT_TIMESTAMP", "LOCALTIMESTAMP", "SYSDATE", "SYSTIMESTAMP"}
    | {"ROWNUM", "LEVEL", "ORA_ROWSCN", "USER", "UID"}
)
_WORD = re.compile(r"[^\W\d][\w$]*")
_NAME = re.compile(r'"([^"]+)"|([\w$]+)')
_ALIAS = re.compile(r'\s*(?:AS\s+)?("[^"]+"|[\w$]+)?\s*', re.IGNORECASE)
_NUMBER = re.compile(r"-?\d*\.?\d+(?:E[+-]?\d+)?")
_NUMBERS = frozenset({"NUMBER", "FLOAT", "BINARY_FLOAT", "BINARY_DOUBLE"})
_TEXTS = frozenset({"VARCHAR2", "CHAR", "NVARCHAR2", "NCHAR"})
_DATE = re.compile(r"DATE|TIMESTAMP\(\d\)")
_MASK = "SYYYY-MM-DD HH24:MI:SS"
#: The blocks that tell the bounds, the percents of a table of unknown size, and those that are as good as all.
_BLOCKS, _PERCENT, _MOST = 1000, 1, 50
#: The blocks, mostly of 8 KiB, that are worth a connection that no one has asked for.
_BLOCKS_OF_A_PART = 2048


class _NotSplitError(Exception):
    """The reason why a query is not read in parts."""


@dataclass(frozen=True)
class OneTable:
    """A SELECT over one table: the text before its name, the name, its alias, the condition, and the other tokens."""

    head: str
    name: str
    alias: str
    condition: str | None
    words: Sequence[str]

    def over(self, clause: str, condition: str) -> str:
        """Give the query over the table with a clause, of the rows that a condition holds for as well."""
        # A comment may end the condition's last line.
        own = "" if self.condition is None else f"({self.condition}\n) AND "
        return f"{self.head}{self.name}{clause}{self.alias} WHERE {own}{condition}"


@dataclass(frozen=True)
class Wanted:
    """The parts that are wanted: how many, or at most, and by which column and range, if not by ROWIDs."""

    number: int
    is_asked: bool
    on: str | None
    span: Sequence[Any] | None
    #: Whether all are of one SCN.
    sees_one: bool


@dataclass(frozen=True)
class _Table:
    """The dictionary's entry of a table: its name in full, its blocks where they are known, its columns' types."""

    name: str
    blocks: int | None
    columns: Mapping[str, str]


@dataclass(frozen=True)
class _Key:
    """A column that parts a table: its name in conditions, the text of a value, and the value of such a text."""

    column: str
    text: str
    value: str
    has_nulls: bool = True

    @classmethod
    def of(cls, name: str, native: str) -> "_Key | None":
        """Give a column as a key; None where no text tells the values of its type."""
        column = f'"{name}"'
        if native in _NUMBERS:
            return cls(column, "TO_CHAR({}, 'TM9', 'NLS_NUMERIC_CHARACTERS=''.,''')", "{}")
        if native in _TEXTS:
            return cls(column, "SUBSTR({}, 1, 100)", "'{}'")
        if _DATE.fullmatch(native):
            return cls(column, f"TO_CHAR({{}}, '{_MASK}')", f"TO_DATE('{{}}', '{_MASK}')")
        return None

    def conditions(self, texts: Sequence[str]) -> Iterator[str]:
        """Give the conditions of the parts between bounds; NULL is in the last."""
        before: list[str] = []
        for text in texts:
            bound = self.value.format(text.replace("'", "''"))
            yield " AND ".join([*before, f"{self.column} < {bound}"])
            before.append(f"{self.column} >= {bound}")
        last = " AND ".join(before)
        yield f"({last} OR {self.column} IS NULL)" if self.has_nulls else last


_ROWIDS = _Key("ROWID", "ROWIDTOCHAR({})", "CHARTOROWID('{}')", has_nulls=False)


def not_plain(session: "Session", query: OneTable) -> str | None:
    """Tell why a query may mean something else in another session, or do more than read; None where it does not."""
    try:
        _table(session, query)
    except _NotSplitError as reason:
        return str(reason)
    return None


def split(session: "Session", query: OneTable, wanted: Wanted) -> list[str] | str:
    """Give the texts of the parts, none where there are no bounds, or tell why there are none."""
    try:
        return _split(session, query, wanted)
    except _NotSplitError as reason:
        return str(reason)


def _split(session: "Session", query: OneTable, wanted: Wanted) -> list[str]:
    if session.has_settings:
        raise _NotSplitError("the session may have settings that others do not have")
    table = _table(session, query)
    if wanted.on is not None and wanted.on not in table.columns:
        raise _NotSplitError(f"partition_on is not a column of {query.name}")
    native = "" if wanted.on is None else table.columns[wanted.on]
    key = _ROWIDS if wanted.on is None else _Key.of(wanted.on, native)
    if key is None:
        raise _NotSplitError(f"a column of {native} does not part a read")
    number = wanted.number if wanted.is_asked else min(wanted.number, (table.blocks or 0) // _BLOCKS_OF_A_PART)
    bounds = _bounds(session, table, key, number) if wanted.span is None else _points(native, wanted.span, number)
    if not bounds:
        return []
    clause = f" AS OF SCN {_scn(session)}" if wanted.sees_one else ""
    parts = [query.over(clause, condition) for condition in key.conditions(bounds)]
    # What the server has against it, such as the privilege FLASHBACK on another's table, it tells now.
    with _telling("the parts cannot be prepared: {}"), session.running():
        session.open_cursor().parse(parts[0])
    return parts


@contextlib.contextmanager
def _telling(reason: str) -> Iterator[None]:
    """Make a reason of what the server has against a statement."""
    try:
        yield
    except (errors.OperationalError, errors.InterfaceError):
        raise
    except errors.DatabaseError as error:
        raise _NotSplitError(reason.format(error)) from None


def _scn(session: "Session") -> int:
    first, last = _SCN
    with contextlib.suppress(_NotSplitError), _telling(_NO_SCN):
        return int(_ask(session, first)[0][0])
    with _telling(_NO_SCN):
        return int(_ask(session, last)[0][0])


def _ask(session: "Session", query: str, params: Sequence[Any] = ()) -> list[Any]:
    with session.running():
        cursor = session.open_cursor()
        cursor.execute(query, list(params) or None)
        rows: list[Any] = cursor.fetchall()
    return rows


def _table(session: "Session", query: OneTable) -> _Table:
    """Give the table of a query whose other words mean the same in every session."""
    *owner, name = _names(query.name)
    alias = _ALIAS.fullmatch(query.alias)
    found = _ask(session, _TABLE, [name, owner[0] if owner else None]) if alias and len(owner) < 2 else []  # noqa: PLR2004
    if not found or alias is None:
        raise _NotSplitError(_NOT_TABLE.format(query.name))
    owned, blocks = found[0]
    columns = dict(_ask(session, _COLUMNS, [owned, name]))
    _check_words(query.words, columns, {name, *owner, *_names(alias[1] or "")})
    _check_dates(query.words)
    return _Table(f'"{owned}"."{name}"', blocks, columns)


def _names(text: str) -> list[str]:
    return [quoted or plain.upper() for quoted, plain in _NAME.findall(text)]


def _check_words(words: Sequence[str], columns: Mapping[str, str], tables: set[str]) -> None:
    """Refuse a word that may be a function without a parenthesis, a value of the session's, or another table."""
    if [word.upper() for word in words].count("SELECT") > 1:
        raise _NotSplitError("another SELECT is within it")
    for before, word, after in zip(["", *words], words, [*words[1:], ""], strict=False):
        is_quoted = word.startswith('"')
        if word in {"#", "@"}:
            raise _NotSplitError("a name has # or @")
        if not (is_quoted or _WORD.fullmatch(word)) or before == ":" or before.upper() == "AS":
            continue
        name = word.strip('"') if is_quoted else word.upper()
        is_column = name in columns and name not in _CHANGING and after != "("
        is_known = not is_quoted and before != "." and (name in _KNOWN or (name in _DATES and after == "("))
        if not (is_column or is_known or (name in tables and after == ".")):
            raise _NotSplitError(_NOT_SURE.format(word))


def _check_dates(words: Sequence[str]) -> None:
    """Refuse a date whose mask, after the parenthesis, a value and a comma, leaves the year or the month to today's."""
    for at, word in enumerate(words):
        mask = words[at + 4] if [*words[at + 1 : at + 2], *words[at + 3 : at + 4]] == ["(", ","] else ""
        if word.upper() in _DATES and not _WHOLE_DATE.match(mask):
            raise _NotSplitError(f"{word} without a mask of years and months may give another date in each part")


def _bounds(session: "Session", table: _Table, key: _Key, number: int) -> list[str]:
    """Give the texts of the bounds that part the table's rows evenly, as a sample of its blocks has them."""
    if number < 2:  # noqa: PLR2004  one part has no bound
        return []
    percent = _PERCENT if table.blocks is None else 100 * _BLOCKS / max(table.blocks, 1)
    samples = ["", f" SAMPLE BLOCK ({percent:.6f})"] if percent < _MOST else [""]
    found: list[Any] = []
    while samples and len(found) < number:
        ranked = (
            f"SELECT {key.column} AS k, NTILE({number}) OVER (ORDER BY {key.column}) AS part "  # noqa: S608  names in quotes
            f"FROM {table.name}{samples.pop()} WHERE {key.column} IS NOT NULL"
        )
        found = _ask(
            session,
            f"SELECT {key.text.format('MIN(k)')} AS bound FROM ({ranked}) GROUP BY part ORDER BY MIN(k)",  # noqa: S608
        )
    texts = ((row[0] or "").strip() for row in found[1:])
    # NaN and infinity are no bounds.
    is_bound = _NUMBER.fullmatch if key.value == "{}" else bool
    return [*dict.fromkeys(text for text in texts if is_bound(text))]


def _points(native: str, span: Sequence[Any], number: int) -> list[str]:
    """Give the texts of the points that divide a caller's range evenly."""
    is_number = native in _NUMBERS
    kinds = (int, float, Decimal) if is_number else (dt.date,) if _DATE.fullmatch(native) else ()
    if any(isinstance(each, bool) or not isinstance(each, kinds) for each in span):
        message = f"partition_range does not fit the type {native} of partition_on"
        hint = "give two numbers, two dates or two datetimes, as the column has them; or leave it out"
        raise errors.InterfaceError(message, hint=hint)
    low: Any
    high: Any
    low, high = (Decimal(each) if is_number else dt.datetime.fromisoformat(f"{each}") for each in span)
    if low > high:
        hint = "give the lowest value first: partition_range=(low, high)"
        raise errors.InterfaceError("partition_range ends before it begins", hint=hint)
    # A whole number takes a step: the last one belongs to the range.
    width = high - low + 1 if all(isinstance(each, int) for each in span) else high - low
    points = [low + width * part / number for part in range(1, number)]
    return [*dict.fromkeys(f"{point:.30g}" if is_number else f"{point:%Y-%m-%d %H:%M:%S}" for point in points)]
