"""No secret is in any text: what shows a session, what fails on its way, and what is warned of or logged."""

import asyncio
import re
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

import longshore
from tests.contract.conftest import Database
from tests.test_secrets import SECRET, check

pytestmark = pytest.mark.usefixtures("leaves_nothing")


@pytest.fixture
def user(database: Database) -> Iterator[str]:
    """Give a user whose password is the secret."""
    name = f"me_{uuid.uuid4().hex[:8]}"
    database.execute(*(statement.format(name=name, password=SECRET) for statement in database.quirks.users))
    yield name
    if database.quirks.no_users:
        database.execute(database.quirks.no_users.format(name=name))


def with_password(url: str, user: str, password: str = SECRET) -> str:
    """Return the URL as somebody with a password writes it."""
    return re.sub(r"//([^@/]*@)?", f"//{user}:{password}@", url, count=1)


def forms(database: Database, user: str) -> list[Any]:
    """Give the forms in which a password may be given, right and wrong ones."""
    bare = database.url.replace("//root@", "//").replace("//postgres@", "//")
    given = {"url": bare, "user": user}
    return [
        with_password(database.url, user),
        with_password(database.url, user, f"wrong-{SECRET}"),
        with_password(database.url, user, f"{SECRET}%zz"),
        with_password(database.url, user, f"{SECRET}/{SECRET}@{SECRET}:{SECRET}"),
        with_password(database.url, f"no_{user}"),
        with_password(re.sub(r"/[^/]*$", f"/{user}", database.url), user),
        with_password(re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:1", database.url), user),
        with_password(database.url, user) + "?nonsense=1",
        f"{database.url}?password={SECRET}",
        f"{database.url}?pasword={SECRET}",
        {**given, "password": SECRET},
        {**given, "password": lambda: SECRET},
        {**given, "password": f"wrong-{SECRET}"},
        {**given, "pasword": SECRET},
        {**given, "password": [SECRET]},
        {**given, "password": SECRET.encode()},
    ]


def shown(conn: Any) -> list[str]:
    """Return what a session shows of itself, open, in use, and closed."""
    with longshore.connect(conn, autocommit=True) as connection:
        check(lambda: connection.execute("SELECT nothing FROM nowhere_to_be_seen"))
        check(lambda: longshore.read_sql("SELECT 1 AS n", connection, return_type="arrow_stream"))
        texts = [repr(connection), str(connection), str(vars(connection))]
    return [*texts, repr(connection)]


def pooled(conn: Any) -> list[str]:
    """Return what a pool shows of itself."""
    with longshore.Pool(conn, size=1) as pool:
        check(lambda: longshore.read_sql("SELECT nothing FROM nowhere_to_be_seen", pool))
        return [repr(pool), str(pool), str(vars(pool))]


async def shown_in_asyncio(conn: Any) -> list[str]:
    """Return what a session of asyncio shows of itself."""
    async with await longshore.connect_async(conn) as connection:
        return [repr(connection), str(connection)]


USES: dict[str, Callable[[Any], Any]] = {
    "connect": shown,
    "pool": pooled,
    "connect_async": lambda conn: asyncio.run(shown_in_asyncio(conn)),
    "read_sql": lambda conn: longshore.read_sql("SELECT nothing FROM nowhere_to_be_seen", conn),
    "read in parts": lambda conn: longshore.read_sql("SELECT 1 AS n", conn, partition_num=2, return_type="arrow"),
    "write_sql": lambda conn: longshore.write_sql({"a": [1]}, "nowhere_to_be_seen", conn, if_exists="append"),
    "copy": lambda conn: longshore.copy("SELECT 1 AS a", conn, "nowhere_to_be_seen", conn, if_exists="append"),
    "schema": lambda conn: longshore.schema("SELECT nothing FROM nowhere_to_be_seen", conn),
}


@pytest.mark.costly
@pytest.mark.parametrize("use", USES)
def test_a_password_is_in_no_text(database: Database, user: str, use: str) -> None:
    for number, form in enumerate(forms(database, user)):
        check(partial(USES[use], form), f"form {number}")


def test_who_has_the_password_comes_in(database: Database, user: str) -> None:
    with database.can("a password"):
        assert database.rows("SELECT 7 AS n", with_password(database.url, user)) == [(7,)]
