"""The documented keys of ``options=``."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from itertools import chain
from typing import Any, Literal, get_args

from longshore.errors import InterfaceError
from longshore.texts import closest, display

_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}

#: An address space, and so more than any machine has.
_MOST_BYTES = 2**63 - 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """Choices beyond the arguments of a verb; a mapping of the same keys does as well.

    >>> Options(numeric_nan="null").numeric_nan
    'null'

    Raises ``InterfaceError`` for a word that a key does not know.
    """

    # Editors and type checkers read no extension: what `_core` declares is said again, and a test holds it to that.
    numeric_nan: Literal["error", "null"] = "error"
    """NaN and infinity in ``numeric``: an error, or NULL."""
    infinity: Literal["error", "null"] = "error"
    """Infinite dates, timestamps and intervals, and those beyond Arrow's range: an error, or NULL."""
    time_24: Literal["error", "null"] = "error"
    """The time 24:00: an error, or NULL."""
    uuid: Literal["arrow", "text"] = "arrow"
    """UUIDs: ``arrow.uuid`` (in pandas ``uuid.UUID``), or text, which polars always has."""
    protocol: Literal["binary", "text"] = "binary"
    """The form in which the server sends values: binary where a type has a known one, or text for all."""
    snapshot: bool = True
    """Whether all parts of a read, or all queries of a list, see one snapshot of the database."""
    zero_date: Literal["null", "error"] = "null"
    """MySQL's zero dates: NULL with a warning, or an error."""
    tinyint1: Literal["int8", "bool"] = "int8"
    """MySQL's ``tinyint(1)``: a number, or a boolean."""
    lock: bool = False
    """Whether MySQL and SQL Server may lock tables briefly, where connections cannot share a snapshot otherwise."""
    nested: Literal["error", "json"] = "error"
    """Lists, structs and maps on their way into MySQL and SQLite, which have no types for them: an error, or JSON."""
    sqlite_types: Literal["declared", "stored"] = "declared"
    """SQLite's columns: of the types that they are declared with, or of what is stored in them alone."""
    verify: bool = False
    """Whether a store's files are compared with their checksums, and their values looked at, before they are read."""

    json: Literal["text", "object"] = "text"
    """JSON in pandas and NumPy: its text, or Python objects."""
    nan: Literal["null", "keep"] = "null"
    """NaN of a pandas NumPy float column on its way into a database or into ``sql``: NULL, or NaN."""
    objects: Literal["error", "text"] = "error"
    """Mixed Python objects on their way into a database or into ``sql``: an error, or the text of each."""
    ordered: bool = False
    """Whether a stream in parts keeps the order of a serial read: it is then read over one connection."""
    threads: int | None = None
    """The number of threads that ``sql`` may use; all cores without it."""
    memory_limit: int | str | None = "auto"
    """The most memory of a whole result, and of the engine of ``sql``, which spills to disk: what the system leaves,
    bytes, ``"2GB"``, ``"512MiB"``, or None for no limit. A stream of ``read_sql`` takes no number."""

    def __post_init__(self) -> None:
        """Refuse what a key does not know."""
        for field in fields(self):
            _check(field.name, field.type, getattr(self, field.name))

    @classmethod
    def of(cls, given: "Mapping[str, Any] | Options | None") -> "Options":
        """Take options as a caller gives them; an unknown key is an ``InterfaceError`` that names the closest."""
        if given is None:
            return _DEFAULTS
        if isinstance(given, Options):
            return given
        if not isinstance(given, Mapping):
            raise InterfaceError(f"options is a mapping or longshore.Options, not {type(given).__name__}")
        known = [field.name for field in fields(cls)]
        for key in given:
            if key not in known:
                close = closest(str(key), known)
                remedy = f"did you mean {close!r}?" if close else f"known are {', '.join(known)}"
                raise InterfaceError(f"unknown option {display(key)}; {remedy}")
        return cls(**dict(given))

    def words(self, *keys: Iterable[str]) -> dict[str, str]:
        """Give the choices under some keys as the core takes them."""
        return {key: str(getattr(self, key)).lower() for key in chain(*keys)}

    @property
    def memory_limit_bytes(self) -> int | None:
        """The memory limit in bytes; None where it is not a number."""
        return None if self.memory_limit in (None, "auto") else _bytes(self.memory_limit)

    @property
    def memory_budget(self) -> int | Literal["auto"] | None:
        """The memory limit as the core takes it."""
        return "auto" if self.memory_limit == "auto" else self.memory_limit_bytes

    @property
    def stream_budget(self) -> Literal["auto"] | None:
        """The memory limit of what is held a batch or two at a time: a number is for whole results."""
        return "auto" if self.memory_limit == "auto" else None


def _check(name: str, declared: Any, value: object) -> None:
    words = get_args(declared)
    if name == "memory_limit":
        if value not in (None, "auto"):
            _bytes(value)
    elif name == "threads":
        _check_threads(value)
    elif declared is bool:
        if not isinstance(value, bool):
            raise InterfaceError(f"options[{name!r}] is True or False, not {display(value)}")
    elif value not in words:
        raise InterfaceError(f"options[{name!r}] is one of {', '.join(map(repr, words))}, not {display(value)}")


def _check_threads(value: object) -> None:
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
        raise InterfaceError(f"options['threads'] is a number of threads from 1, not {display(value)}")


def _bytes(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_BYTES:
        return value
    text = str(value).strip().lower() if isinstance(value, str) else ""
    number = text.rstrip("abcdefghijklmnopqrstuvwxyz").strip()
    unit = text[len(number) :].strip()
    if number.replace(".", "", 1).isdecimal() and unit in _UNITS and float(number) * _UNITS[unit] <= _MOST_BYTES:
        return int(float(number) * _UNITS[unit])
    message = (
        "options['memory_limit'] is 'auto', a number of bytes or a text such as '2GB' or '512MiB', "
        f"not {display(value)}"
    )
    raise InterfaceError(message)


#: Made once: each statement of a cursor asks for them.
_DEFAULTS = Options()
