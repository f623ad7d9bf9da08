"""Tables whose values are those that databases disagree on."""

import random
from collections.abc import Sequence

__all__ = ["COLUMNS", "MYSQL", "POSTGRESQL", "SQLITE", "mysql", "postgresql", "sqlite"]

ROWS = 240

#: By column: its type, and values as SQL. NULL comes too.
Columns = dict[str, tuple[str, Sequence[str]]]

_WORDS = [
    *["a", "A", "á", "Á", "b", "B", "ss", "ß", "ä", "ae", "Z", "z", "", " ", "a ", " a", "a%", "a_", "100", "1e2", "1"],
    *["NULL", "o''clock", "ﬀ", "日本", "💧", "a\tb"],
]
_TEXTS = [f"'{word}'" for word in _WORDS]
_INTEGERS = ["0", "1", "-1", "2", "5", "7", "7", "100"]
_DATES = ["'1969-12-31'", "'1970-01-01'", "'2024-02-29'", "'2024-03-01'", "'0001-01-01'", "'9999-12-31'"]
_STAMPS = [
    *["'2024-02-29 00:00:00'", "'2024-02-29 00:00:00.000001'", "'2024-02-29 23:59:59.999999'"],
    *["'1969-12-31 23:59:59.5'", "'2024-03-31 02:30:00'", "'0001-01-01 00:00:00'", "'9999-12-31 23:59:59'"],
]
_PRICES = ["0", "0.000", "1.005", "-1.005", "1.5", "2.5", "99999999.999", "-99999999.999", "0.001"]

POSTGRESQL: Columns = {
    "small": ("int2", [*_INTEGERS, "32767", "-32768"]),
    "num": ("int4", [*_INTEGERS, "2147483647", "-2147483648"]),
    "big": ("int8", [*_INTEGERS, "9223372036854775807", "-9223372036854775808", "9007199254740993"]),
    "price": ("numeric(12,3)", _PRICES),
    "wide": ("numeric(38,10)", [*_PRICES, "1234567890123456789012345678.0123456789"]),
    "free": ("numeric", ["1", "1.0", "1.00", "2.5"]),
    "single": ("float4", ["0.1", "1.5", "'NaN'", "'Infinity'", "'-0'", "0"]),
    "dbl": ("float8", ["0.1", "1.5", "'NaN'", "'NaN'", "'Infinity'", "'-Infinity'", "'-0'", "0", "5e-324"]),
    "flag": ("bool", ["true", "false"]),
    "day": ("date", _DATES),
    "stamp": ("timestamp", _STAMPS),
    "instant": ("timestamptz", [f"{stamp[:-1]}+00'" for stamp in _STAMPS] + ["'2024-02-29 01:00:00+01'"]),
    "key": ("uuid", ["'00000000-0000-0000-0000-000000000000'", "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'"]),
    "word": ("text", _TEXTS),
    "other": ('varchar(20) COLLATE "C"', _TEXTS),
    "padded": ("char(8)", _TEXTS),
    "kind": ("mood", ["'sad'", "'Happy'", "'ok'"]),
    "doc": ("jsonb", ["'1'", "'null'", "'{\"a\": 1}'"]),
    "bytes": ("bytea", [r"'\x00'", r"'\xff'", "''"]),
    "Mixed": ("int4", _INTEGERS),
    "list": ("int4[]", ["'{1,2}'", "'{}'", "'{NULL}'"]),
}
MYSQL: Columns = {
    "tiny": ("tinyint", _INTEGERS),
    "flag": ("tinyint(1)", ["0", "1"]),
    "num": ("int", [*_INTEGERS, "2147483647", "-2147483648"]),
    "big": ("bigint unsigned", ["0", "1", "5", "7", "18446744073709551615", "9223372036854775808"]),
    "price": ("decimal(12,3)", _PRICES),
    "single": ("float", ["0.1", "1.5", "0"]),
    "dbl": ("double", ["0.1", "1.5", "-0.0", "0", "1e300"]),
    "day": ("date", ["'1969-12-31'", "'2024-02-29'", "'9999-12-31'", "'0000-00-00'"]),
    "stamp": ("datetime(6)", ["'2024-02-29 00:00:00'", "'2024-02-29 00:00:00.000001'", "'0000-00-00 00:00:00'"]),
    "instant": ("timestamp(6) NULL", ["'2024-02-29 00:00:00'", "'1970-01-02 00:00:00.5'"]),
    "word": ("varchar(20)", _TEXTS),
    "other": ("varchar(20) COLLATE utf8mb4_bin", _TEXTS),
    "latin": ("varchar(20) CHARACTER SET latin1", ["'a'", "'A'", "'á'", "'ß'", "'a '", "''"]),
    "padded": ("char(8)", _TEXTS),
    "kind": ("enum('sad','Happy','ok')", ["'sad'", "'Happy'", "'ok'"]),
    "year": ("year", ["2024", "1999", "0"]),
    "bits": ("bit(3)", ["5", "0"]),
    "doc": ("json", ["'1'", "'null'"]),
}
SQLITE: Columns = {
    "num": ("INTEGER", [*_INTEGERS, "9223372036854775807", "-9223372036854775808"]),
    "dbl": ("REAL", ["0.1", "1.5", "-0.0", "0", "9e999", "5e-324"]),
    "word": ("TEXT", _TEXTS),
    "other": ("TEXT COLLATE NOCASE", _TEXTS),
    "bytes": ("BLOB", ["x'00'", "x'ff'", "x''"]),
}
COLUMNS: dict[str, Columns] = {"pg": POSTGRESQL, "my": MYSQL, "my8": MYSQL, "lite": SQLITE}


def postgresql(table: str) -> str:
    """Give the statements that make the table in PostgreSQL."""
    return _script(table, POSTGRESQL, '"')


def mysql(table: str) -> str:
    """Give the statements that make the table in MySQL and MariaDB."""
    return f"SET SESSION sql_mode = ''; {_script(table, MYSQL, '`')}"


def sqlite(table: str, *, strict: bool) -> str:
    """Give the statements that make the table in SQLite."""
    return _script(table, SQLITE, '"', " STRICT" if strict else "")


def _script(table: str, columns: Columns, quote: str, ending: str = "") -> str:
    dice = random.Random(7)  # noqa: S311  no secret
    declared = ", ".join(f"{quote}{name}{quote} {kind}" for name, (kind, _) in columns.items())
    rows = [_row(at, columns, dice) for at in range(ROWS)]
    return (
        f"CREATE TABLE {table} (id int PRIMARY KEY, {declared}){ending};\nINSERT INTO {table} VALUES {', '.join(rows)};"
    )


def _row(at: int, columns: Columns, dice: random.Random) -> str:
    values = ["NULL" if dice.random() < 0.15 else dice.choice(values) for _, values in columns.values()]
    return f"({at}, {', '.join(values)})"
