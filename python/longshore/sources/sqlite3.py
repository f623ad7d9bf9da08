"""A connection of Python's own sqlite3, which the core calls itself."""

from typing import Any


def scheme(_connection: object) -> str:
    """Give the scheme of SQLite."""
    return "sqlite"


def begin(connection: Any) -> None:
    """Begin the transaction that SQLAlchemy has told its caller of: the module itself would begin it with a change."""
    if not connection.in_transaction and connection.isolation_level is not None:
        connection.execute("BEGIN")


class Lent:
    """A connection that an engine has lent; it goes back once nothing has it any longer."""

    def __init__(self, connection: Any, lender: Any) -> None:
        """Keep both."""
        vars(self).update(connection=connection, lender=lender)

    def __getattr__(self, name: str) -> Any:
        """Give what the connection has."""
        return getattr(vars(self)["connection"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set it on the connection."""
        setattr(vars(self)["connection"], name, value)

    def __del__(self) -> None:
        """Give it back."""
        vars(self)["lender"].close()
