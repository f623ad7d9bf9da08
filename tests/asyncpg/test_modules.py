"""Every module of asyncpg and every public name of it is under ours, and ours can stand in asyncpg's place."""

import importlib
import inspect
import pkgutil
import subprocess
import sys
from types import ModuleType

import asyncpg as original
import pytest

from longshore import asyncpg

pytestmark = [pytest.mark.packages, pytest.mark.pythons]

MODULES = [name for _, name, _ in pkgutil.walk_packages(original.__path__, "asyncpg.") if "_testbase" not in name]


def public(module: ModuleType) -> list[str]:
    """Give the names that a module offers."""
    return [name for name in getattr(module, "__all__", vars(module)) if not name.startswith("_")]


@pytest.mark.parametrize("name", ["asyncpg", *MODULES])
def test_public_names(name: str) -> None:
    theirs, ours = importlib.import_module(name), importlib.import_module(f"longshore.{name}")
    assert sys.modules[name] is theirs
    for each in public(theirs):
        there, here = getattr(theirs, each), getattr(ours, each)
        if inspect.isclass(there):
            assert issubclass(here, there), each
        elif inspect.ismodule(there):
            # Ours, where both packages have such a module and ours is asked for what is in it.
            assert here is there or here.__name__ == f"longshore.{there.__name__}", each
        else:
            assert here is there or here.__wrapped__ is there, each
    if theirs is not original and f"{asyncpg.__path__[0]}/{name.removeprefix('asyncpg.')}.py" != ours.__file__:
        assert ours is theirs
        assert theirs.__spec__ is not None
        assert theirs.__spec__.name == name


def test_names_that_programs_import() -> None:
    from longshore.asyncpg.exceptions import PostgresError, UniqueViolationError
    from longshore.asyncpg.protocol.protocol import Record
    from longshore.asyncpg.transaction import Transaction  # noqa: F401
    from longshore.asyncpg.types import Range  # noqa: F401

    from longshore.asyncpg.connection import Connection, connect  # noqa: F401
    from longshore.asyncpg.cursor import BaseCursor, Cursor, CursorIterator  # noqa: F401
    from longshore.asyncpg.pool import Pool, PoolAcquireContext, PoolConnectionProxy  # noqa: F401

    assert asyncpg.UniqueViolationError is UniqueViolationError is original.UniqueViolationError
    assert issubclass(UniqueViolationError, PostgresError)
    assert asyncpg.Record is Record is original.Record
    assert Connection is asyncpg.Connection
    assert Pool is asyncpg.Pool


def test_modules_that_neither_has() -> None:
    for name in ("longshore.asyncpg.nosuch", "longshore.asyncpg.protocol.nosuch"):
        with pytest.raises(ModuleNotFoundError, match=name):
            importlib.import_module(name)
    with pytest.raises(AttributeError, match="nosuch"):
        _ = asyncpg.pool.nosuch


@pytest.mark.parametrize("before", ["", "import asyncpg, asyncpg.cluster"])
def test_in_its_place(before: str, url: str) -> None:
    program = f"""
{before}
import sys
import longshore.asyncpg
sys.modules["asyncpg"] = longshore.asyncpg

import asyncio
import asyncpg
import asyncpg.exceptions
import asyncpg.cluster
import asyncpg.protocol.protocol
from asyncpg import pool, create_pool, Record
from asyncpg.exceptions import UniqueViolationError, DivisionByZeroError
from asyncpg.pool import PoolConnectionProxy
from asyncpg.transaction import Transaction
from asyncpg.types import Range

assert asyncpg is longshore.asyncpg
assert asyncpg.exceptions.UniqueViolationError is asyncpg.UniqueViolationError is UniqueViolationError
assert longshore.asyncpg.exceptions is asyncpg.exceptions
assert asyncpg.protocol.protocol.Record is asyncpg.Record is Record
assert asyncpg.cluster.Cluster and pool.Pool is asyncpg.Pool

async def work():
    query = asyncpg.set_query_dtype("SELECT 7", [("berth", "i4")])
    async with create_pool({url!r}, min_size=1, max_size=1) as pool:
        array, nulls = await pool.fetch(query)
        assert (array["berth"].tolist(), nulls) == ([7], [])
        async with pool.acquire() as connection, connection.transaction() as _:
            assert isinstance(connection, PoolConnectionProxy)
            assert isinstance(await connection.fetchrow("SELECT int4range(1, 2) AS r"), Record)
            assert isinstance(connection.transaction(), Transaction)
        try:
            await pool.fetch("SELECT 1 / 0")
        except DivisionByZeroError:
            print("done")

asyncio.run(work())
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("done\n", "")
