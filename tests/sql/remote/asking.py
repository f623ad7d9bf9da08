"""Queries made at random over a hostile table."""

import random
import re

from tests.sql.remote.hostile import COLUMNS, Columns

__all__ = ["Asker"]

#: The casts of a type's values in the engine's SQL, by what the source's declaration begins with.
_CASTS = {"date": "DATE ", "timestamptz": "TIMESTAMPTZ ", "timestamp": "TIMESTAMP ", "datetime": "TIMESTAMP "}
_COMPARISONS = ["=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM"]
_NUMBERS = ("int", "tinyint", "bigint", "numeric", "decimal", "float", "double", "INTEGER", "REAL")
_TEXTS = ("text", "varchar", "char", "TEXT", "mood")
_SUMMED = ("int2", "int4", "int8", "int", "tinyint", "bigint", "numeric(12,3)", "decimal", "INTEGER")
_GROUPED = (*_SUMMED, "bool", "date", "timestamp", "text", "varchar", "TEXT", "INTEGER", "mood", "uuid")


class Asker:
    """Makes queries."""

    def __init__(self, source: str, seed: int) -> None:
        """Start the dice."""
        self.dice = random.Random(seed)  # noqa: S311  no secret
        self.table = {"pg": "pg.docks.hostile", "my": "my.hostile", "my8": "my.hostile", "lite": "lite.hostile"}[source]
        self.columns: Columns = COLUMNS[source]
        #: MySQL's texts are compared as their collation says, where it answers alone.
        texts = (*_TEXTS, "enum") if source.startswith("my") else ()
        self.compared = [name for name in self.columns if not self._is(name, texts)]

    def query(self) -> str:
        """Give a query."""
        forms = [self._rows, self._rows, self._groups, self._total, self._distinct, self._derived]
        more = [self._joined, self._joined, self._pieces, self._united, self._using, self._nested, self._chosen]
        return self.dice.choice([*forms, *more])()

    def condition(self, depth: int = 2) -> str:
        """Give a condition."""
        if depth and self.dice.random() < 0.5:
            left, right = self.condition(depth - 1), self.condition(depth - 1)
            word = self.dice.choice(["AND", "OR", "AND NOT", "OR NOT"])
            return f"({left} {word} ({right}))"
        return self._test()

    def _joined(self) -> str:
        """Join the table with itself, so that each side has conditions in each place."""
        key = self._pick(_GROUPED)
        join = self.dice.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN", "LEFT JOIN"])
        on = self.dice.choice(["h.id = o.id + 1", f"h.id = o.id AND h.{key} = o.{key}", "h.id = o.id"])
        sides = [self.condition(1), self.condition(1).replace("h.", "o."), f"o.{key} IS NULL"]
        on += self.dice.choice(["", *(f" AND {self._qualified(side)}" for side in sides)])
        query = f"FROM {self.table} AS h {join} {self.table} AS o ON {on}"
        if join in {"SEMI JOIN", "ANTI JOIN"}:
            return f"SELECT h.id, h.{key} {query} WHERE {self._qualified(sides[0])}"
        where = self.dice.choice(["", *(f" WHERE {self._qualified(side)}" for side in sides)])
        return f"SELECT h.id, o.id AS other, o.{key} {query}{where}"

    def _using(self) -> str:
        """Join by columns that become one."""
        keys = [self._pick(_GROUPED) for _ in range(2)]
        using = self.dice.choice(["id", f"id, {keys[0]}", keys[0]])
        join = self.dice.choice(["JOIN", "LEFT JOIN", "INNER JOIN", "RIGHT JOIN", "FULL JOIN"])
        third = self.dice.choice(
            ["", f" JOIN {self.table} AS q USING (id)", f" LEFT JOIN {self.table} AS q USING (id)"]
        )
        picked = self.dice.choice(["*", "o.*", f"{using}, o.{keys[1]}", f"h.id, {using}, o.{keys[0]}"])
        few = f"(SELECT id, {', '.join(dict.fromkeys(keys))} FROM {self.table} WHERE id < 90)"
        query = f"SELECT {picked} FROM {few} AS h {join} {few} AS o USING ({using}){third}"
        return query + self.dice.choice(["", f" WHERE h.{keys[0]} IS NOT NULL", f" WHERE {using.split(',')[0]} <> id"])

    def _nested(self) -> str:
        """Put a query into a condition."""
        one, other, key = (self._pick(_GROUPED) for _ in range(3))
        no, few = self.dice.choice(["", "NOT "]), f"{self.table} AS o WHERE o.id < {self.dice.choice([0, 9, 90, 900])}"
        tests = [
            f"h.{one} {no}IN (SELECT o.{one} FROM {few})",
            f"h.{one} {no}IN (SELECT o.{other} FROM {few})",
            f"h.{one} {no}IN (SELECT o.{one} FROM {few} AND o.{one} IS NOT NULL)",
            f"h.{one} {no}IN (SELECT o.{one} FROM {few} AND o.{key} = h.{key})",
            f"h.{one} {no}IN (SELECT max(o.{one}) FROM {few} GROUP BY o.{key})",
            f"{no}EXISTS (SELECT 1 FROM {few} AND o.{one} = h.{one} AND o.id > h.id)",
            f"{no}EXISTS (SELECT * FROM {few} AND {self._qualified(self.condition(1)).replace('h.', 'o.')})",
            f"h.{one} {self.dice.choice(_COMPARISONS)} (SELECT min(o.{one}) FROM {few})",
            f"h.id > (SELECT count(o.{one}) FROM {few})",
        ]
        tests = [*self.dice.sample(tests, 2), self._qualified(self.condition(1))]
        test = f" {self.dice.choice(['AND', 'OR'])} ".join(tests[: self.dice.randint(1, 3)])
        return f"SELECT h.id, h.{key} FROM {self.table} AS h WHERE {test}"

    def _chosen(self) -> str:
        """Choose between values."""
        values = [self._choice() for _ in range(3)]
        where = self.dice.choice(["", self._where(), f" WHERE {self._choice()} = {self._choice()}"])
        grouped = f"SELECT {values[0]} AS k, count(*) AS n FROM {self.table} AS h{where} GROUP BY k ORDER BY k"
        return self.dice.choice(
            [
                f"SELECT id, {', '.join(values)} FROM {self.table} AS h{where}",
                f"SELECT count({values[0]}), max({values[1]}), sum({values[2]}) FROM {self.table} AS h{where}",
                f"SELECT DISTINCT {values[0]} AS k FROM {self.table} AS h{where}",
                grouped,
            ]
        )

    def _choice(self) -> str:
        name, other = self._pick(_GROUPED), self._pick(_SUMMED)
        value, literal = f"h.{name}", self._literal(name) or "NULL"
        numbers = self.dice.choice(["0", "-1", "1.5", "5000000000", f"h.{self._pick(_SUMMED)}"])
        condition = self._qualified(self.condition(1))
        return self.dice.choice(
            [
                f"CASE WHEN {condition} THEN {value} ELSE {literal} END",
                f"CASE WHEN {condition} THEN {value} END",
                f"CASE WHEN {condition} THEN 1 ELSE 0 END",
                f"CASE WHEN {condition} THEN 'many' WHEN {value} IS NULL THEN 'none' ELSE 'few' END",
                f"CASE {value} WHEN {literal} THEN h.{other} ELSE {numbers} END",
                f"coalesce({value}, {literal})",
                f"coalesce(h.{other}, {numbers})",
                f"nullif({value}, {literal})",
                f"nullif(h.{other}, {numbers})",
            ]
        )

    def _qualified(self, condition: str) -> str:
        """Say of each column without a table that it is one of h."""
        for name in self.columns:
            for spelled in (name, name.upper(), f'"{name}"'):
                condition = re.sub(rf"(?<![\w.'\"]){re.escape(spelled)}(?![\w'\"])", f'h."{name}"', condition)
        return condition

    def _pieces(self) -> str:
        """Put what a source can answer into what it cannot."""
        key, one = self._pick(_GROUPED), self._pick(_GROUPED)
        groups = f"SELECT {key} AS k, count(*) AS n, max({one}) AS m FROM {self.table} AS h{self._where()} GROUP BY 1"
        return self.dice.choice(
            [
                f"SELECT d.*, v.x FROM ({groups}) AS d JOIN (VALUES (1), (3)) AS v(x) ON d.n > v.x",
                f"WITH d AS ({groups}) SELECT a.k, b.n, hash(a.n) FROM d AS a, d AS b WHERE a.n = b.n AND a.m = b.m",
                f"SELECT id, md5('{key}') FROM {self.table} WHERE {one} = (SELECT max({one}) FROM {self.table} AS h)",
                f"SELECT id FROM {self.table} WHERE id % 10 IN (SELECT count(*) FROM {self.table} h GROUP BY {key})",
            ]
        )

    def _united(self) -> str:
        key = self._pick(_GROUPED)
        sides = [f"SELECT id, {key} AS k FROM {self.table} AS h{self._where()}" for _ in range(2)]
        return self.dice.choice([" UNION ", " UNION ALL ", " EXCEPT ", " INTERSECT "]).join(sides)

    def _test(self) -> str:  # noqa: PLR0911  one form, one line
        name = self.dice.choice([name for name in self.compared if self._literal(name)])
        column, form = self._column(name), self.dice.random()
        if form < 0.15:
            return f"{column} IS {self.dice.choice(['', 'NOT '])}NULL"
        if form < 0.3:
            several = ", ".join(self._literal(name) for _ in range(self.dice.randint(1, 3)))
            return f"{column} {self.dice.choice(['', 'NOT '])}IN ({several})"
        if form < 0.4:
            return f"{column} BETWEEN {self._literal(name)} AND {self._literal(name)}"
        # LIKE sees the padding.
        if form < 0.5 and self._is(name, _TEXTS) and not self._is(name, ("char",)):
            pattern = self.dice.choice(["a%", "%a", "_", "A_%", "%", "ß%", "a\\_"])
            return f"{column} {self.dice.choice(['', 'NOT '])}LIKE '{pattern}'"
        if form < 0.6 and self._is(name, _NUMBERS):
            return f"{column} {self.dice.choice(['=', '<', '<>'])} {self.dice.choice(['id', '1', '0.1', '-5', '1.0'])}"
        if form < 0.65:
            return f"{self._literal(name)} {self.dice.choice(_COMPARISONS[:-1])} {column}"
        return f"{column} {self.dice.choice(_COMPARISONS)} {self._literal(name)}"

    def _literal(self, name: str) -> str:
        kind, values = self.columns[name]
        value = self.dice.choice([value for value in values if "9e999" not in value and "0000-00-00" not in value])
        if kind.startswith("char"):
            value = f"{value[:-1].rstrip()}'"
        if kind.startswith(("json", "bytea", "BLOB", "int4[]", "bit", "year")):
            return ""
        cast = next((cast for start, cast in _CASTS.items() if kind.startswith(start)), "")
        if kind in {"float4", "float8"} and value.startswith("'"):
            return f"{value}::DOUBLE"
        if cast and (self.dice.random() < 0.5 or kind == "timestamptz"):
            return f"{cast}{value}"
        return value

    def _column(self, name: str) -> str:
        return self.dice.choice([name, name.upper(), f'"{name}"', f"h.{name}"])

    def _is(self, name: str, kinds: tuple[str, ...]) -> bool:
        return self.columns[name][0].startswith(kinds)

    def _pick(self, kinds: tuple[str, ...]) -> str:
        return self.dice.choice([name for name in self.compared if self._is(name, kinds)])

    def _where(self) -> str:
        return f" WHERE {self.condition()}" if self.dice.random() < 0.8 else ""

    def _rows(self) -> str:
        picked = self.dice.choice(["*", "h.*", ", ".join(map(self._column, self.dice.sample(list(self.columns), 3)))])
        query = f"SELECT {picked}, id AS own FROM {self.table} AS h{self._where()}"
        if self.dice.random() < 0.4:
            key, way = self._pick(_GROUPED), self.dice.choice(["", " DESC", " NULLS FIRST", " DESC NULLS LAST"])
            query += f" ORDER BY {self._column(key)}{way}, h.id"
            query += self.dice.choice(["", " LIMIT 7", " LIMIT 5 OFFSET 3"])
        return query

    def _groups(self) -> str:
        key, having = self._pick(_GROUPED), self.dice.choice(["", " HAVING count(*) > 3"])
        by = self.dice.choice([self._column(key), "1", "ALL", "k"])
        query = f"SELECT {self._column(key)} AS k, {self._aggregates()} FROM {self.table} AS h{self._where()}"
        query += f" GROUP BY {by}{having}"
        return query + self.dice.choice(["", " ORDER BY k", " ORDER BY 1 DESC NULLS FIRST", " ORDER BY k DESC LIMIT 3"])

    def _total(self) -> str:
        return f"SELECT {self._aggregates()} FROM {self.table} h{self._where()}"

    def _aggregates(self) -> str:
        summed, one, other = (self._column(self._pick(kinds)) for kinds in (_SUMMED, _GROUPED, _GROUPED))
        known = [
            "count(*)",
            f"count({one})",
            f"count(DISTINCT {one})",
            f"min({one})",
            f"max({other})",
            f"sum({summed})",
        ]
        if "price" in self.columns:
            known += ["sum(price * (1 - price))", "sum(price + id) AS s", "max(price * 2)"]
        return ", ".join(self.dice.sample(known, 2))

    def _distinct(self) -> str:
        return f"SELECT DISTINCT {self._column(self._pick(_GROUPED))} FROM {self.table} AS h{self._where()}"

    def _derived(self) -> str:
        key = self._pick(_GROUPED)
        inner = f"SELECT id, {self._column(key)} AS k FROM {self.table} AS h{self._where()}"
        return self.dice.choice(
            [
                f"SELECT k, count(*) AS n FROM ({inner}) AS d GROUP BY k",
                f"WITH d AS ({inner}) SELECT a.k, b.id FROM d AS a JOIN d AS b ON a.id = b.id",
                f"WITH d AS ({inner}) SELECT d.k, b.id FROM d LEFT JOIN {self.table} AS b ON d.id = b.id AND b.id > 9",
                f"SELECT count(*) FROM {self.table} o WHERE id IN (SELECT id FROM ({inner}) d WHERE d.id > o.id - 3)",
            ]
        )
