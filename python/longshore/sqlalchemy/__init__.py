"""SQLAlchemy's dialects ``postgresql+longshore``, ``mysql+longshore``, ``mariadb+longshore`` and ``sqlite+longshore``.

An engine moves by its URL: ``create_engine("postgresql+longshore://user@host/database")``.
"""

from longshore.sqlalchemy.mysql import MariaDBDialect, MySQLDialect
from longshore.sqlalchemy.postgresql import PostgreSQLDialect
from longshore.sqlalchemy.sqlite import SQLiteDialect

__all__ = ["MariaDBDialect", "MySQLDialect", "PostgreSQLDialect", "SQLiteDialect"]
