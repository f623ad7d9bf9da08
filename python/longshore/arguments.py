"""The arguments that callers give to several verbs: their types, and their checks."""

import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Literal, TypedDict, TypeGuard

from longshore.errors import InterfaceError
from longshore.options import Options
from longshore.progress import Progress
from longshore.target import SQLAlchemyText
from longshore.texts import display, name_text, quoted_name, statement_text, table_text

Backend = Literal["numpy", "numpy_nullable", "pyarrow"]
Query = str | SQLAlchemyText | Sequence[str | SQLAlchemyText]
Number = int | Literal["auto"]
IfExists = Literal["fail", "append", "replace", "truncate", "upsert"]

#: A part of a name; a quotation that does not end is none.
_PART = re.compile(r'"(?P<quoted>(?:[^"]|"")*+)"|(?P<plain>[^".][^.]*|(?=\.|\Z))')
_IN_QUOTES = re.compile(r'"(?:[^"]|"")*"')


class Shared(TypedDict, total=False):
    """The arguments that every return type takes."""

    params: Sequence[Any] | Mapping[str, Any] | None
    schema: Mapping[str, Any] | None
    partition_on: str | None
    partition_num: Number | None
    partition_range: tuple[Any, Any] | None
    batch_size: int | None
    pre_execution_query: str | Sequence[str] | None
    timeout: float | None
    progress: bool | Callable[[Progress], object]
    options: Mapping[str, Any] | Options | None


class ForPandas(Shared, total=False):
    """Those and pandas' own."""

    dtype_backend: Backend | None
    index_col: str | Sequence[str] | None


def statements(given: object, name: str) -> list[str]:
    """Give a list of statements; raises ``InterfaceError`` for what is neither a text nor a list of texts."""
    if given is None and name != "query":
        return []
    if isinstance(given, str):
        return [statement_text(given, name)]
    if is_list_of_texts(given):
        return [statement_text(statement, name) for statement in given]
    raise InterfaceError(f"{name} is a text or a list of texts, not {type(given).__name__}")


def without_clauses(query: Any, params: Any) -> tuple[Any, Any]:
    """Give each ``sqlalchemy.text()`` in ``query`` as its text, and what is bound to it in ``params``, which win."""
    # Whoever has one has imported its module.
    elements = sys.modules.get("sqlalchemy.sql.elements")
    queries = query if isinstance(query, list | tuple) else [query]
    if elements is None or not any(isinstance(one, elements.TextClause) for one in queries):
        return query, params
    compiled = [one.compile() if isinstance(one, elements.TextClause) else one for one in queries]
    binds = [bind for one in compiled for bind in getattr(one, "binds", {}).items()]
    values = {name: bind.value for name, bind in binds if not bind.required}
    if values and (params is None or isinstance(params, Mapping)):
        params = {**values, **(params or {})}
    texts = [str(one) for one in compiled]
    return (texts if queries is query else texts[0]), params


def is_list_of_texts(given: object) -> TypeGuard[Sequence[str]]:
    """Whether ``given`` is a sequence of texts."""
    return isinstance(given, Sequence) and all(isinstance(text, str) for text in given)


def core_params(params: object) -> object:
    """Give parameters in a form that the core takes; raises ``InterfaceError`` for what has no order or no names."""
    if params is None:
        return None
    if isinstance(params, Mapping):
        if foreign := [name for name in params if not isinstance(name, str)]:
            raise InterfaceError(f"params names its values by texts, not {display(foreign[0])}")
        return {name_text(name, "a name in params"): value for name, value in params.items()}
    # A frame gives its columns' names.
    if not isinstance(params, Sequence) and hasattr(params, "columns"):
        raise InterfaceError(
            f"params is a list, a tuple or a dict, not {type(params).__name__}; write params=list(frame['column'])"
        )
    # A set has no order, and a text would be taken apart into letters.
    if isinstance(params, str | bytes | AbstractSet) or not hasattr(params, "__iter__"):
        raise InterfaceError(f"params is a list, a tuple or a dict, not {type(params).__name__}; write params=[value]")
    return params


def seconds(timeout: object) -> float | None:
    """Give a time-out in seconds; raises ``InterfaceError`` for what is none."""
    if timeout is None:
        return None
    if isinstance(timeout, int | float) and not isinstance(timeout, bool) and timeout >= 0:
        return float(timeout)
    raise InterfaceError(f"timeout is a number of seconds, zero or more, not {display(timeout)}")


def lease_time(lease: object) -> float:
    """Give the seconds of a lease; raises ``InterfaceError`` for what is none."""
    if isinstance(lease, int | float) and not isinstance(lease, bool) and 0 < lease <= _LONGEST_LEASE:
        return float(lease)
    message = f"lease is a number of seconds above zero, a day at most, not {display(lease)}"
    raise InterfaceError(
        message, hint="a snapshot that is kept has the server keep every row that is deleted meanwhile"
    )


_PYTHON = {bool: "bool", int: "int64", float: "float64", str: "string", bytes: "binary"}


def schema_types(schema: Mapping[str, Any] | None) -> dict[str, Any]:
    """Give each type as its Arrow name, or as an object that hands an Arrow schema over.

    A type is a name as pyarrow prints it, a pyarrow type, a NumPy dtype or one of ``bool``, ``int``, ``float``,
    ``str``, ``bytes``. Raises ``InterfaceError`` for anything else, and for columns that are not named by texts.

    >>> schema_types({"a": "decimal128(20, 4)", "b": float})
    {'a': 'decimal128(20, 4)', 'b': 'float64'}
    """
    if schema is None:
        return {}
    if not isinstance(schema, Mapping):
        raise InterfaceError(f"schema is a dict from column to type, not {type(schema).__name__}")
    return {_schema_column(name): _type(name, kind) for name, kind in schema.items()}


def _schema_column(name: object) -> str:
    if isinstance(name, str):
        return name_text(name, "a column of schema")
    raise InterfaceError(f"schema names its columns by texts, not {display(name)}")


def _type(name: str, kind: Any) -> Any:
    if isinstance(kind, str):
        return name_text(kind, f"schema[{name!r}]")
    if hasattr(kind, "__arrow_c_schema__"):
        return kind
    if isinstance(kind, type) and kind in _PYTHON:
        return _PYTHON[kind]
    if type(kind).__module__.partition(".")[0] in {"numpy", "pandas"} or hasattr(kind, "dtype"):
        numpy = str(getattr(kind, "name", None) or getattr(kind, "__name__", kind))
        return f"timestamp[{numpy[11:-1]}]" if numpy.startswith("datetime64[") else numpy.lower()
    if type(kind).__module__.startswith("pyarrow"):
        # pyarrow before 17 has the type, but not the capsule.
        return str(kind)
    message = f"schema[{name!r}] is {display(kind)}; give a name such as 'int64', a pyarrow type or a NumPy dtype"
    raise InterfaceError(message)


#: Parts that no one asked for by number: more than this wins nothing, and servers have other clients.
_MOST = 8
#: A list's queries are read this many at once even where there are fewer cores: the server works, too.
_LIST = 4
#: A caller may ask for more parts than any server has connections, but not for a number that is a mistake.
_LIMIT = 4096
_ENDS = 2


class Partition(TypedDict):
    """A split: the parts that the caller wants, or the most that the source may choose, and by which column."""

    number: int | None
    most: int | None
    automatic: bool
    on: str | None
    range: tuple[Any, Any] | None


#: A day.
_LONGEST_LEASE = 86_400
#: One part, unless more is said.
UNSPLIT = Partition(number=None, most=None, automatic=False, on=None, range=None)


def partition(query: object, on: str | None, number: Number | None, range_: Sequence[Any] | None) -> Partition | None:
    """Give the split that the arguments ask for; None for a read over one connection.

    Raises ``InterfaceError`` for arguments that contradict each other.
    """
    on, number = _column(on), _number(number)
    ends = _ends(range_, on)
    queries = 1 if isinstance(query, str) or not isinstance(query, Sequence) else len(query)
    if queries != 1 and on is not None:
        raise InterfaceError("a list of queries is its own partitioning: give either the list or partition_on")
    if number is None and queries > 1:
        return {**UNSPLIT, "most": min(queries, max(_LIST, _cores()))}
    if on is None and number in {None, 1}:
        return None
    if isinstance(number, int):
        return {**UNSPLIT, "number": number, "on": on, "range": ends}
    return {**UNSPLIT, "most": min(_MOST, _cores()), "on": on, "range": ends}


def automatic() -> Partition:
    """Give the split of a whole result for which no one asked: a source whose readers burden no one may take it."""
    return {**UNSPLIT, "most": min(_MOST, _cores()), "automatic": True}


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _column(on: object) -> str | None:
    if on is None:
        return None
    if isinstance(on, str):
        return name_text(on, "partition_on")
    raise InterfaceError(f"partition_on is the name of a column of the result, not {display(on)}")


def _number(number: object) -> Number | None:
    if number is None:
        return None
    # An array would be compared element by element.
    if isinstance(number, str) and number == "auto":
        return "auto"
    if isinstance(number, int) and not isinstance(number, bool) and 0 < number <= _LIMIT:
        return number
    raise InterfaceError(f'partition_num is a number of parts from 1 to {_LIMIT}, or "auto", not {display(number)}')


def _ends(range_: object, on: str | None) -> tuple[Any, Any] | None:
    if range_ is None:
        return None
    if on is None:
        raise InterfaceError("partition_range needs partition_on: the column whose values it tells")
    if not isinstance(range_, Sequence) or isinstance(range_, str) or len(range_) != _ENDS:
        raise InterfaceError(f"partition_range is the column's lowest and highest value, not {display(range_)}")
    for end in range_:
        if isinstance(end, str):
            name_text(end, "partition_range")
    return (range_[0], range_[1])


def table_name(given: object) -> tuple[str | None, str]:
    """Give a table's schema, if it has one, and its name.

    >>> table_name("boats"), table_name('harbour."boats.old"'), table_name(("harbour", "boats"))
    ((None, 'boats'), ('harbour', 'boats.old'), ('harbour', 'boats'))

    Raises ``InterfaceError`` for what names no table.
    """
    if isinstance(given, str):
        table_text(_IN_QUOTES.sub("", given), "table")
        parts = _parts(given)
    elif isinstance(given, tuple) and is_list_of_texts(given):
        parts = list(given)
    else:
        raise InterfaceError(f"table is a name or a pair of schema and name, not {display(given)}")
    if not all(parts) or any("\0" in part for part in parts):
        raise InterfaceError(f"{display(given)} names no table: a part of it is empty, or holds a zero byte")
    match [name_text(part, "the table's name") for part in parts]:
        case [name]:
            return None, name
        case [schema, name]:
            return schema, name
        case _:
            message = f"{display(given)} has {len(parts)} parts; write a name with a dot in double quotes: '\"a.b\"'"
            raise InterfaceError(message)


def exact_name(table: str, schema: str | None) -> str | tuple[str, str]:
    """Give a table's name whose dots and quotes are its own."""
    return (schema, table) if schema is not None else quoted_name(table)


def _parts(text: str) -> list[str]:
    """Take a name apart at its dots; what is in double quotes is one part, in which two of them are one."""
    parts: list[str] = []
    at = 0
    while (found := _PART.match(text, at)) is not None:
        parts.append(found["plain"] if found["quoted"] is None else found["quoted"].replace('""', '"'))
        at = found.end() + 1
        if found.end() == len(text):
            return parts
        if text[found.end()] != ".":
            raise InterfaceError(f"{display(text)} names no table: after the closing quote comes a dot or the end")
    raise InterfaceError(f"{display(text)} names no table: a double quote is not closed")
