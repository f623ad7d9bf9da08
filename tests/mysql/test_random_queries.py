"""Queries made at random, read in parts: the rows are those of the serial read, whether or not it could be split."""

import os
import random
import warnings

import pytest

from tests.mysql.comparing import Options, rows
from tests.mysql.reading import table

COUNT = int(os.environ.get("LONGSHORE_RANDOM_QUERIES", "60"))
COLUMNS = ["id", "k", "bin", "price", "at", "kind", "flag", "hash", "port", "word"]
CONDITIONS = [
    *["id % 3 = 0", "k > 2 OR port IS NULL", "price < 5", "word = 'a'", "at > '2020-01-02'", "kind <> 'z'"],
    "port IN (SELECT id FROM ports WHERE name < 'D')",
    "id > (SELECT avg(id) FROM ships) AND k = 1",
]
COMPUTED = ["k + port", "price / 3", "date(at)", "concat(bin, kind)", "coalesce(k, -1)", "hex(hash)"]
AGGREGATES = ["count(*)", "count(DISTINCT k)", "sum(price)", "min(at)", "max(id)", "sum(k)", "min(bin)", "avg(price)"]


class Maker:
    """Makes queries."""

    def __init__(self, seed: int) -> None:
        """Start the dice."""
        self.dice = random.Random(seed)  # noqa: S311  no secret

    def source(self) -> str:
        """Give what stands in a FROM."""
        return self.dice.choice(
            [
                *["ships AS s"] * 6,
                "(SELECT * FROM ships) AS s",
                "(SELECT id, k, bin, price, at, kind, flag, hash, port, word FROM ships WHERE id % 2 = 1) AS s",
                "(SELECT * FROM ships WHERE k < 5 UNION ALL SELECT * FROM ships WHERE k >= 5) AS s",
                "(SELECT DISTINCT id, k, bin, price, at, kind, flag, hash, port, word FROM ships) AS s",
                "ships AS s JOIN (SELECT port AS p, count(*) AS c FROM ships GROUP BY port) AS g ON g.p = s.port",
                "ships AS s LEFT JOIN (SELECT name FROM ports) AS n ON n.name = s.bin",
            ]
        )

    def select(self) -> tuple[str, list[str]]:
        """Give a SELECT and the columns that may be its key."""
        where = f" WHERE {self.dice.choice(CONDITIONS)}" if self.dice.random() < 0.6 else ""
        picked = self.dice.sample(2 * COLUMNS[:-1] + COMPUTED, self.dice.randint(1, 3))
        names = [f"c{at}" for at in range(len(picked))]
        items = [f"{expression} AS {name}" for expression, name in zip(picked, names, strict=True)]
        form = self.dice.choice([*["plain"] * 6, "grouped", "distinct"])
        if form == "plain":
            return f"SELECT {', '.join(items)}, id AS own FROM {self.source()}{where}", [*names, "own"]
        if form == "distinct":
            return f"SELECT DISTINCT {', '.join(items)} FROM {self.source()}{where}", names
        by = self.dice.choice([picked, names, [str(at + 1) for at in range(len(picked))]])
        aggregates = self.dice.sample(AGGREGATES, 2)
        items += [f"{aggregate} AS a{at}" for at, aggregate in enumerate(aggregates)]
        having = " HAVING count(*) > 3" if self.dice.random() < 0.3 else ""
        return f"SELECT {', '.join(items)} FROM {self.source()}{where} GROUP BY {', '.join(by)}{having}", [*names, "a0"]

    def query(self) -> tuple[str, str]:
        """Give a query and its key."""
        select, names = self.select()
        key = self.dice.choice(names)
        form = self.dice.choice([*["plain"] * 6, "derived", "expression", "ordered", "united"])
        if form == "derived":
            select = f"SELECT d.* FROM ({select}) AS d"
        elif form == "expression":
            select = f"WITH e AS ({select}) SELECT * FROM e WHERE e.{names[0]} IS NOT NULL"
        elif form == "ordered":
            select += f" ORDER BY {key} DESC"
        elif form == "united":
            select = f"{select} {self.dice.choice(['UNION', 'UNION ALL'])} {select}"
        return select, key


@pytest.mark.parametrize("seed", range(4))
def test_queries_at_random(seed: int, harbour: str, together: Options) -> None:
    maker, parallel = Maker(seed), 0
    for _ in range(COUNT // 4):
        query, key = maker.query()
        serial = table(query, harbour)
        with warnings.catch_warnings(record=True, action="always") as caught:
            parts = table(query, harbour, partition_on=key, partition_num=maker.dice.randint(2, 6), options=together)
        parallel += not caught
        assert parts.schema.equals(serial.schema, check_metadata=True), (query, key)
        assert rows(parts) == rows(serial), (query, key)
    assert parallel > 0
