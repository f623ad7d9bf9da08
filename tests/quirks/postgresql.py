"""PostgreSQL."""

import datetime as dt
from decimal import Decimal

import pyarrow as pa

from tests.cutter import postgresql_messages
from tests.quirks.columns import JSON, UUID
from tests.quirks.quirks import Column, Kind, Quirks, on_server

QUIRKS = Quirks(
    source="postgresql",
    listed_types=("integer", "character varying(50)", "numeric(10,2)"),
    check_columns=("id",),
    place=on_server("postgres"),
    types={
        "bool": Kind("boolean", pa.bool_()),
        # Signed, of 2, 4 and 8 bytes alone: the next that holds all values.
        "int8": Kind("smallint", pa.int16()),
        "uint8": Kind("smallint", pa.int16()),
        "int16": Kind("smallint", pa.int16()),
        "uint16": Kind("integer", pa.int32()),
        "int32": Kind("integer", pa.int32()),
        "uint32": Kind("bigint", pa.int64()),
        "int64": Kind("bigint", pa.int64()),
        "uint64": Kind("numeric(20,0)", pa.decimal128(20, 0), Decimal),
        "float32": Kind("real", pa.float32()),
        "float64": Kind("double precision", pa.float64()),
        "decimal": Kind("numeric(38,10)", pa.decimal128(38, 10)),
        "text": Kind("text", pa.string()),
        "binary": Kind("bytea", pa.binary()),
        "date": Kind("date", pa.date32()),
        "time": Kind("time", pa.time64("us")),
        "timestamp": Kind("timestamp", pa.timestamp("us")),
        "instant": Kind("timestamptz", pa.timestamp("us", "UTC")),
        "uuid": Kind("uuid", UUID),
        "json": Kind("json", JSON),
    },
    more={
        "oid": Column(pa.uint32(), (0, 2**32 - 1)),
        "xid8": Column(pa.uint64(), (0, 2**64 - 1)),
        "varchar(5)": Column(pa.string(), ("a", "abcde")),
        "timetz": Column(pa.string(), ("12:00:00+02", "00:00:00-01:30")),
        "inet": Column(pa.string(), ("::1", "10.0.0.0/8")),
        "int4range": Column(pa.string(), ("[1,5)", "empty")),
        "jsonb": Column(JSON, ('{"a": [1, null]}', "null")),
        "timestamptz": Column(
            pa.timestamp("us", "UTC"),
            (dt.datetime(1900, 1, 1, microsecond=1, tzinfo=dt.UTC), dt.datetime(9999, 12, 31, 23, 59, tzinfo=dt.UTC)),
        ),
        "int4[]": Column(pa.list_(pa.int32()), ([1, None], [])),
        "date[]": Column(pa.list_(pa.date32()), ([dt.date(2023, 1, 1), None], [])),
        "text[]": Column(pa.list_(pa.string()), (["a", None, ""], [])),
    },
    placeholder="${n}",
    series="WITH series AS (SELECT i FROM generate_series(1, {rows}) AS i)",
    computing="SELECT pg_sleep(60)::text AS t",
    # In the list of columns, or the server would make all rows before it sends the first.
    streaming="SELECT generate_series(1, 500000000) AS i, repeat('x', 100) AS t",
    running="SELECT count(*) AS n FROM pg_stat_activity "
    "WHERE query LIKE '%{marker}%' AND state <> 'idle' AND pid <> pg_backend_pid()",
    sessions="SELECT count(*) AS n FROM pg_stat_activity "
    "WHERE datname = current_database() AND pid <> pg_backend_pid()",
    session="SELECT pg_backend_pid() AS n",
    tables="SELECT relname::text AS n FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace",
    number="'{}'",
    plain="?sslmode=disable",
    users=("CREATE USER {name} SUPERUSER PASSWORD '{password}'",),
    no_users="DROP USER {name}",
    small="SELECT i, i::text AS t, 1.5::numeric(9,2) AS n, ARRAY[i, NULL] AS l, NULL::date AS d, "
    "(ARRAY['A','B']::\"char\"[])[1] AS c FROM generate_series(1, 5) AS i",
    messages=postgresql_messages,
    last_words={"down": 0, "up": 5},
    # A row becomes a notice, the end, a setting.
    masks=(0xFF, 0x0A, 0x1E, 0x17),
    binary="'\\x{}'",
)
