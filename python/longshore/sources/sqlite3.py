"""A connection of Python's own sqlite3, which the core calls itself."""

from typing import Any


def begin(connection: Any) -> None:
    """Begin the transaction that SQLAlchemy has told its caller of: the module itself would begin it with a change."""
    if not connection.in_transaction and connection.isolation_level is not None:
        connection.execute("BEGIN")


class PooledConnection:
    """A connection that an engine has lent, idle, for us alone; it goes back once nothing has it any longer.

    Each statement that we do not put into a transaction is one for itself, as it is by a URL.
    """

    def __init__(self, connection: Any, owner: Any) -> None:
        """Keep both."""
        vars(self).update(connection=connection, owner=owner)

    def cursor(self) -> Any:
        """Open a cursor whose statements begin no transaction."""
        return _Cursor(vars(self)["connection"])

    def __getattr__(self, name: str) -> Any:
        """Give what the connection has."""
        return getattr(vars(self)["connection"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set it on the connection."""
        setattr(vars(self)["connection"], name, value)

    def __del__(self) -> None:
        """Give it back."""
        vars(self)["owner"].close()


class _Cursor:
    """A cursor of Python's own."""

    def __init__(self, connection: Any) -> None:
        vars(self).update(connection=connection, cursor=connection.cursor())

    def execute(self, *statement: Any) -> Any:
        connection, cursor = vars(self)["connection"], vars(self)["cursor"]
        level = connection.isolation_level
        # Within a transaction, a change of it would commit.
        if level is None or connection.in_transaction:
            return cursor.execute(*statement)
        connection.isolation_level = None
        try:
            return cursor.execute(*statement)
        finally:
            connection.isolation_level = level

    def __getattr__(self, name: str) -> Any:
        return getattr(vars(self)["cursor"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(vars(self)["cursor"], name, value)
