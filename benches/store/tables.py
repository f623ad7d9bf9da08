"""The tables, in each of their forms."""

import shutil
import subprocess
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

import longshore
from benches.lineitem import say, tpchgen
from tests.servers import cache

TABLES = ("region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem")
KEY = ["l_orderkey", "l_linenumber"]


def place() -> Path:
    """Return the directory of the store and of the other files."""
    return cache() / "store"


def parquet(name: str) -> Path:
    """Return the path of a table's rows as they were made."""
    return cache() / "tpch-parquet" / f"{name}.parquet"


def rows_of(name: str) -> pa.Table:
    """Return a table in memory, whose texts are utf8, as queries return them: pyarrow sorts and takes no views."""
    rows = pq.read_table(parquet(name))
    texts = [field.with_type(pa.string()) if field.type == pa.string_view() else field for field in rows.schema]
    return rows.cast(pa.schema(texts)).replace_schema_metadata(None)


def prepare() -> None:
    """Make the tables in each form; what is there stays."""
    missing = [name for name in TABLES if not parquet(name).exists()]
    if missing:
        command = [tpchgen(), "parquet", "--scale-factor=1", f"--tables={','.join(missing)}", "--quiet"]
        subprocess.run([*command, f"--output-dir={parquet('lineitem').parent}"], check=True)
    if place().exists():
        try:
            open_store().close()
        except longshore.OperationalError:
            # Of another format.
            shutil.rmtree(place())
        else:
            return
    new = place().with_suffix(".new")
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir()
    data = {name: rows_of(name) for name in TABLES}
    data["shipped"] = data["lineitem"].sort_by("l_shipdate")
    with longshore.open(new / "lake") as store, duckdb.connect(new / "tpch.duckdb") as connection:
        for name, rows in data.items():
            say(f"{name} into a store, and into DuckDB's file")
            store.write(name, rows)
            connection.register("rows", rows)
            connection.execute(f"CREATE TABLE {name} AS FROM rows")
        say("a table with a key")
        store.write("keyed", data["lineitem"], key=KEY)
        connection.execute(f"CREATE TABLE keyed AS FROM lineitem; ALTER TABLE keyed ADD PRIMARY KEY ({', '.join(KEY)})")
    longshore.write_sql(data["lineitem"], "keyed", f"sqlite:///{new / 'keyed.sqlite'}?mode=rwc", key=KEY)
    # The name is given last: what was cut short has another.
    new.rename(place())


def open_store() -> longshore.Store:
    """Open the store of all tables."""
    return longshore.open(place() / "lake")


def open_duckdb(*, read_only: bool = True) -> duckdb.DuckDBPyConnection:
    """Open DuckDB's file of all tables."""
    return duckdb.connect(place() / "tpch.duckdb", read_only=read_only)
