"""TPC-H's lineitem in a private MariaDB, loaded once and kept in the cache; see `benches.lineitem`."""

import contextlib
import subprocess
from collections.abc import Iterator

from benches.lineitem import COLUMNS, TABLES, alone, buffers, say, tpchgen
from tests.servers import MariaDB, cache

LOAD = """
    LOAD DATA LOCAL INFILE '/dev/stdin' INTO TABLE {table}
    FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '"' LINES TERMINATED BY '\\n' IGNORE 1 LINES
"""


@contextlib.contextmanager
def measured_mariadb() -> Iterator[MariaDB]:
    """Start the MariaDB of the measurements, whose data stays in the cache. One run at a time has it."""
    data = cache() / "measured-mariadb" / "data"
    data.parent.mkdir(exist_ok=True)
    server = MariaDB(
        data=data,
        config={
            "innodb-buffer-pool-size": f"{buffers()}M",
            # Its data is kept, so it has to be right after a loss of power too.
            "innodb-flush-log-at-trx-commit": "1",
            "innodb-stats-persistent": "1",
        },
    )
    server.give(data.parent)
    with alone(data.parent.with_suffix(".lock")), server:
        yield server


def loaded(scale: float, server: MariaDB) -> str:
    """Return the URL of the database that holds the tables at this scale; where it is not there yet, load it."""
    database = f"tpch_{scale:g}".replace(".", "_")
    # A table is filled under another name: a load that was cut short leaves none of the right one.
    server.sql(f"CREATE DATABASE IF NOT EXISTS {database}")
    there = {name for (name,) in server.sql("SHOW TABLES", database=database)}
    for table, number in TABLES.items():
        if table not in there:
            say(f"loading {table} at scale factor {scale:g}")
            _load(scale, server, database, table, number)
    return server.url(database=database).replace("mariadb://", "mysql://", 1)


def _load(scale: float, server: MariaDB, database: str, table: str, number: str) -> None:
    new = f"{table}_loading"
    columns = f"{COLUMNS.format(number=number)}, PRIMARY KEY (l_orderkey, l_linenumber)"
    server.sql(f"DROP TABLE IF EXISTS {new}; CREATE TABLE {new} ({columns})", database=database)
    command = [tpchgen(), "csv", f"--scale-factor={scale:g}", "--tables=lineitem", "--stdout", "--quiet"]
    shell = [*server.shell, "--local-infile=1", "-e", LOAD.format(table=new), database]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as generator:
        subprocess.run(shell, stdin=generator.stdout, check=True)
    if generator.returncode:
        message = f"{' '.join(command)} ended with {generator.returncode}"
        raise RuntimeError(message)
    server.sql(f"RENAME TABLE {new} TO {table}; ANALYZE TABLE {table}", database=database)
