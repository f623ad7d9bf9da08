"""DuckDB's exceptions as Longshore's."""

import contextlib
import difflib
import re
from collections.abc import Collection, Iterator

from longshore import errors
from longshore.engine.duckdb import duckdb
from longshore.passwords import masked

__all__ = ["Failure", "circular_table", "is_ruined", "missing_table", "retold", "translated", "with_columns"]

#: From the particular to the general: the first that fits is taken.
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
    "ProgrammingError": errors.ProgrammingError,
    "DataError": errors.DataError,
    "IntegrityError": errors.IntegrityError,
    "NotSupportedError": errors.NotSupportedError,
    "OperationalError": errors.OperationalError,
    "InternalError": errors.InternalError,
}

_MISSING = re.compile(r"Catalog Error: Table with name (.+?) does not exist!(?:\n|$)", re.DOTALL)
_UNREADABLE = re.compile(r'Binder Error: No extension found that is capable of reading the file "(.+?)"\n', re.DOTALL)
_CIRCULAR = re.compile(r'Binder Error: Circular reference to CTE "(.+?)", use WITH RECURSIVE', re.DOTALL)
_UNGIVEN = re.compile(r"Values were not provided for the following parameters: (.+)")
_MIXED = "Mixing named and positional parameters"
_COLON = 'Parser Error: syntax error at or near ":"'
#: What the engine says of the data, though it calls it an invalid input.
_OF_DATA = re.compile(r"Invalid Input Error: (?:Map keys must be unique|Arrow map contains duplicate key)")
_COLUMN = re.compile(r'Binder Error: Referenced column "(.+?)" (?:was )?not found', re.DOTALL)
#: Columns that a hint names.
_FEW = 10
_CANDIDATES = re.compile(r"\nCandidate bindings: .*")


class Failure:
    """The exception that ended what the engine was reading, of which it hands on no more than a text."""

    def __init__(self) -> None:
        """Start with none."""
        self._error: BaseException | None = None

    def note(self, error: BaseException) -> None:
        """Keep the first, from any thread: others may follow from it."""
        if self._error is None:
            self._error = error

    def noted(self) -> BaseException | None:
        """Give what has been kept."""
        return self._error

    @contextlib.contextmanager
    def raised(self) -> Iterator[None]:
        """Raise what has been kept in the place of an error that follows from it."""
        try:
            yield
        except errors.Error:
            if self._error is None:
                raise
            raise self._error from None


@contextlib.contextmanager
def translated() -> Iterator[None]:
    """Raise Longshore's exceptions where DuckDB raises its own."""
    try:
        yield
    except duckdb.Error as error:
        # It quotes the query, and what is between its quotes.
        error.args = (masked(str(error)),)
        raise _translation(error) from error


def retold(text: str) -> errors.Error:
    """Give the exception that the engine would have raised with a text."""
    name = f"{text.partition(' Error:')[0].replace(' ', '')}Exception".lower()
    found = (getattr(duckdb, each) for each in dir(duckdb) if each.lower() == name)
    return _translation(next(found, duckdb.OperationalError)(text))


def missing_table(error: BaseException) -> str | None:
    """Give the name of the table, unqualified, or of the file, whose absence is the whole of ``error``."""
    found = _MISSING.match(str(error)) or _UNREADABLE.match(str(error))
    return found[1] if found else None


def circular_table(error: BaseException) -> str | None:
    """Give the name of a common table expression that reads another table of its own name, which is not there yet."""
    found = _CIRCULAR.match(str(error))
    return found[1] if found else None


def with_columns(error: errors.Error, names: Collection[str]) -> errors.Error:
    """Tell what a missing column was meant to be, of the columns that the query's variables have.

    The engine itself knows only those that the query mentions.
    """
    found = _COLUMN.match(str(error))
    if found is None or not names:
        return error
    close = difflib.get_close_matches(found[1], sorted(names), n=1)
    some = ", ".join(map(repr, sorted(names)[:_FEW]))
    hint = f"did you mean {close[0]!r}?" if close else f"the columns are {some}{', ...' if len(names) > _FEW else ''}"
    return type(error)(f"{_CANDIDATES.sub('', str(error))}\nHint: {hint}", hint=hint)


def is_ruined(error: BaseException) -> bool:
    """Whether an earlier error, of any query, has ended the instance."""
    return isinstance(error, duckdb.FatalException) and "previous fatal error" in str(error)


def _translation(error: Exception) -> errors.Error:
    text = str(error).strip()
    name = next((name for name in _KINDS if isinstance(error, getattr(duckdb, name))), None)
    kind = errors.DatabaseError if name is None else _KINDS[name]
    if _OF_DATA.match(text):
        kind = errors.DataError
    hint = _hint(text, kind)
    if _MIXED in text:
        kind, text = errors.ProgrammingError, "the query's parameters and params do not go together"
    return kind(text if hint is None else f"{text}\nHint: {hint}", hint=hint)


def _hint(text: str, kind: type[errors.Error]) -> str | None:
    if (ungiven := _UNGIVEN.search(text)) is not None:
        names = ungiven[1].split(", ")
        by_name = ", ".join(f'"{name}": ...' for name in names)
        return "give params=[...], a value for each" if names[0].isdecimal() else f"give params={{{by_name}}}"
    if _MIXED in text:
        return "give params as a list for ? and $1, as a dict for $name and :name"
    if text.startswith(_COLON):
        return 'the value of :name is given as params={"name": value}'
    if kind is errors.MemoryLimitError:
        return (
            'raise options={"memory_limit": ...}, select fewer columns or rows, or use return_type="arrow_stream"; '
            "what the engine cannot spill to disk has to fit"
        )
    return None
