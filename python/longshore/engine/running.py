"""One query of ``sql``, from its arguments to its result."""

from collections.abc import Mapping, Sequence
from types import FrameType
from typing import Any

from longshore.engine.failures import with_columns
from longshore.engine.names import Names
from longshore.engine.parameters import Params, for_statement, given, with_dollars
from longshore.engine.result import deliver
from longshore.engine.scope import Scope
from longshore.engine.session import Session
from longshore.errors import InterfaceError, NotSupportedError, ProgrammingError
from longshore.frames.scanned import is_frame
from longshore.options import Options
from longshore.reading import frame_for
from longshore.schema import encodable

__all__ = ["run"]


def run(
    query: object,
    caller: FrameType,
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
        message = f"explain is True or False, not {explain!r}"
        raise InterfaceError(message)
    chosen = Options.of(options)
    # Before the query runs: it may write a file.
    frame_for(return_type, dtype_backend)
    text = encodable(query, "query")
    if attach is not None:
        message = "attach= is not built yet"
        raise NotSupportedError(message)
    values = given(params)
    text = with_dollars(text, values)
    session = Session(text, chosen)
    names = Names(session, Scope(caller, tables, is_frame), text, chosen)
    try:
        names.keywords(tables)
        result = _run(session, names, values, explain=explain)
    except ProgrammingError as error:
        session.close()
        raise with_columns(error, names.columns) from error.__cause__
    except BaseException:
        session.close()
        raise
    if result is None or isinstance(result, str):
        session.close()
        return result
    return deliver(
        result,
        return_type=return_type,
        dtype_backend=dtype_backend,
        options=chosen,
        cancel=session.cancel,
        close=session.close,
    )


def _run(session: Session, names: Names, params: Params, *, explain: bool) -> Any:
    """Run all statements, and give the relation of the last, or its plan; None where it has no rows."""
    *before, last = session.statements
    parameters = [each.named_parameters for each in session.statements]
    for at, statement in enumerate(before):
        session.execute(statement, for_statement(params, at, parameters), names.table)
    values = for_statement(params, len(before), parameters)
    if not explain:
        return session.execute(last, values, names.table)
    plan = session.execute(f"EXPLAIN {last.query}", values, names.table)
    return "\n".join(text for _, text in plan.fetchall())
