"""The references of types, made of what really arrives: `python -m tests.conformance.generate` writes the pages.

Needs a PostgreSQL of the newest version, one with each extension, a MariaDB and a MySQL; see `tests.servers`.
"""

from contextlib import ExitStack

from tests.conformance import mysql, postgresql, sqlite
from tests.servers import Endpoint, MariaDB, MySQL, PostgreSQL


def main() -> None:
    """Write the pages."""
    with ExitStack() as stack:

        def start(needs: tuple[str, ...]) -> Endpoint:
            return stack.enter_context(PostgreSQL(needs=needs))

        postgresql.PAGE.write_text(postgresql.page(postgresql.Places(start(()), start).find))
        servers = {"MariaDB": stack.enter_context(MariaDB()), "MySQL": stack.enter_context(MySQL())}
        mysql.PAGE.write_text(mysql.page(lambda name: servers[name].url()))
        sqlite.PAGE.write_text(sqlite.page())


if __name__ == "__main__":
    main()
