"""One query of ``sql``, from its arguments to its result."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from longshore.connection import is_connection
from longshore.engine.failures import Failure, with_columns
from longshore.engine.parameters import Params, for_statement, given, with_dollars
from longshore.engine.remote.source import Changed, settled
from longshore.engine.result import Form, bounded, deliver
from longshore.engine.scope import Caller, Scope, with_connections
from longshore.engine.session import Session
from longshore.engine.tables import Names
from longshore.engine.waiting import stopped_by
from longshore.errors import DataError, InterfaceError, ProgrammingError
from longshore.frames.inputs import is_table
from longshore.options import Options
from longshore.texts import display, statement_text

if TYPE_CHECKING:
    from longshore.engine.remote.attach import Attached

__all__ = ["run"]


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
    """Do what ``sql`` says."""
    if not isinstance(query, str):
        message = f"query is a text, not {type(query).__name__}"
        raise InterfaceError(message)
    if not isinstance(explain, bool):
        message = f"explain is True or False, not {display(explain)}"
        raise InterfaceError(message)
    chosen = Options.of(options)
    # Before the query runs: it may write a file.
    form = Form.of(return_type, dtype_backend, chosen)
    text = statement_text(query, "query")
    values = given(params)
    text = with_dollars(text, values)
    scope = Scope(caller, tables, is_table)
    attach = with_connections(text, scope, attach)
    tables = {name: table for name, table in tables.items() if not is_connection(table)}
    if attach is None:
        return _local(text, values, scope, tables, form, chosen, explain=explain)
    # The parser of other databases' SQL is imported with it.
    from longshore.engine.remote.attach import attaching

    def once() -> Any:
        with attaching(text, values, attach, chosen) as remote:
            stopped_by(remote.cancel)
            if explain:
                return str(remote)
            if (rows := remote.whole()) is not None:
                return deliver(rows, form, cancel=remote.cancel, failed=remote.failure.noted)
            remote.warn()
            return _local(remote.sql, remote.params, scope, tables, form, chosen, remote=remote)

    return settled(once)


def _local(  # noqa: PLR0917  what one query is
    text: str,
    params: Params,
    scope: Scope,
    tables: Mapping[str, Any],
    form: Form,
    options: Options,
    *,
    explain: bool = False,
    remote: "Attached | _Alone | None" = None,
    as_written: bool = False,
) -> Any:
    """Have the engine run a query, beside what attached databases send."""
    session = Session(text, options, stays_as_written=explain or as_written)
    sources = remote or _Alone()
    stopped_by(session.cancel)
    names = Names(session, scope, text, params, options=options, failure=sources.failure)
    may_run_again = True
    try:

        def parse() -> None:
            with _ending(session):
                session.open()

        session.apart(parse, sources.cancel)
        # On the caller's thread: Python's own connections answer no other.
        loaded = list(sources.tables())

        def bind() -> _Bound:
            with _ending(session):
                for name, rows in loaded:
                    session.register(name, rows)
                names.keywords(tables)
                with sources.failure.raised():
                    return _bound(session, names, params, form, explain=explain)

        bound = session.apart(bind, sources.cancel)
        may_run_again = session.reads_again
        return _delivered(bound, session, form, sources)
    except Changed as error:
        session.give_up()
        # What was written would be written twice, and a reader among the variables is empty by now.
        error.again = session.only_selects and names.found_none
        raise
    except (DataError, ProgrammingError) as error:
        session.give_up()
        if not may_run_again or session.is_as_written or remote is not None:
            raise with_columns(error, names.columns) from error.__cause__
    except BaseException:
        session.give_up()
        raise
    # The error quotes another text than the caller's.
    return _local(text, params, scope, tables, form, options, as_written=True)


@contextlib.contextmanager
def _ending(session: Session) -> Iterator[None]:
    """Close after a failure; one that is not the query's own may have ended the engine."""
    try:
        yield
    except ProgrammingError:
        session.close()
        raise
    except BaseException:
        session.examine()
        session.close()
        raise


@dataclass(frozen=True)
class _Bound:
    """A text whose last statement is bound, or has run."""

    #: The relation of the last statement; None where it has no rows.
    relation: Any
    types: Sequence[Any]
    #: Its plan, if that is asked for.
    plan: str | None = None


class _Alone:
    """What stands for the attached databases of a query that has none."""

    def __init__(self) -> None:
        self.failure = Failure()

    def tables(self) -> Iterator[tuple[str, Any]]:
        return iter(())

    def cancel(self) -> None:
        pass

    def end(self) -> None:
        pass

    def settle(self) -> None:
        pass

    def settled(self, rows: Any) -> Any:
        return rows


def _delivered(bound: _Bound, session: Session, form: Form, remote: "Attached | _Alone") -> Any:
    """Make the frame, or the stream, and close with its end."""
    if bound.relation is None:
        remote.settle()
        return bound.plan

    def cancel() -> None:
        session.cancel()
        remote.cancel()

    def close() -> None:
        session.close()
        remote.end()

    def failed() -> BaseException | None:
        session.examine()
        return remote.failure.noted()

    # A stream holds a few batches; a frame keeps what it can of each, which pyarrow would keep whole.
    rows = remote.settled(bounded(bound.relation, bound.types)) if form.frame is None else bound.relation
    delivered = deliver(rows, form, types=bound.types, cancel=cancel, close=close, failed=failed, lender=session)
    if form.frame is not None:
        remote.settle()
    return delivered


def _bound(session: Session, names: Names, params: Params, form: Form, *, explain: bool) -> _Bound:
    """Run all statements but the last, and bind that."""
    parameters = [each.named_parameters for each in session.statements]
    last = len(parameters) - 1
    for at in range(last):
        session.execute(at, for_statement(params, at, parameters), names.table, names.has)
    result = session.execute(last, for_statement(params, last, parameters), names.table, names.has, explain=explain)
    if result is None or explain:
        plan = "\n".join(text for _, text in result.fetchall()) if explain else None
        session.close()
        return _Bound(None, (), plan)
    types = result.types
    if form.keeps_texts and "VARCHAR" in types:
        session.widen_texts()
    return _Bound(result, types)
