"""Engines over SQLite's files: their paths, options and locks."""

import datetime as dt
from pathlib import Path

import pytest
import sqlalchemy as sa

import longshore
from tests.sqlalchemy import register

pytestmark = pytest.mark.packages

register()


def test_secrets() -> None:
    with pytest.raises(sa.exc.ArgumentError, match="no user and no host") as caught:
        sa.create_engine("sqlite+longshore://me:anchor@/a.db")
    assert "anchor" not in str(caught.value)


def test_options() -> None:
    # Next to those that the dialect itself needs.
    for options in ({"memory_limit": None}, longshore.Options(memory_limit=None)):
        engine = sa.create_engine("sqlite+longshore://", execution_options={"longshore_options": options})
        with engine.connect() as connection:
            connection.exec_driver_sql("CREATE TABLE days (day date)")
            connection.execute(sa.text("INSERT INTO days VALUES ('2024-02-29')"))
            days = sa.table("days", sa.column("day", sa.Date))
            assert connection.scalar(sa.select(days.c.day)) == dt.date(2024, 2, 29)
        engine.dispose()


def test_relative_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)
    engine = sa.create_engine("sqlite+longshore:///new.db", poolclass=sa.NullPool)
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE t (a int)")
    monkeypatch.chdir(tmp_path / "other")
    with engine.connect() as connection:
        assert sa.inspect(connection).get_table_names() == ["t"]
    assert not Path("new.db").exists()


def test_begin_by_hand(tmp_path: Path) -> None:
    engine = sa.create_engine(f"sqlite+longshore:///{tmp_path}/new.db?timeout=0.1")

    @sa.event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE t (a int)")
        with engine.connect() as other, pytest.raises(sa.exc.OperationalError, match="locked"):
            other.exec_driver_sql("SELECT 1")
    engine.dispose()
