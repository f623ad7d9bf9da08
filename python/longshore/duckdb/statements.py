"""Statements that change a table, taken apart: the SELECT that an UPDATE or a DELETE becomes.

Only what stands outside of parentheses is looked at; the engine reads all of every text that is made here.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from longshore.duckdb.instance import engine
from longshore.errors import NotSupportedError
from longshore.frames.pushdown import fold_name
from longshore.texts import quoted_name

#: The column of a row's position, and the tables of rows to be changed and of rows as they will be.
POSITION = "longshore_position"
TARGET = "longshore_target"
ROWS = "longshore_rows"

#: The word that follows the parenthesis of a query, and not that of a list of columns.
_QUERY = {"select", "with", "values", "from", "table", "("}
_OPENING = {"(", "[", "{"}
_CLOSING = {")", "]", "}"}

#: A letter for each token of a query of a whole table: ``SELECT * FROM main.t;`` is ``S*Fi.i;``.
_WHOLE = re.compile(r"(?:(?:S(?P<columns>\*|i(?:,i)*))?F|T)(?P<schema>i\.)?(?P<table>i);*")
_LETTERS = {"select": "S", "from": "F", "table": "T"} | {sign: sign for sign in "*,.;"}


class Token(NamedTuple):
    """A word, a sign or a literal of a statement."""

    text: str
    kind: str
    #: Its first byte in the text, and the one behind its last.
    start: int
    end: int
    #: How many brackets are open around it.
    depth: int

    @property
    def word(self) -> str:
        """Its text as a keyword; empty where it is quoted or a literal."""
        return self.text.lower() if self.kind in {"keyword", "identifier", "operator"} else ""


def tokens(text: str) -> list[Token]:
    """Give the tokens of a text by the engine's own rules, without comments.

    >>> [each.text for each in tokens('SELECT a /* b */ FROM "c d"')]
    ['SELECT', 'a', 'FROM', '"c d"']
    """
    data = text.encode()
    starts = [(start, str(kind).rpartition(".")[2]) for start, kind in engine().tokenize(text)]
    found: list[Token] = []
    depth = 0
    for (start, kind), (end, _) in pairwise([*starts, (len(data), "")]):
        if kind == "comment":
            continue
        word = data[start:end].decode().rstrip()
        depth -= word in _CLOSING and kind == "operator"
        found.append(Token(word, kind, start, start + len(word.encode()), depth))
        depth += word in _OPENING and kind == "operator"
    return found


def statements_of(script: str) -> list[str]:
    """Give the statements of a script.

    >>> statements_of("SAVEPOINT a; SELECT ';';")
    ['SAVEPOINT a', "SELECT ';'"]
    """
    data, begin, texts = script.encode(), 0, []
    ends = [each.start for each in tokens(script) if each.text == ";"]
    for end in [*ends, len(data)]:
        part = data[begin:end].decode()
        if tokens(part):
            texts.append(part.strip())
        begin = end + 1
    return texts


def number_places(text: str) -> str:
    """Write each ``?`` as the number of its place: parts of the text are run by themselves.

    >>> number_places("UPDATE t SET a = ?, b = '?' WHERE c = ?")
    "UPDATE t SET a = $1, b = '?' WHERE c = $2"
    """
    data, begin, parts = text.encode(), 0, []
    number = 0
    for each, following in pairwise([*tokens(text), Token("", "", -1, -1, 0)]):
        if each.text != "?":
            continue
        number += 1
        # "?1" says its place itself.
        is_told = following.start == each.end and following.text.isdigit()
        parts += [data[begin : each.start], b"$" if is_told else f"${number}".encode()]
        begin = each.end
    return b"".join([*parts, data[begin:]]).decode()


def called_names(text: str) -> set[str]:
    """Give the names before a parenthesis, which may be those of functions."""
    words = [each.text.strip('"').replace('""', '"').lower() for each in tokens(text)]
    return {name for name, after in pairwise(words) if after == "("}


def names_in(text: str) -> set[str]:
    """Give the folded names of everything that a statement could mean by one; a table may be named by a literal.

    >>> sorted(names_in('SELECT a, 1 FROM "C d" e'))
    ['a', 'c d', 'e', 'from', 'select']
    >>> sorted(names_in("FROM 'T'"))
    ['from', 't']
    """
    found, before = set(), Token("", "", 0, 0, 0)
    for each in tokens(text):
        is_table = before.word in {"from", "join"} or (before.text == "," and before.depth == 0)
        is_literal = each.kind == "string_const" and is_table
        if is_literal or each.kind in {"identifier", "keyword"}:
            found.add(fold_name(_unquote(each.text)))
        before = each
    return found


class WholeTable(NamedTuple):
    """A query of all rows of one table."""

    table: str
    #: None for all.
    columns: list[str] | None

    @classmethod
    def of(cls, text: str) -> "WholeTable | None":
        """Read ``SELECT * FROM t``, ``SELECT a, b FROM t``, ``FROM t`` and ``TABLE t``; None for any other statement.

        >>> WholeTable.of('SELECT a, "B" FROM main.t;')
        WholeTable(table='t', columns=['a', 'B'])
        >>> WholeTable.of("SELECT a FROM t WHERE a > 1")
        """
        found = tokens(text)
        letters = ("i" if each.kind == "identifier" else _LETTERS.get(each.word, "?") for each in found)
        form = _WHOLE.fullmatch("".join(letters))
        if form is None:
            return None
        names = [_unquote(each.text) for each in found]
        if form["schema"] and fold_name(names[form.start("schema")]) != "main":
            return None
        is_listed = form["columns"] not in {None, "*"}
        return cls(names[form.start("table")], names[1 : form.end("columns") : 2] if is_listed else None)


def _unquote(text: str) -> str:
    quote = text[:1]
    return text[1:-1].replace(quote * 2, quote) if quote in {'"', "'"} else text


@dataclass(frozen=True, kw_only=True)
class Change:
    """A statement that changes one table."""

    #: "insert", "copy", "update", "delete", "truncate", "create", "alter" or "drop".
    verb: str
    #: The kind of object that it creates, alters or drops: "table", "view", ...
    kind: str = "table"
    is_temporary: bool = False
    #: Whether it replaces what is there.
    replaces: bool = False
    #: The parts of the table's name, of which the last is its own.
    names: tuple[str, ...] = ()
    #: The queries of a WITH, the text from the verb to the name, and the text behind it.
    queries: str = ""
    head: str = ""
    tail: str = ""
    alias: str | None = None
    #: An INSERT's list of columns, its rows, and what it does where a row's key is there, which may be nothing.
    columns: str = ""
    source: str = ""
    conflict: str = ""
    keeps: bool = False
    #: An UPDATE's columns with their values.
    assignments: tuple[tuple[str, str], ...] = ()
    #: The tables of FROM or USING, the condition, and what of the rows is returned.
    others: str = ""
    condition: str = ""
    returning: str = ""

    @property
    def name(self) -> str:
        """The table's own name."""
        return self.names[-1]

    @property
    def label(self) -> str:
        """The statement's name for the table's rows."""
        return quoted_name(self.alias or self.name)

    def over(self, table: str) -> str:
        """Give the statement over another table."""
        return f"{self.queries} {self.head}{table}{self.tail}"

    def filling(self, rows: str) -> str:
        """Give the INSERT of all rows into a table without keys."""
        return f"{self.queries} INSERT INTO {rows} {self.columns} {self.source}"

    def applying(self, rows: str, table: str) -> str:
        """Give the INSERT of these rows, which looks at the keys."""
        alias = "" if self.alias is None else f" AS {self.label}"
        wanted = self.columns.strip("() ") or "*"
        end = f"{self.conflict} RETURNING {self.returning}" if self.returning else self.conflict
        return f"{self.head}{table}{alias} {self.columns} SELECT {wanted} FROM {rows} {end}"

    def positions(self) -> str:
        """Give the SELECT of the positions of the rows that a DELETE deletes."""
        return f"{self.queries} SELECT DISTINCT {self._position} {self._from}"

    def rows(self, columns: Mapping[str, tuple[str, str | None]]) -> str:
        """Give the SELECT of each row's position and of its columns, by their types and defaults, as they will be."""
        known = {fold_name(name): name for name in columns}
        values = {fold_name(name): value for name, value in self.assignments}
        made = [
            f"CAST({_value(values[key], columns[name][1])} AS {columns[name][0]}) AS {quoted_name(name)}"
            if key in values
            else f"{self.label}.{quoted_name(name)}"
            for key, name in known.items()
        ]
        # A row that several of the other tables match is changed once.
        once = f"DISTINCT ON ({self._position}) " if self.others else ""
        return f"{self.queries} SELECT {once}{self._position}, {', '.join(made)} {self._from}"

    @property
    def _position(self) -> str:
        return f"{self.label}.{POSITION}"

    @property
    def _from(self) -> str:
        others = f", {self.others}" if self.others else ""
        condition = f" WHERE {self.condition}" if self.condition else ""
        return f"FROM {TARGET} AS {self.label}{others}{condition}"

    def returned_rows(self, table: str) -> str:
        """Give the SELECT of what is returned of rows in a table."""
        alias = "" if self.alias is None else f" AS {self.label}"
        return f"SELECT {self.returning} FROM {table}{alias}"


def _value(text: str, default: str | None) -> str:
    return f"({default or 'NULL'})" if text.strip().lower() == "default" else f"({text})"


#: The verbs of the engine's types of statements.
_VERBS = {
    "INSERT": {"insert"},
    "UPDATE": {"update"},
    "DELETE": {"delete", "truncate"},
    "COPY": {"copy"},
    "CREATE": {"create"},
    "ALTER": {"alter", "comment"},
    "DROP": {"drop"},
}


def change_of(text: str, kind: str) -> Change | None:
    """Take a statement of one of the engine's types apart; None for one that changes no table."""
    verbs = _VERBS.get(kind)
    return None if verbs is None else _Reader(text, verbs).change()


class _Reader:
    """A statement from its verb on."""

    def __init__(self, text: str, verbs: Collection[str]) -> None:
        self._data = text.encode()
        self._tokens = [each for each in tokens(text) if each.text != ";"]
        self._at = self._find_verb(verbs)
        self._begin = self._at
        self._verb = self._word()

    def change(self) -> Change | None:
        match self._verb:
            case "insert":
                return self._insert()
            case "copy":
                return self._copy()
            case "update":
                return self._update()
            case "delete":
                return self._delete()
            case "truncate":
                self._take("table")
                return self._of_table()
            case _:
                return self._definition()

    # The tokens from the next one on.

    def _find_verb(self, verbs: Collection[str]) -> int:
        has_queries = bool(self._tokens) and self._tokens[0].word == "with"
        for at, each in enumerate(self._tokens):
            # Behind the last of the queries that come first: one of them may have the verb for a name.
            is_verb = each.word in verbs and each.depth == 0
            if is_verb and (not has_queries or self._tokens[at - 1].text == ")"):
                return at
        raise _unknown(self._data.decode())

    def _peek(self) -> Token:
        return self._tokens[self._at] if self._at < len(self._tokens) else self._END

    _END = Token("", "", 0, 0, 0)

    def _word(self) -> str:
        word = self._peek().word
        self._at += 1
        return word

    def _take(self, *words: str) -> bool:
        """Go behind these words where they come next."""
        following = [each.word for each in self._tokens[self._at : self._at + len(words)]]
        if following != list(words):
            return False
        self._at += len(words)
        return True

    def _text(self, begin: int, end: int | None = None) -> str:
        """Give the text of these tokens, comments within it too."""
        part = self._tokens[begin:end]
        return self._data[part[0].start : part[-1].end].decode() if part else ""

    def _names(self) -> tuple[str, ...]:
        parts = [_unquote(self._peek().text)]
        self._at += 1
        while self._peek().text == "." and self._peek().depth == 0:
            self._at += 1
            parts.append(_unquote(self._peek().text))
            self._at += 1
        return tuple(parts)

    def _of_table(self, **more: object) -> Change:
        """Give a change of the table whose name comes next."""
        if self._at >= len(self._tokens):
            raise _unknown(self._data.decode())
        begin, first = self._tokens[self._begin].start, self._tokens[self._at].start
        names = self._names()
        behind, end = self._tokens[self._at - 1].end, self._tokens[-1].end
        return Change(
            verb=self._verb,
            names=names,
            queries=self._text(0, self._begin),
            head=self._data[begin:first].decode(),
            tail=self._data[behind:end].decode(),
            **more,  # type: ignore[arg-type]
        )

    def _alias(self, until: Collection[str]) -> str | None:
        is_named = self._take("as") or (self._at < len(self._tokens) and self._peek().word not in until)
        if not is_named:
            return None
        self._at += 1
        return _unquote(self._tokens[self._at - 1].text)

    def _clause(self, word: str, end: int | None = None) -> int | None:
        """Find a keyword outside of parentheses."""
        for at in range(self._at, len(self._tokens) if end is None else end):
            each = self._tokens[at]
            # IS DISTINCT FROM is an operator.
            if each.word == word and each.depth == 0 and self._tokens[at - 1].word != "distinct":
                return at
        return None

    def _split(self, words: Sequence[str]) -> list[str]:
        """Give the text behind each of the clauses, which come in this order: each ends where the next begins."""
        end, texts = len(self._tokens), []
        for word in reversed(words):
            at = self._clause(word, end)
            texts.append("" if at is None else self._text(at + 1, end))
            end = end if at is None else at
        return texts[::-1]

    # Each verb.

    def _insert(self) -> Change:
        ignores = self._take("or", "ignore")
        has_alternative = self._take("or", "replace") or ignores
        self._take("into")
        change = self._of_table()
        alias = self._alias(()) if self._peek().word == "as" else None
        columns = self._columns()
        returning = self._clause("returning")
        conflict = self._conflict(returning)
        source = self._text(self._at, conflict if conflict is not None else returning)
        if (has_alternative or conflict is not None) and source.lower().startswith("by name"):
            hint = "list the columns behind the table's name"
            raise NotSupportedError("INSERT BY NAME with a conflict's clause is not known here", hint=hint)
        return _with(
            change,
            alias=alias,
            columns=columns,
            source=source,
            replaces=has_alternative or conflict is not None,
            conflict="" if conflict is None else self._text(conflict, returning),
            keeps=ignores or (conflict is not None and self._does_nothing(conflict)),
            returning="" if returning is None else self._text(returning + 1),
        )

    def _columns(self) -> str:
        """Go behind a list of columns."""
        following = self._tokens[self._at + 1].word if self._at + 1 < len(self._tokens) else ""
        if self._peek().text != "(" or following in _QUERY:
            return ""
        begin = self._at
        while not (self._peek().text == ")" and self._peek().depth == 0) and self._at < len(self._tokens):
            self._at += 1
        self._at += 1
        return self._text(begin, self._at)

    def _conflict(self, end: int | None) -> int | None:
        """Find ON CONFLICT, which a DO follows."""
        for at in range(self._at, len(self._tokens) if end is None else end):
            pair = [each.word for each in self._tokens[at : at + 2] if each.depth == 0]
            if pair == ["on", "conflict"] and any(each.word == "do" for each in self._tokens[at:] if each.depth == 0):
                return at
        return None

    def _does_nothing(self, conflict: int) -> bool:
        words = [each.word for each in self._tokens[conflict:] if each.depth == 0]
        return words[words.index("do") + 1 :][:1] == ["nothing"]

    def _copy(self) -> Change | None:
        if self._peek().text == "(":
            return None
        change = self._of_table()
        self._columns()
        return change if self._take("from") else None

    def _update(self) -> Change:
        change = self._of_table()
        alias = self._alias({"set"})
        self._take("set")
        begin = self._at
        clauses = ("from", "where", "returning")
        found = [at for at in map(self._clause, clauses) if at is not None]
        others, condition, returning = self._split(clauses)
        parts = self._parts(begin, min(found, default=len(self._tokens)))
        assignments = tuple(pair for part in parts for pair in self._assignments(*part))
        return _with(
            change, alias=alias, assignments=assignments, others=others, condition=condition, returning=returning
        )

    def _parts(self, begin: int, end: int) -> list[tuple[int, int]]:
        """Give the parts between commas of the depth of the first token."""
        depth = self._tokens[begin].depth if begin < end else 0
        commas = [at for at in range(begin, end) if self._tokens[at].text == "," and self._tokens[at].depth == depth]
        return list(zip([begin, *(at + 1 for at in commas)], [*commas, end], strict=True))

    def _assignments(self, begin: int, end: int) -> list[tuple[str, str]]:
        """Give the columns and the values of one assignment, which may be of several columns in parentheses."""
        equal = next(
            (at for at in range(begin, end) if self._tokens[at].text == "=" and not self._tokens[at].depth), end
        )
        if self._tokens[begin].text != "(":
            return [(_unquote(self._text(begin, equal)), self._text(equal + 1, end))]
        to, values = self._parts(begin + 1, equal - 1), self._parts(equal + 2, end - 1)
        is_list = self._tokens[equal + 1].text == "(" and self._tokens[end - 1].text == ")"
        if not is_list or len(to) != len(values):
            hint = "write one assignment for each column"
            raise NotSupportedError("values for several columns at once have to be a list in parentheses", hint=hint)
        return [(_unquote(self._text(*name)), self._text(*value)) for name, value in zip(to, values, strict=True)]

    def _delete(self) -> Change:
        self._take("from")
        change = self._of_table()
        alias = self._alias({"using", "where", "returning"})
        others, condition, returning = self._split(("using", "where", "returning"))
        return _with(change, alias=alias, others=others, condition=condition, returning=returning)

    def _definition(self) -> Change | None:
        replaces = self._take("or", "replace")
        is_temporary = self._take("temp") or self._take("temporary")
        kind = self._word()
        if self._verb == "comment" or kind == "":
            kind = "comment"
        for words in (("if", "not", "exists"), ("if", "exists")):
            self._take(*words)
        return self._of_table(kind=kind, is_temporary=is_temporary, replaces=replaces)


def _with(change: Change, **more: object) -> Change:
    return Change(**{**vars(change), **more})


def _unknown(text: str) -> NotSupportedError:
    hint = "write it as one INSERT, UPDATE, DELETE, CREATE TABLE, ALTER TABLE or DROP TABLE"
    start = " ".join(text.split()[:4])
    return NotSupportedError(f"the statement {start!r} ... is not known here", hint=hint)
