"""Types that a caller asks for by column, in the core's words."""

from collections.abc import Mapping
from typing import Any

from longshore.errors import InterfaceError

__all__ = ["column_name", "encodable", "wanted"]

_PYTHON = {bool: "bool", int: "int64", float: "float64", str: "string", bytes: "binary"}


def wanted(schema: Mapping[str, Any] | None) -> dict[str, Any]:
    """Give each type as its Arrow name, or as an object that hands an Arrow schema over.

    A type is a name as pyarrow prints it, a pyarrow type, a NumPy dtype or one of ``bool``, ``int``, ``float``,
    ``str``, ``bytes``. Raises ``InterfaceError`` for anything else, and for columns that are not named by texts.

    >>> wanted({"a": "decimal128(20, 4)", "b": float})
    {'a': 'decimal128(20, 4)', 'b': 'float64'}
    """
    if schema is None:
        return {}
    if not isinstance(schema, Mapping):
        message = f"schema is a dict from column to type, not {type(schema).__name__}"
        raise InterfaceError(message)
    return {_column(name): _type(name, kind) for name, kind in schema.items()}


def encodable(text: str, name: str) -> str:
    """Give ``text`` back; raises ``InterfaceError`` where UTF-8 has no form of it.

    >>> encodable("SELECT 1", "query")
    'SELECT 1'
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        message = f"{name} holds a lone surrogate, {text[error.start]!a}, at character {error.start + 1}: it is no text"
        raise InterfaceError(message) from error
    return text


def column_name(label: object) -> str:
    """Give a column's label as a name; raises ``InterfaceError`` for what no column can be called.

    >>> column_name("berth"), column_name(0)
    ('berth', '0')
    """
    name = encodable(str(label), "a column's name")
    if "\0" in name:
        message = f"the column {name!r} has a zero byte in its name, where Arrow's names end"
        raise InterfaceError(message)
    return name


def _column(name: object) -> str:
    if isinstance(name, str):
        return encodable(name, "a column of schema")
    message = f"schema names its columns by texts, not {name!r}"
    raise InterfaceError(message)


def _type(name: str, kind: Any) -> Any:
    if isinstance(kind, str):
        return encodable(kind, f"schema[{name!r}]")
    if hasattr(kind, "__arrow_c_schema__"):
        return kind
    if isinstance(kind, type) and kind in _PYTHON:
        return _PYTHON[kind]
    if type(kind).__module__.partition(".")[0] in {"numpy", "pandas"} or hasattr(kind, "dtype"):
        return _numpy(str(getattr(kind, "name", None) or getattr(kind, "__name__", kind)))
    if type(kind).__module__.startswith("pyarrow"):
        # pyarrow before 17 has the type, but not the capsule.
        return str(kind)
    message = f"schema[{name!r}] is {kind!r}; give a name such as 'int64', a pyarrow type or a NumPy dtype"
    raise InterfaceError(message)


def _numpy(name: str) -> str:
    if name.startswith("datetime64["):
        return f"timestamp[{name[11:-1]}]"
    return name.lower()
