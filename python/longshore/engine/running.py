"""One query of ``sql``, from its arguments to its result."""

from collections.abc import Mapping, Sequence
from types import FrameType
from typing import Any

from longshore.engine.names import Names
from longshore.engine.result import deliver
from longshore.engine.scope import Scope
from longshore.engine.session import Session
from longshore.errors import InterfaceError, NotSupportedError
from longshore.frames.scanned import is_frame
from longshore.options import Options
from longshore.parameters import bound
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
    chosen = Options.of(options)
    text = encodable(query, "query")
    if attach is not None:
        message = "attach= is not built yet"
        raise NotSupportedError(message)
    session = Session(text, chosen)
    names = Names(session, Scope(caller, tables, is_frame), text, chosen)
    result = None
    for statement in session.statements:
        result = session.execute(statement, bound(params), names.table)
    if result is None:
        return None
    return deliver(
        result, return_type=return_type, dtype_backend=dtype_backend, options=chosen, cancel=session.cancel
    )
