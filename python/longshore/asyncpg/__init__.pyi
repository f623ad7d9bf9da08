from typing import Any

from longshore.asyncpg.connection import Connection as Connection
from longshore.asyncpg.connection import connect as connect
from longshore.asyncpg.dtypes import DTypeError as DTypeError
from longshore.asyncpg.dtypes import Query as Query
from longshore.asyncpg.dtypes import set_query_dtype as set_query_dtype
from longshore.asyncpg.pool import Pool as Pool
from longshore.asyncpg.pool import create_pool as create_pool

# All else, modules too, is asyncpg's.
def __getattr__(name: str) -> Any: ...
