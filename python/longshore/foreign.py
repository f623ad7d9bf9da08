"""Keywords of other libraries, and what to write here instead of each."""

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import Any, ParamSpec, TypeVar, cast

from longshore.options import Options
from longshore.texts import closest, display

P = ParamSpec("P")
R = TypeVar("R")

_NEEDLESS = "leave it out"
_CONN = "it is called conn here"

#: Of pandas' read_sql, ConnectorX's read_sql, polars' read_database and read_database_uri.
READ: Mapping[str, str] = {
    "sql": "it is called query here",
    "con": _CONN,
    "connection": _CONN,
    "connection_uri": _CONN,
    "uri": _CONN,
    "chunksize": 'give return_type="arrow_stream", and batch_size for the rows of a batch',
    "iter_batches": 'give return_type="arrow_stream"',
    "parse_dates": 'dates and times need nothing; for a column of texts give schema={"column": "timestamp[us]"}',
    "dtype": 'give schema={"column": "int64"} for a column, dtype_backend for all',
    "schema_overrides": 'give schema={"column": "int64"}',
    "infer_schema_length": f"{_NEEDLESS}: types follow the query's schema, never its rows",
    "columns": "name the columns in the query",
    "coerce_float": f'{_NEEDLESS}: numeric is float64 in pandas, and exact with dtype_backend="pyarrow"',
    "execute_options": "give params",
    "parameters": "it is called params here",
    "protocol": 'give options={"protocol": "binary"} or "text"',
    "strategy": f"{_NEEDLESS}: memory is handed over without a copy where the frame can take it",
    "engine": f"{_NEEDLESS}: the URL's scheme tells",
    "table_name": 'give the query "SELECT * FROM ..."',
}

#: Of pandas' to_sql, polars' write_database, and ADBC's ingest.
WRITE: Mapping[str, str] = {
    "name": "it is called table here",
    "table_name": "it is called table here",
    "con": _CONN,
    "connection": _CONN,
    "uri": _CONN,
    "df": "it is called data here",
    "frame": "it is called data here",
    "schema": 'give table as "schema.table" or ("schema", "table")',
    "db_schema_name": 'give table as "schema.table" or ("schema", "table")',
    "dtype": 'give types={"column": "numeric(10,2)"}, the database\'s own',
    "method": f"{_NEEDLESS}: rows go by the database's bulk path",
    "chunksize": "give batch_size",
    "index_label": 'give the index its name, frame.rename_axis("name"), and index=True',
    "if_table_exists": "it is called if_exists here",
    "mode": "it is called if_exists here",
    "engine": f"{_NEEDLESS}: the URL's scheme tells",
    "engine_options": f"{_NEEDLESS}, or give options",
}

COPY: Mapping[str, str] = {
    **{key: sentence for key, sentence in {**WRITE, **READ}.items() if key not in {"df", "frame", "schema"}},
    **dict.fromkeys(("conn", "con", "connection", "uri"), "copy has two of them, source and target"),
    "name": WRITE["name"],
    "table_name": WRITE["table_name"],
    "chunksize": f"{_NEEDLESS}: rows are written while they are read",
    "dtype": WRITE["dtype"],
    "return_type": f"{_NEEDLESS}: rows go into a table",
}

_KEYWORD = 'give conn={{"{}": ...}}, or a URL'
#: Of the drivers' connect and pools.
CONNECT: Mapping[str, str] = {
    **{key: _KEYWORD.format(key) for key in ("host", "port", "user", "password", "dbname", "database", "sslmode")},
    **dict.fromkeys(("url", "uri", "dsn", "con", "conninfo"), _CONN),
    "db": _KEYWORD.format("database"),
    "passwd": _KEYWORD.format("password"),
    "username": _KEYWORD.format("user"),
    **dict.fromkeys(("max_size", "maxsize", "pool_size"), "it is called size here"),
    **dict.fromkeys(("min_size", "minsize"), f"{_NEEDLESS}: a connection is opened when it is needed"),
    "isolation_level": "give autocommit, or execute SET TRANSACTION",
    "connect_timeout": "give timeout",
}


def refusing(
    foreign: Mapping[str, str], like: Callable[..., Any] | None = None
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Give a decorator that has a verb say of a keyword that it does not have what to write instead.

    ``like`` is the function whose keywords the verb has, where its own signature does not name them.
    """

    def decorate(verb: Callable[P, R]) -> Callable[P, R]:
        known = inspect.signature(like or verb).parameters.keys()

        def name(args: tuple[object, ...]) -> str:
            # A class may have the constructor of its base.
            return type(args[0]).__name__ if verb.__name__ == "__init__" else verb.__qualname__

        if inspect.iscoroutinefunction(verb):

            @functools.wraps(verb)
            async def call_async(*args: P.args, **keywords: P.kwargs) -> Any:
                if not known >= keywords.keys():
                    raise _unknown(name(args), keywords, known, foreign)
                return await verb(*args, **keywords)

            return cast("Callable[P, R]", call_async)

        @functools.wraps(verb)
        def call(*args: P.args, **keywords: P.kwargs) -> R:
            if not known >= keywords.keys():
                raise _unknown(name(args), keywords, known, foreign)
            return verb(*args, **keywords)

        # For its twin for asyncio.
        call.foreign = foreign  # type: ignore[attr-defined]
        return call

    return decorate


def _unknown(verb: str, given: Iterable[str], known: Iterable[str], foreign: Mapping[str, str]) -> TypeError:
    names = [name for name in given if name not in known]
    said = [f"{display(name)}{_instead(name, known, foreign)}" for name in names]
    argument = "argument" if len(names) == 1 else "arguments"
    an = "an " if len(names) == 1 else ""
    return TypeError(f"{verb}() got {an}unexpected keyword {argument} {'; '.join(said)}")


def _instead(name: str, known: Iterable[str], foreign: Mapping[str, str]) -> str:
    if name in foreign:
        return f": {foreign[name]}"
    if "options" in known and any(field.name == name for field in fields(Options)):
        return f': give options={{"{name}": ...}}'
    close = closest(name, known)
    return f": did you mean {close!r}?" if close else ""
