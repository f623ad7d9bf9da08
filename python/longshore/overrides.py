"""Types that a caller asks for by column, in the core's words."""

from collections.abc import Mapping
from typing import Any

from longshore.errors import InterfaceError
from longshore.texts import display, name_text

__all__ = ["wanted"]

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


def _column(name: object) -> str:
    if isinstance(name, str):
        return name_text(name, "a column of schema")
    message = f"schema names its columns by texts, not {display(name)}"
    raise InterfaceError(message)


def _type(name: str, kind: Any) -> Any:
    if isinstance(kind, str):
        return name_text(kind, f"schema[{name!r}]")
    if hasattr(kind, "__arrow_c_schema__"):
        return kind
    if isinstance(kind, type) and kind in _PYTHON:
        return _PYTHON[kind]
    if type(kind).__module__.partition(".")[0] in {"numpy", "pandas"} or hasattr(kind, "dtype"):
        return _numpy(str(getattr(kind, "name", None) or getattr(kind, "__name__", kind)))
    if type(kind).__module__.startswith("pyarrow"):
        # pyarrow before 17 has the type, but not the capsule.
        return str(kind)
    message = f"schema[{name!r}] is {display(kind)}; give a name such as 'int64', a pyarrow type or a NumPy dtype"
    raise InterfaceError(message)


def _numpy(name: str) -> str:
    if name.startswith("datetime64["):
        return f"timestamp[{name[11:-1]}]"
    return name.lower()
