"""What the text of a query says of the tables that it reads, before it is bound."""

import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from longshore.engine.limits import reached
from longshore.engine.mentions import mentions
from longshore.engine.nodes import nodes
from longshore.engine.predicates import Found, found, keys
from longshore.frames.selected import folded
from longshore.frames.use import Rest, Use

__all__ = ["Kept", "Syntax"]

#: Texts that are kept, and the letters of the longest.
_MOST = 64
_LONGEST = 4096


class Syntax:
    """What one statement says."""

    def __init__(self, tree: Mapping[str, Any], text: str) -> None:
        """Take apart what ``json_serialize_sql`` says of ``text``."""
        #: The folded names of the columns that it may read; None for all.
        self.columns = mentions(tree)
        self._keys = keys(tree)
        self._found = found(tree, text.encode())
        self._reached = reached(tree)
        #: How often it reads each table, by its folded name; None where that is not known.
        self._reads = None if tree["error"] else Counter(map(folded, _tables(tree)))
        self._rests = {table: _rest(tree, founds) for table, founds in self._found.items()}

    def reads(self, table: str, text: str) -> int:
        """Tell how often the statement reads a table, or at most, by how often the text has its name."""
        if self._reads is not None:
            return self._reads[folded(table)]
        return len(re.findall(rf"(?<!\w){re.escape(table)}(?!\w)", text, re.IGNORECASE))

    def use(self, table: str, params: Mapping[str, object]) -> Use:
        """Tell what the statement does with a table, where its parameters have these values."""
        name = folded(table)
        predicates = [each.predicate(params) for each in self._found.get(name, ())]
        known = tuple(each for each in predicates if each is not None)
        return Use(self.columns, known, self._keys, self._rests.get(name), self._reached.get(name))


class Kept:
    """The syntax of the last texts: to take one apart costs most of a millisecond."""

    def __init__(self) -> None:
        """Keep none yet."""
        self._lock = threading.Lock()
        self._known: dict[str, Syntax] = {}

    def of(self, text: str, serialized: Callable[[], str]) -> Syntax:
        """Give the syntax of a statement, for which ``serialized`` is asked where it is not kept."""
        with self._lock:
            if text in self._known:
                return self._known[text]
        made = Syntax(json.loads(serialized()), text)
        if len(text) <= _LONGEST:
            with self._lock:
                if len(self._known) >= _MOST:
                    del self._known[next(iter(self._known))]
                self._known[text] = made
        return made


def _tables(tree: object) -> Iterator[str]:
    return (node["table_name"] for node in nodes(tree) if node.get("type") == "BASE_TABLE")


def _rest(tree: Mapping[str, Any], founds: Sequence[Found]) -> Rest | None:
    said = [(each, each.span) for each in founds if each.span is not None and each.predicate({}) is not None]
    if not said:
        return None
    without = {id(each.node) for each, _ in said}
    return Rest(tuple(span for _, span in said), mentions(tree, without))
