"""MySQL, and what MariaDB shares with it."""

import datetime as dt
from typing import Any

import pyarrow as pa

import longshore
from tests.cutter import mysql_messages
from tests.quirks.columns import JSON
from tests.quirks.quirks import Column, Kind, Quirks, Refusal, on_server

LONGEST = dt.timedelta(hours=838, minutes=59, seconds=59)


def since_midnight(time: dt.time) -> dt.timedelta:
    """Return a time of day as MySQL's TIME arrives: a span."""
    return dt.timedelta(hours=time.hour, minutes=time.minute, seconds=time.second, microseconds=time.microsecond)


SHARED: dict[str, Any] = {
    "listed_types": ("int(11)", "varchar(50)", "decimal(10,2)"),
    "analyze": "ANALYZE TABLE {table}",
    "types": {
        "bool": Kind("tinyint(1)", pa.int8(), int),
        "int8": Kind("tinyint", pa.int8()),
        "uint8": Kind("tinyint unsigned", pa.uint8()),
        "int16": Kind("smallint", pa.int16()),
        "uint16": Kind("smallint unsigned", pa.uint16()),
        "int32": Kind("int", pa.int32()),
        "uint32": Kind("int unsigned", pa.uint32()),
        "int64": Kind("bigint", pa.int64()),
        "uint64": Kind("bigint unsigned", pa.uint64()),
        "float32": Kind("float", pa.float32()),
        "float64": Kind("double", pa.float64()),
        "decimal": Kind("decimal(38,10)", pa.decimal128(38, 10)),
        "text": Kind("longtext", pa.string()),
        "binary": Kind("longblob", pa.binary()),
        "date": Kind("date", pa.date32()),
        "time": Kind("time(6)", pa.duration("us"), since_midnight),
        "timestamp": Kind("datetime(6)", pa.timestamp("us")),
        "instant": Kind("timestamp(6) NULL", pa.timestamp("us", "UTC")),
        "uuid": Kind("binary(16)", pa.binary(), lambda value: value.bytes),
        "json": Kind("json", JSON),
    },
    "more": {
        "tinyint(1)": Column(pa.int8(), (0, 2)),
        "mediumint unsigned": Column(pa.uint32(), (0, 2**24 - 1)),
        "bit(64)": Column(pa.uint64(), (0, 2**64 - 1)),
        "year": Column(pa.int16(), (1901, 2155)),
        "varchar(50)": Column(pa.string(), ("", "ä€𝄞")),
        "enum('a','ö')": Column(pa.string(), ("a", "ö")),
        "set('a','ö')": Column(pa.string(), ("", "a,ö")),
        "time": Column(pa.duration("us"), (-LONGEST, LONGEST)),
    },
    "computing": "SELECT sleep(60) AS s",
    "running": "SELECT count(*) AS n FROM information_schema.processlist "
    "WHERE info LIKE '%{marker}%' AND id <> connection_id()",
    "sessions": "SELECT count(*) AS n FROM information_schema.processlist "
    "WHERE db = database() AND id <> connection_id()",
    "session": "SELECT connection_id() AS n",
    "tables": "SELECT table_name AS n FROM information_schema.tables WHERE table_schema = database()",
    "instant": "%Y-%m-%d %H:%M:%S.%f",
    "quote": "`",
    "plain": "?ssl-mode=DISABLED",
    "users": ("CREATE USER {name} IDENTIFIED BY '{password}'", "GRANT ALL ON *.* TO {name}"),
    "no_users": "DROP USER {name}",
    "small": "SELECT n.i, concat('t', n.i) AS t, CAST(1.5 AS DECIMAL(9,2)) AS d, nullif(n.i, 2) AS m, "
    "DATE '2024-02-29' AS day FROM (SELECT 1 AS i UNION ALL SELECT 2 UNION ALL SELECT 3) AS n",
    "messages": mysql_messages,
    # What closes a statement has no answer; the greeting has a digit more or less.
    "last_words": {"down": 11, "up": 16},
    "masks": (0xFF, 0xFE, 0x01, 0x80),
    "cannot": {
        "a temporary table for rows": Refusal("no temporary table for rows"),
        "partitions of one snapshot": Refusal("no snapshot that other processes can join"),
        "types of parameters": Refusal("how many there are, and not their types"),
        "float32 as text": Refusal("the server rounds FLOAT to six digits in its text protocol"),
        # The server sends the columns along with the first rows.
        "a stream before its first row": Refusal("no answer within", longshore.TimeoutError),
        "a new table in a transaction": Refusal("would commit the open transaction", longshore.ProgrammingError),
    },
}
THOUSAND = "WITH RECURSIVE digits (d) AS (SELECT 0 UNION ALL SELECT d + 1 FROM digits WHERE d < 999)"
SERIES = f"{THOUSAND}, series AS (SELECT h.d * 1000 + l.d + 1 AS i FROM digits AS h, digits AS l"

QUIRKS = Quirks(
    source="mysql",
    place=on_server("mysql"),
    series=SERIES + " WHERE h.d <= {rows} DIV 1000 AND h.d * 1000 + l.d < {rows})",
    streaming=f"{THOUSAND} SELECT a.d AS i, repeat('x', 100) AS t FROM digits AS a, digits AS b, digits AS c",
    together={"lock": True},
    **SHARED
    # Its own plugin sends no password without encryption.
    | {"users": ("CREATE USER {name} IDENTIFIED WITH mysql_native_password BY '{password}'", SHARED["users"][1])}
    | {
        "cannot": SHARED["cannot"]
        | {
            "uuid as a parameter": Refusal("Data too long", longshore.DataError),
            "RETURNING": Refusal("an error in your SQL syntax", longshore.ProgrammingError),
        }
    },
)
