"""Records the conversations that the Rust tests replay: `make record`, once a server has another version."""

import contextlib
import os
import subprocess

from tests.servers import MariaDB, MySQL, PostgreSQL

TABLE = "CREATE TABLE recorded (id int, word varchar(9))"
TEST = ["cargo", "test", "--package", "longshore-postgres", "--package", "longshore-mysql", "--test", "replay"]


def main() -> None:
    """Start the servers, and run the tests on what they say."""
    with contextlib.ExitStack() as stack:
        postgresql = stack.enter_context(PostgreSQL())
        postgresql.psql(TABLE)
        mariadb, mysql = stack.enter_context(MariaDB()), stack.enter_context(MySQL())
        for server in (mariadb, mysql):
            server.sql(TABLE)
        servers = {"POSTGRESQL": postgresql, "MARIADB": mariadb, "MYSQL": mysql}
        variables = {f"LONGSHORE_RECORD_{name}": f"{server.host}:{server.port}" for name, server in servers.items()}
        subprocess.run(TEST, env=os.environ | variables, check=True)


if __name__ == "__main__":
    main()
