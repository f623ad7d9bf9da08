"""Statements that begin no transaction: within one, they do nothing without a word, or fail."""

from pathlib import Path
from typing import Any

import pytest

import longshore

STATEMENTS = (
    "PRAGMA foreign_keys = ON",
    "/* ours */ pragma cache_size",
    "ATTACH ':memory:' AS x",
    "DETACH x",
    "VACUUM",
)


@pytest.mark.parametrize("way", ["cursor", "execute", "script"])
def test_statements_that_begin_none(path: Path, way: str) -> None:
    with longshore.connect(f"sqlite:///{path}?mode=rwc") as connection, connection.cursor() as cursor:
        ways: dict[str, Any] = {
            "cursor": cursor.execute,
            "execute": connection.execute,
            "script": connection.execute_script,
        }
        run = ways[way]
        for statement in STATEMENTS:
            run(statement)
            assert connection.in_transaction is False
        assert cursor.execute("PRAGMA foreign_keys").fetchall() == [(1,)]
        run("BEGIN IMMEDIATE")
        assert connection.in_transaction is True
        connection.rollback()
        run("SELECT 1")
        assert connection.in_transaction is True
