"""Oracle, in oracledb's thin mode: ``oracle://user:password@host:1521/service``, a TNS name, a descriptor, a wallet."""

import contextlib
import inspect
import math
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import oracledb

from longshore import _core, errors
from longshore.sources.files import port
from longshore.sources.loading import Load
from longshore.sources.session import DriverSession, Interruption, Result
from longshore.texts import closest, first_word

_FORM = "write oracle://user:password@host:1521/service, ?sid=NAME, a TNS name as the host, or ?dsn= with a descriptor"
_SID = "what follows the host is a service; a SID is ?sid=NAME"
_QUERIES = frozenset({"SELECT", "WITH"})
_END = re.compile(r"[\s;]+\Z")
#: How statements begin that may change a session's settings.
_SETTING = frozenset({"ALTER SESSION", "SET ROLE", "BEGIN", "DECLARE", "CALL"})
_LOGIN = re.compile(r"[^/@(]*/(.*)@", re.DOTALL)
_EMPTY = "an empty text is NULL in Oracle: give None where NULL is meant"
_ZONE = "Oracle's driver would drop the time zone: give the text, and TO_TIMESTAMP_TZ in the statement"
#: oracledb's own settings: the types of those that a URL can say.
_SETTINGS = {
    name: str(parameter.annotation).removesuffix(" | None")
    for name, parameter in inspect.signature(oracledb.ConnectParams).parameters.items()
}
#: How long a cancel waits for a statement that makes or drops a table.
_CANCEL_SECONDS = 2.0
#: As many sets of parameters are worth a look.
_SEVERAL = 2
#: A snapshot that the server can no longer give: the undo is gone, the SCN is none, the table has changed.
_PAST = {1466, 1555, 8180, 8181}
_SNAPSHOT = "read again; UNDO_RETENTION has the server keep what is overwritten for longer"
#: Oracle's errors by their number: those that oracledb has no class of PEP 249's for.
_DATA = {1400, 1401, 1426, 1438, 1476, 1722, 12899, *range(1830, 1900)}
#: The driver's own errors of what a caller gave, which are OperationalErrors there.
_KINDS: dict[str, type[errors.Error]] = {
    "DPY-4003": errors.DataError,
    **dict.fromkeys(("DPY-4008", "DPY-4009", "DPY-4010"), errors.ProgrammingError),
}
#: Floats between these, the driver binds exactly as a NUMBER.
_LEAST, _MOST = 1e-130, 1e126


def _is_query(statement: str) -> bool:
    return first_word(statement) in _QUERIES


def _sets(statement: str) -> bool:
    words = _core.sql_words(statement, 2)
    return not _SETTING.isdisjoint({" ".join(words), *words[:1]})


def connect(rest: str, keywords: Mapping[str, str], **_: bool) -> "Session":
    """Connect with what follows ``oracle://``; settings are oracledb's own, such as ``wallet_location``."""
    arguments = _arguments(rest, keywords)
    texts = {name: str(value) for name, value in arguments.items()}
    if secret := _LOGIN.match(texts.get("dsn", "")):
        texts["dsn_password"] = secret[1]
    session = Session(None, texts)
    with session.translating():
        session.connection = oracledb.connect(**arguments)
        # A statement is a transaction of its own until one is begun.
        session.connection.autocommit = True
    return session


def _arguments(rest: str, keywords: Mapping[str, str]) -> dict[str, Any]:
    """Give what ``oracledb.connect`` is called with."""
    given = {name: value for name, value in _core.url_settings(rest.removeprefix("//")) if value or name != "password"}
    given |= dict(keywords)
    if service := given.pop("database", "").strip("/"):
        given.setdefault("service_name", service)
    if "host" in given and not {"service_name", "sid", "port", "dsn"} & given.keys():
        given["dsn"] = given.pop("host")
    if not {"host", "dsn"} & given.keys():
        raise errors.InterfaceError("an Oracle source needs a host, a TNS name or dsn=", hint=_FORM)
    return {name: _setting(name, value) for name, value in given.items()}


def _setting(name: str, value: str) -> object:
    """Give a setting as oracledb takes it."""
    kind = _SETTINGS.get(name)
    if name == "mode":
        mode: object = getattr(oracledb, f"AUTH_MODE_{value.upper()}", None)
        if mode is None:
            raise errors.InterfaceError("mode is not one of oracledb's, such as sysdba")
        return mode
    if name == "port":
        return port(value)
    try:
        if kind in {"int", "float"}:
            return int(value) if kind == "int" else float(value)
        if kind == "bool":
            return {"true": True, "1": True, "false": False, "0": False}[value.lower()]
    except (KeyError, ValueError):
        raise errors.InterfaceError(f"{name} is not {'true or false' if kind == 'bool' else 'a number'}") from None
    if kind != "str" and name not in {"access_token", "dsn"}:
        known = [each for each, kind in _SETTINGS.items() if kind in {"str", "int", "float", "bool"}]
        meant = closest(name, known)
        hint = f"did you mean {meant}?" if meant else "oracledb's documentation of connect() lists them"
        raise errors.InterfaceError(f"{name!r} is not a setting of oracledb's", hint=hint)
    return value


class Session(DriverSession):
    """One connection."""

    failure = oracledb.Error
    new_table_commits = True
    undoes_what_fails = True
    #: Whether it may have settings that another session would not have.
    has_settings = False
    not_prepared = "Oracle's driver does not tell their types"

    def __init__(self, connection: Any, settings: Mapping[str, str]) -> None:
        """Keep the connection, and what its errors may quote."""
        super().__init__(connection)
        self.settings, self.interruption = settings, Interruption()

    def translate(self, error: Exception) -> errors.Error:
        """Give Longshore's exception for the driver's, by Oracle's number where the driver has only DatabaseError."""
        if isinstance(error, errors.Error):
            return error
        translated = super().translate(error)
        number = getattr(error.args[0], "code", 0) if error.args else 0
        kind = type(translated)
        if kind is errors.DatabaseError:
            is_statement = 900 <= number < 1000 or number in {1789, 2289}  # noqa: PLR2004  Oracle's book of errors
            kind = errors.ProgrammingError if is_statement else errors.DataError if number in _DATA else kind
        kind = _KINDS.get(getattr(error.args[0], "full_code", "") if error.args else "", kind)
        kind, hint = (errors.OperationalError, _SNAPSHOT) if number in _PAST else (kind, None)
        return kind(str(translated), hint=_SID if "DPY-6001" in str(error) else hint)

    @contextlib.contextmanager
    def translating(self) -> Iterator[None]:
        """Raise Longshore's exceptions for the driver's, and for those of Python's dates."""
        try:
            with super().translating():
                yield
        except (OverflowError, ValueError) as error:
            if type(error).__module__ != "builtins":
                raise
            hint = "a date of the years 1 to 9999, or TO_CHAR of it in the query"
            raise errors.DataError(str(error), hint=hint) from None

    @property
    def catalogue(self) -> Mapping[str, str]:
        """The queries of the dictionary views."""
        from longshore.sources.oracle_catalogue import CATALOGUE

        return CATALOGUE

    def quoted_name(self, *names: str) -> str:
        """Give a name, of which small letters alone are Oracle's capitals."""
        from longshore.sources.oracle_loading import fold

        return super().quoted_name(*map(fold, names))

    def _is_usable(self) -> bool:
        return True

    def _begin(self) -> None:
        self.connection.autocommit = False

    def begin_snapshot(self) -> None:
        """Begin a transaction whose statements see one snapshot."""
        self.begin()
        self.execute("SET TRANSACTION READ ONLY")

    def _end(self, how: Any) -> None:
        super()._end(how)
        self.connection.autocommit = True

    def cancel(self) -> None:
        """Stop what runs."""
        with self.interruption.permit(_CANCEL_SECONDS):
            self.connection.cancel()

    def _prepare(self, query: str, params: Any) -> tuple[Any, Any]:
        statement, _ = super()._prepare(query, None)
        for value in params.values() if isinstance(params, dict) else params or ():
            if isinstance(value, str | bytes) and not value:
                raise errors.DataError(_EMPTY)
            if getattr(value, "tzinfo", None) is not None:
                raise errors.NotSupportedError(_ZONE, hint=_ZONE)
        return (_END.sub("", statement) if _is_query(statement) else statement), _with_bytes(params)

    def typed_params(self, params: Any) -> Any:
        """Give parameters of which none is bound as another value where there is no cursor that is told their types."""

        def one(value: Any) -> Any:
            if (kind := _size([value])) is None:
                return value
            variable = self.connection.cursor().var(kind)
            variable.setvalue(0, value)
            return variable

        if isinstance(params, dict):
            return {name: one(value) for name, value in params.items()}
        return [*map(one, params or ())]

    def open_cursor_for(self, *sets: Any) -> Any:
        """Open a cursor that binds the parameters of all these sets as they are."""
        cursor = self.open_cursor()
        if sets and sets[0]:
            is_named = isinstance(sets[0], dict)
            keys: Any = sets[0] if is_named else range(len(sets[0]))
            sizes = {key: _size([each[key] for each in sets]) for key in keys}
            cursor.setinputsizes(**sizes) if is_named else cursor.setinputsizes(*sizes.values())
        return cursor

    def _run(self, statement: Any, params: Any) -> Any:
        self.has_settings = self.has_settings or _sets(statement)
        cursor = self.open_cursor_for(params)
        cursor.execute(statement, params or None)
        return cursor

    def execute_many(self, query: str, sets: Sequence[Any]) -> int | None:
        """Run one statement with each set of parameters: at once where each parameter has one type in all of them."""
        if not _are_alike(sets) or _is_query(query):
            return super().execute_many(query, sets)
        prepared = [self._check(query, params) for params in sets]
        with self.running():
            cursor = self.open_cursor_for(*sets)
            cursor.executemany(prepared[0][0], [params for _, params in prepared])
            count: int = cursor.rowcount
        return count

    def execute(self, query: str, params: Any = None) -> int | None:
        """Run one statement, and tell how many rows it changed or gave."""
        count = super().execute(query, params)
        if self.cursor is None or not self.cursor.description:
            return count
        with self.running():
            return self._count(self.cursor)

    def _result(self, statement: Any, params: Any, rows: int) -> Result | None:
        if not _is_query(statement):
            self._run(statement, params)
            return None
        from longshore.sources.oracle_columns import Columns

        return Columns.of(self, statement).read(statement, params, rows), [], []

    def _schema(self, statement: Any, _params: Any) -> Result | None:
        from longshore.sources.oracle_columns import Columns

        is_query = _is_query(statement)
        return (Columns.of(self, statement).schema.empty_table(), [], []) if is_query else None

    def split(self, pieces: Sequence[Any], wanted: Sequence[Any]) -> list[str] | str:
        """Give the texts of a query's parts, none where it is too small, or tell why there are none."""
        from longshore.sources.oracle_parts import OneTable, Wanted, split

        return split(self, OneTable(*pieces), Wanted(*wanted))

    def not_plain(self, pieces: Sequence[Any]) -> str | None:
        """Tell why a query over one table may do more than read; None where it does not."""
        from longshore.sources.oracle_parts import OneTable, not_plain

        return not_plain(self, OneTable(*pieces))

    def load(self, **load: Any) -> Any:
        """Begin to write."""
        from longshore.sources.oracle_loading import TableLoader

        return TableLoader(self, Load(**load))


def _with_bytes(params: Any) -> Any:
    """Give parameters that the driver knows: a UUID is a RAW(16)."""
    if isinstance(params, dict):
        return dict(zip(params, _with_bytes([*params.values()]), strict=True))
    return [value.bytes if isinstance(value, uuid.UUID) else value for value in params] if params else params


def _size(values: Sequence[Any]) -> object:
    """Give the type of a parameter that the driver's own choice would change, or could not hold; else None."""
    if any(getattr(value, "microsecond", 0) for value in values):
        # It would be a DATE, without them.
        return oracledb.DB_TYPE_TIMESTAMP
    return oracledb.DB_TYPE_BINARY_DOUBLE if any(map(_is_beyond_number, values)) else None


def _is_beyond_number(value: object) -> bool:
    """Whether this is a float that a NUMBER does not hold: very large or small, NaN, infinity or negative zero."""
    if not isinstance(value, float):
        return False
    return not _LEAST <= abs(value) < _MOST if value else math.copysign(1, value) < 0


def _are_alike(sets: Sequence[Any]) -> bool:
    """Whether all sets have the same parameters, each of one type or NULL."""
    if len(sets) < _SEVERAL or not all(sets):
        return False
    named = [each if isinstance(each, dict) else dict(enumerate(each)) for each in sets]
    if any(each.keys() != named[0].keys() for each in named):
        return False
    return all(len({_kind(each[key]) for each in named} - {type(None)}) == 1 for key in named[0])


def _kind(value: object) -> object:
    return oracledb.DB_TYPE_BINARY_DOUBLE if _is_beyond_number(value) else type(value)
