"""DuckDB's exceptions as Longshore's."""

import contextlib
import json
import re
from collections.abc import Collection, Iterator

from longshore import errors
from longshore.duckdb.instance import engine
from longshore.errors import mask
from longshore.texts import closest

#: From the particular to the general: the first match counts.
_KINDS: dict[str, type[errors.Error]] = {
    "OutOfMemoryException": errors.MemoryLimitError,
    "ConversionException": errors.DataError,
    "OutOfRangeException": errors.DataError,
    "TypeMismatchException": errors.DataError,
    "InternalException": errors.InternalError,
    "FatalException": errors.InternalError,
    "NotImplementedException": errors.NotSupportedError,
    "ConstraintException": errors.IntegrityError,
    "InterruptException": errors.OperationalError,
    "IOException": errors.OperationalError,
}
#: PEP 249's classes have the same names there.
_NAMES = ("ProgrammingError", "DataError", "IntegrityError", "NotSupportedError", "OperationalError", "InternalError")
_KINDS |= {name: getattr(errors, name) for name in _NAMES}

_MISSING = re.compile(r"Catalog Error: Table with name (.+?) does not exist!(?:\n|$)", re.DOTALL)
_UNREADABLE = re.compile(r'Binder Error: No extension found that is capable of reading the file "(.+?)"\n', re.DOTALL)
_CIRCULAR = re.compile(r'Binder Error: Circular reference to CTE "(.+?)", use WITH RECURSIVE', re.DOTALL)
_NO_VALUES = re.compile(r"Values were not provided for the following parameters: (.+)")
_MIXED_STYLES = "Mixing named and positional parameters"
_COLON = 'Parser Error: syntax error at or near ":"'
#: Errors of the data that the engine reports as invalid input.
_OF_DATA = re.compile(r"Invalid Input Error: (?:Map keys must be unique|Arrow map contains duplicate key)")
_COLUMN = re.compile(r'Binder Error: Referenced column "(.+?)" (?:was )?not found', re.DOTALL)
#: The most columns that a hint names.
_HINT_COLUMNS = 10
_CANDIDATES = re.compile(r"\nCandidate bindings: .*")


class TableAltered(errors.OperationalError):
    """A table of an attached database was altered between planning and the end of the reads."""

    #: Whether the query can be run again as if for the first time.
    is_retryable = True

    @classmethod
    def of(cls, source: str) -> "TableAltered":
        """Give the error, which is like a server's that cannot serialize."""
        hint = "run the query again; within a transaction that has read before, end that first"
        message = f"a table of the attached database {source} was altered while the query read it [SQLSTATE 40001]"
        return cls(message, sqlstate="40001", hint=hint)


class Failure:
    """The exception that ended a reader, of which the engine passes on only the text."""

    def __init__(self) -> None:
        """Start without an exception."""
        self._error: BaseException | None = None

    def record(self, error: BaseException) -> None:
        """Keep the first exception, from any thread: others may follow from it."""
        if self._error is None:
            self._error = error

    def error(self) -> BaseException | None:
        """Give the recorded exception."""
        return self._error

    @contextlib.contextmanager
    def reraising(self) -> Iterator[None]:
        """Raise the recorded exception in place of an error that follows from it."""
        try:
            yield
        except errors.Error:
            if self._error is None:
                raise
            raise self._error from None


@contextlib.contextmanager
def translate_errors() -> Iterator[None]:
    """Raise Longshore's exceptions for DuckDB's."""
    try:
        yield
    except errors.Error:
        # To import the engine for an error that is not its own takes long, and may fail.
        raise
    except engine().Error as error:
        # It quotes the query, which may hold passwords.
        error.args = (mask(str(error)),)
        raise _translation(error) from error


def error_from_text(text: str) -> errors.Error:
    """Give the exception that the engine would have raised with this text."""
    name = f"{text.partition(' Error:')[0].replace(' ', '')}Exception".lower()
    kinds = (getattr(engine(), each) for each in dir(engine()) if each.lower() == name)
    return _translation(next(kinds, engine().OperationalError)(text))


def error_from_driver(text: str) -> errors.Error | None:
    """Give the like for the text of the engine's ADBC driver, which may be JSON; None where it does not tell."""
    if text.startswith("{"):
        return error_from_text("{exception_type} Error: {exception_message}".format_map(json.loads(text)))
    return error_from_text(text) if "Error: " in text else None


def missing_table(error: BaseException) -> str | None:
    """Give the unqualified table, or the file, whose absence ``error`` reports; None for other errors."""
    match = _MISSING.match(str(error)) or _UNREADABLE.match(str(error))
    return match[1] if match else None


def circular_table(error: BaseException) -> str | None:
    """Give the common table expression that reads a table of its own name, which is not registered yet."""
    match = _CIRCULAR.match(str(error))
    return match[1] if match else None


def with_column_hint(error: errors.Error, names: Collection[str]) -> errors.Error:
    """Add the closest of the variables' columns to the error of a missing one.

    The engine knows only those that the query reads.
    """
    match = _COLUMN.match(str(error))
    if match is None or not names:
        return error
    close = closest(match[1], names)
    some = ", ".join(map(repr, sorted(names)[:_HINT_COLUMNS]))
    more = ", ..." if len(names) > _HINT_COLUMNS else ""
    hint = f"did you mean {close!r}?" if close else f"the columns are {some}{more}"
    return type(error)(_CANDIDATES.sub("", str(error)), hint=hint)


def is_fatal(error: BaseException) -> bool:
    """Whether an earlier error of any query has ended the instance."""
    return isinstance(error, engine().FatalException) and "previous fatal error" in str(error)


def _translation(error: Exception) -> errors.Error:
    text = str(error).strip()
    name = next((name for name in _KINDS if isinstance(error, getattr(engine(), name))), None)
    kind = errors.DatabaseError if name is None else _KINDS[name]
    if _OF_DATA.match(text):
        kind = errors.DataError
    hint = _hint(text, kind)
    if _MIXED_STYLES in text:
        kind, text = errors.ProgrammingError, "the query's parameters and params do not go together"
    return kind(text, hint=hint)


def _hint(text: str, kind: type[errors.Error]) -> str | None:
    if (ungiven := _NO_VALUES.search(text)) is not None:
        names = ungiven[1].split(", ")
        by_name = ", ".join(f'"{name}": ...' for name in names)
        return "give params=[...], a value for each" if names[0].isdecimal() else f"give params={{{by_name}}}"
    if _MIXED_STYLES in text:
        return "give params as a list for ? and $1, as a dict for $name and :name"
    if text.startswith(_COLON):
        return 'the value of :name is given as params={"name": value}'
    if kind is errors.MemoryLimitError:
        return (
            'raise options={"memory_limit": ...}, select fewer columns or rows, or use return_type="arrow_stream"; '
            "what the engine cannot spill to disk has to fit"
        )
    return None
