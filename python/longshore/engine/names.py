"""The tables that a query names and DuckDB does not have: Python's variables.

DuckDB's own binder tells which they are. It has resolved common table expressions, aliases and views by then, so no
variable is ever taken for one of those.
"""

from longshore.engine.scope import Scope
from longshore.engine.session import Session
from longshore.errors import ProgrammingError
from longshore.frames.scanned import scanned
from longshore.options import Options

__all__ = ["Names"]


class Names:
    """Registers variables as tables, by and by as the binder misses them."""

    def __init__(self, session: Session, scope: Scope, text: str, options: Options) -> None:
        """Keep where to look, and where to register."""
        self._session = session
        self._scope = scope
        self._text = text
        self._options = options

    def table(self, name: str) -> None:
        """Make the variable ``name`` a table; raises ``ProgrammingError`` where there is none."""
        is_there, value = self._scope.find(name)
        if not is_there:
            close = self._scope.closest(name)
            remedy = f"did you mean {close!r}?" if close else f"give it as a keyword: sql(..., {name}=frame)"
            message = f"no table and no variable is called {name!r}\nHint: {remedy}"
            raise ProgrammingError(message, hint=remedy)
        self._session.register(name, scanned(value, name, self._options))
