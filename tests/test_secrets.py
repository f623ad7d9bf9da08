"""No secret is in any text: whatever it is given in the place of, and whatever fails then."""

import asyncio
import inspect
import itertools
import logging
import pickle
import traceback
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pandas as pd
import pytest

import longshore
from tests.servers import Endpoint, MySQLEndpoint, free_port

SECRET = "s3cr3t-and-long"
PORT = free_port()
#: Refused at once: nothing listens there.
URL = f"postgresql://me:{SECRET}@127.0.0.1:{PORT}/harbour"
TEXTS = [
    URL,
    f"postgresql+psycopg2://me:{SECRET}@127.0.0.1:{PORT}/harbour",
    f"mysql://me:a/{SECRET} b@127.0.0.1:{PORT}/harbour",
    f"nosuch://me:{SECRET}@h/x",
    f"mariadb://me@127.0.0.1:{PORT}/harbour?password={SECRET}",
    f"host=127.0.0.1 port={PORT} password={SECRET}",
]


def forms() -> Iterator[Any]:
    """Give what somebody has a secret in, and may give by mistake."""
    yield from TEXTS
    yield {"host": "127.0.0.1", "port": PORT, "password": SECRET}
    yield {"url": URL}
    yield {"password": SECRET}
    yield pd.DataFrame({"a": [SECRET], URL: [1]})
    for text in TEXTS:
        yield {text: "int64"}
        yield {"a": text}
        yield [text]
        yield (text, "a")
        yield ("a", text)
        yield text.encode()


class Heard(logging.Handler):
    """The records that are logged."""

    def __init__(self) -> None:
        """Start with nothing."""
        super().__init__()
        self.records: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record."""
        self.records.append(record.getMessage())


def texts_of(error: BaseException | None) -> Iterator[str]:
    """Give every text that a failure carries, with its causes and what it came in the course of."""
    while error is not None:
        yield from (str(error), repr(error), repr(error.args), repr(vars(error)))
        yield from getattr(error, "__notes__", [])
        yield from traceback.format_exception(error)
        for below in (error.__cause__, error.__context__):
            if below is not None:
                yield from texts_of(below)
        error = None


def said_by(call: Callable[[], Any]) -> list[str]:
    """Give all texts that a call leaves, and the ``repr`` of what it gives."""
    heard = Heard()
    logging.getLogger().addHandler(heard)
    said: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            # A dict of arrays is the caller's data.
            said += [repr(given) for given in [call()] if not isinstance(given, dict | pd.DataFrame)]
        except Exception as error:  # noqa: BLE001  whatever it is
            said += texts_of(error)
        said += [str(warning.message) for warning in caught]
    logging.getLogger().removeHandler(heard)
    return said + heard.records


def check(call: Callable[[], Any], where: object = "") -> None:
    """See that a call shows no secret."""
    for text in said_by(call):
        assert SECRET not in text, (where, text)


def public() -> dict[str, Callable[..., Any]]:
    """Give every public function by its name, of a coroutine what runs it."""
    # Those of PEP 249's that make a value take numbers alone.
    others = {"load_ipython_extension", "DateFromTicks", "TimeFromTicks", "TimestampFromTicks"}
    found = {name: getattr(longshore, name) for name in longshore.__all__ if name not in others}
    return {name: _running(verb) for name, verb in found.items() if inspect.isfunction(verb)}


def _running(verb: Callable[..., Any]) -> Callable[..., Any]:
    return (lambda **given: asyncio.run(verb(**given))) if inspect.iscoroutinefunction(verb) else verb


def execute(method: str, **arguments: Any) -> Any:
    with longshore.connect("sqlite:///:memory:") as connection:
        return getattr(connection, method)(**arguments)


def frames(**arguments: Any) -> Any:
    with longshore.read_sql("SELECT 1 AS a", "sqlite:///:memory:", return_type="arrow_stream") as stream:
        return [repr(stream), next(iter(stream.pandas(**arguments))).shape]


VERBS: dict[str, Callable[..., Any]] = {
    **public(),
    "Pool": longshore.Pool,
    "AsyncPool": longshore.AsyncPool,
    "Options": longshore.Options,
    "Connection.execute": partial(execute, "execute"),
    "Stream.pandas": frames,
}
#: The usual value of an argument that has to be there.
USUAL: dict[str, Any] = {
    "query": "SELECT 1 AS a",
    "sql": "SELECT 1",
    "conn": URL,
    "data": {"a": [1]},
    "table": "t",
    "source": "sqlite:///:memory:",
    "target": URL,
    "partition_on": "a",
    "partition_num": 2,
    "path": "/proc/nothing/lake",
    "served": "/proc/nothing/lake",
}
#: The arguments without which another is not looked at.
ALONGSIDE: dict[str, dict[str, Any]] = {
    "partition_on": {"partition_num": 2},
    "partition_range": {"partition_on": "a", "partition_num": 2},
    "key": {"if_exists": "upsert"},
    "index_col": {"return_type": "pandas"},
    "dtype_backend": {"return_type": "pandas"},
}


def parameters_of(name: str) -> list[inspect.Parameter]:
    """Give the arguments of a verb; a coroutine's are those of the function whose name it has."""
    documented: Any = longshore
    for part in name.removesuffix("_async").split("."):
        documented = getattr(documented, part)
    kinds = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    found = inspect.signature(documented).parameters.values()
    return [each for each in found if each.kind not in kinds and each.name != "self"]


def usual_of(name: str) -> dict[str, Any]:
    """Give the arguments that a verb cannot do without."""
    required = [each.name for each in parameters_of(name) if each.default is inspect.Parameter.empty]
    return {argument: USUAL[argument] for argument in required}


@pytest.mark.parametrize("name", VERBS)
def test_in_any_argument(name: str) -> None:
    for parameter in parameters_of(name):
        for form in forms():
            given = {**usual_of(name), **ALONGSIDE.get(parameter.name, {}), parameter.name: form}
            check(partial(VERBS[name], **given), (parameter.name, form))


@pytest.mark.parametrize("name", ["read_sql", "write_sql", "copy"])
def test_in_any_order(name: str, url: str) -> None:
    usual = usual_of(name)
    for conn in (URL, "sqlite:///:memory:", url):
        for text in TEXTS:
            given = [{URL: text, USUAL["source"]: conn}.get(str(value), value) for value in usual.values()]
            for order in itertools.permutations(given):
                check(partial(VERBS[name], *order), order)


@pytest.mark.parametrize("scheme", ["postgresql", "mysql"])
@pytest.mark.parametrize("place", ["{}", "x/{}", "x@{}", "x@y?{}=z", "x?{}=z", "12?{}=z", "x/y?{}=z", "{}:{}", "x#{}"])
def test_a_password_that_is_not_encoded(scheme: str, place: str) -> None:
    url = f"{scheme}://me:{place.format(SECRET, SECRET)}@127.0.0.1:{PORT}/harbour"
    check(partial(longshore.connect, url))
    check(partial(longshore.connect, f"{url}?connect_timeout=1"))


@pytest.mark.parametrize(
    "url", [URL, "mysql://me@127.0.0.1/harbour", "sqlite:///harbour.db"], ids=["postgresql", "mysql", "sqlite"]
)
def test_a_zero_byte_behind_a_url(url: str) -> None:
    with pytest.raises(longshore.InterfaceError, match=r"the (database|path) in the URL holds a zero byte"):
        longshore.connect(f"{url}\0")


@pytest.mark.parametrize("verb", [VERBS[name] for name in public()])
def test_a_keyword(verb: Callable[..., Any]) -> None:
    for text in TEXTS:
        check(partial(verb, **{text: 1}), text)


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_a_query_that_is_a_connection_is_not_sent(
    text: str, postgres: Endpoint, mariadb: MySQLEndpoint, mysql: MySQLEndpoint
) -> None:
    for conn in (postgres.url(), mariadb.url(), mysql.url(), "sqlite:///:memory:"):
        for query in (text, f" {text}", [text]):
            with pytest.raises(longshore.InterfaceError, match=r"looks like a connection|not a URL"):
                longshore.read_sql(query, conn)
        with longshore.connect(conn) as connection:
            with pytest.raises(longshore.InterfaceError, match="query looks like a connection"):
                longshore.read_sql(text, connection)
            with pytest.raises(longshore.InterfaceError, match="the statement looks like"):
                connection.execute(text)
            with pytest.raises(longshore.InterfaceError, match="pre_execution_query looks like"):
                longshore.read_sql("SELECT 1", connection, pre_execution_query=text)


def test_no_table_has_a_password_for_a_name(tmp_path: Path) -> None:
    file = f"sqlite:///{tmp_path}/a.db?mode=rwc"
    for text in TEXTS:
        for table in (text, f'"main".{text}'):
            check(partial(longshore.write_sql, {"a": [1]}, table, file))
            with pytest.raises(longshore.InterfaceError, match="table looks like a connection"):
                longshore.write_sql({"a": [1]}, table, file)
            with pytest.raises(longshore.InterfaceError, match="table looks like a connection"):
                longshore.copy("SELECT 1 AS a", file, table, file)
    assert longshore.read_sql("SELECT name FROM sqlite_schema", file, return_type="numpy")["name"].tolist() == []


def test_names_may_be_urls(tmp_path: Path) -> None:
    file = f"sqlite:///{tmp_path}/a.db?mode=rwc"
    name = "https://example.org/ships#name"
    frame = pd.DataFrame({name: ["Ada"], "s3://bucket/tons": [7]})
    for if_exists in ("fail", "upsert"):
        types = {name: "varchar(20)"} if if_exists == "fail" else None
        longshore.write_sql(frame, '"https://example.org/a"', file, if_exists=if_exists, key=name, types=types)
    query = 'SELECT * FROM "https://example.org/a"'
    read = longshore.read_sql(query, file, index_col=name, schema={"s3://bucket/tons": "int8"})
    assert read["s3://bucket/tons"].to_dict() == {"Ada": 7}


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_sql_shows_no_secret(text: str) -> None:
    frame = pd.DataFrame({"a": [1]})
    for query in (f"SELECT * FROM '{text}'", f'SELECT * FROM "{text}"', f"SELECT * FROM read_csv('{text}')", text):
        check(lambda query=query: longshore.sql(query), query)  # type: ignore[misc]
    check(partial(longshore.sql, "SELECT 1 AS a", **{text: frame}))
    for attach in ({text: "sqlite:///:memory:"}, {"a": text}, {"a": {"url": text}}, text, [text]):
        check(lambda attach=attach: longshore.sql("SELECT * FROM a.t", attach=attach), attach)  # type: ignore[misc]


def test_what_a_server_quotes_is_masked(postgres: Endpoint, mariadb: MySQLEndpoint) -> None:
    url = f"postgresql://me:{SECRET}@host/x?password={SECRET}"
    check(lambda: longshore.read_sql(f"SELECT '{url}'::int", postgres.url()))
    check(lambda: longshore.read_sql(f"SELEC '{url}'", mariadb.url()))
    with pytest.raises(longshore.DataError, match=r"postgresql://me:\*\*\*@host/x\?password=\*\*\*"):
        longshore.read_sql(f"SELECT '{url}'::int", postgres.url())


def test_nothing_shows_the_password(postgres: Endpoint) -> None:
    connection = longshore.connect({"url": postgres.url(), "password": SECRET})
    pool = longshore.Pool({"url": postgres.url(), "password": SECRET})
    for shown in (connection, pool):
        assert SECRET not in repr(shown) + str(shown) + str(vars(shown))
        with pytest.raises(TypeError, match="cannot be pickled") as caught:
            pickle.dumps(shown)
        assert SECRET not in str(caught.value)
    assert repr(connection) == "<Connection postgresql://*** open>"
    connection.close()
    assert repr(connection) == "<Connection postgresql://*** closed>"
    pool.close()


@pytest.mark.parametrize("kind", [longshore.Connection, longshore.Pool])
def test_what_was_not_made_has_a_repr(kind: type[object]) -> None:
    assert repr(object.__new__(kind)) == f"<{kind.__name__} not open>"


def test_the_line_of_the_magic() -> None:
    shell = Mock(user_ns={})
    longshore.load_ipython_extension(shell)
    cell = shell.register_magic_function.call_args.args[0]
    for text in TEXTS:
        for line in (text, f"boats << {text}", f"'{text}'", f"attach={{'{text}': 1}}", f"attach={{'pg': '{text}'}}"):
            check(partial(cell, line, "SELECT 1 AS a"), line)
        check(partial(cell, f"--attach pg={text}", "SELECT * FROM pg.t"), text)
        check(partial(cell, "", text), text)
        check(partial(cell, text), text)
