"""One query of ``sql``, from its arguments to its result."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from longshore.connectable import is_connection
from longshore.duckdb.failures import Failure, TableAltered, with_column_hint
from longshore.duckdb.parameters import Params, engine_params, for_statement, with_dollars
from longshore.duckdb.result import Form, deliver, with_bounded_batches
from longshore.duckdb.scope import Caller, Scope, TableResolver, attach_connections
from longshore.duckdb.session import Session
from longshore.duckdb.waiting import register_cancel
from longshore.errors import DataError, InterfaceError, ProgrammingError
from longshore.frames.inputs import is_table
from longshore.options import Options
from longshore.texts import display, statement_text

#: How often a query is run whose tables are altered meanwhile.
_TRIES = 3


def run(
    query: object,
    caller: Caller,
    *,
    params: Sequence[Any] | Mapping[str, Any] | None,
    return_type: str,
    dtype_backend: str | None,
    attach: Mapping[str, Any] | None,
    explain: bool,
    options: Mapping[str, Any] | Options | None,
    tables: Mapping[str, Any],
) -> Any:
    """Run the query that the arguments of ``sql`` describe."""
    if not isinstance(query, str):
        raise InterfaceError(f"query is a text, not {type(query).__name__}")
    if not isinstance(explain, bool):
        raise InterfaceError(f"explain is True or False, not {display(explain)}")
    options = Options.of(options)
    # Before the query runs: it may write a file.
    form = Form.of(return_type, dtype_backend, options)
    values = engine_params(params)
    text = with_dollars(statement_text(query, "query"), values)
    scope = Scope(caller, tables, is_table)
    attach = attach_connections(text, scope, attach)
    tables = {name: table for name, table in tables.items() if not is_connection(table)}
    if attach is None:
        return _run_in_engine(_Query(text, values, scope, tables, form, options, explain), Sources())
    # It imports the parser of other databases' SQL.
    from longshore.duckdb.remote.attach import remote_query

    def run_once() -> Any:
        with remote_query(text, values, attach, options) as remote:
            register_cancel(remote.cancel)
            if explain:
                return str(remote)
            if (rows := remote.whole_result()) is not None:
                return deliver(rows, form, cancel=remote.cancel, failed=remote.failure.error)
            remote.warn()
            return _run_in_engine(_Query(remote.sql, remote.params, scope, tables, form, options), remote)

    return _retry_if_altered(run_once)


def _retry_if_altered(run_once: Callable[[], Any]) -> Any:
    for _ in range(_TRIES - 1):
        try:
            return run_once()
        except TableAltered as error:
            if not error.is_retryable:
                raise
    return run_once()


@dataclass(frozen=True)
class _Query:
    """A query for the engine."""

    text: str
    params: Params
    scope: Scope
    tables: Mapping[str, Any]
    form: Form
    options: Options
    explain: bool = False


class Sources:
    """The attached databases of a query: here, none."""

    def __init__(self) -> None:
        """Start without a failure."""
        #: A source's own error, of which the engine passes on only the text.
        self.failure = Failure()

    def reads(self) -> Iterator[tuple[str, Any]]:
        """Send the reads, and give each one's name and rows for the engine."""
        return iter(())

    def cancel(self) -> None:
        """Stop the sources, from any thread."""

    def end(self) -> None:
        """End the reads that the engine has not finished, after its own end."""

    def check(self) -> None:
        """Raise ``TableAltered`` where a table was altered while it was read; for after the engine's last row."""

    def checking(self, rows: Any) -> Any:
        """Give the engine's rows, the last ones after ``check``."""
        return rows


def _run_in_engine(query: _Query, sources: Sources, *, keeps_text: bool = False) -> Any:
    session = Session(query.text, query.options, keeps_text=query.explain or keeps_text)
    register_cancel(session.cancel)
    names = TableResolver(
        session, query.scope, query.text, query.params, options=query.options, failure=sources.failure
    )
    # What an attached database has sent is not sent again.
    may_run_again = type(sources) is Sources
    try:

        def parse() -> None:
            with _closing_on_error(session):
                session.open()

        session.run(parse, sources.cancel)
        # On the caller's thread: a connection of Python's sqlite3 works on no other.
        loaded = list(sources.reads())

        def bind() -> _BoundQuery:
            with _closing_on_error(session):
                for name, rows in loaded:
                    session.register(name, rows)
                names.register_keywords(query.tables)
                with sources.failure.reraising():
                    return _bind(session, names, query)

        bound = session.run(bind, sources.cancel)
        may_run_again = may_run_again and session.is_repeatable
        return _deliver(bound, session, query.form, sources)
    except TableAltered as error:
        session.close_after_task()
        # Statements that write would write twice, and a reader among the variables is empty by now.
        error.is_retryable = session.has_only_selects and names.has_no_tables
        raise
    except (DataError, ProgrammingError) as error:
        session.close_after_task()
        if not may_run_again or session.is_original:
            raise with_column_hint(error, names.columns) from error.__cause__
    except BaseException:
        session.close_after_task()
        raise
    # The error quotes a text without the predicates that were dropped.
    return _run_in_engine(query, sources, keeps_text=True)


@contextlib.contextmanager
def _closing_on_error(session: Session) -> Iterator[None]:
    """Close after a failure; other errors than the query's own may have broken the engine."""
    try:
        yield
    except ProgrammingError:
        session.close()
        raise
    except BaseException:
        session.restart_if_broken()
        session.close()
        raise


@dataclass(frozen=True)
class _BoundQuery:
    """A text whose last statement is bound, or has run."""

    #: The relation of the last statement; None where it has no rows.
    relation: Any
    types: Sequence[Any]
    #: The plan of an explained query.
    plan: str | None = None


def _deliver(bound: _BoundQuery, session: Session, form: Form, sources: Sources) -> Any:
    """Make the frame, or the stream, which closes the session at its end."""
    if bound.relation is None:
        sources.check()
        return bound.plan

    def cancel() -> None:
        session.cancel()
        sources.cancel()

    def close() -> None:
        session.close()
        sources.end()

    def failure() -> BaseException | None:
        session.restart_if_broken()
        return sources.failure.error()

    # A stream holds a few batches; a frame keeps what it can of each, which pyarrow would keep whole.
    is_stream = form.frame is None
    rows = sources.checking(with_bounded_batches(bound.relation, bound.types)) if is_stream else bound.relation
    result = deliver(rows, form, types=bound.types, cancel=cancel, close=close, failed=failure, owner=session)
    if not is_stream:
        sources.check()
    return result


def _bind(session: Session, names: TableResolver, query: _Query) -> _BoundQuery:
    """Run all statements but the last, and bind that."""
    parameters = [each.named_parameters for each in session.statements]
    last = len(parameters) - 1
    result: Any = None
    for at in range(last + 1):
        params = for_statement(query.params, at, parameters)
        explain = query.explain and at == last
        result = session.execute(at, params, names.register, names.has, explain=explain)
    if result is None or query.explain:
        plan = "\n".join(text for _, text in result.fetchall()) if query.explain else None
        session.close()
        return _BoundQuery(None, (), plan)
    types = result.types
    if query.form.keeps_texts and "VARCHAR" in types:
        session.use_large_strings()
    return _BoundQuery(result, types)
