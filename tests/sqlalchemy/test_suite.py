"""SQLAlchemy's own suite for dialects, against real servers, in a process of its own: its plugin wants pytest whole."""

import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.long import IS_LONG
from tests.sqlalchemy import ROOT

CONFIGURATION = """
[tool:pytest]
[sqla_testing]
requirement_cls = tests.sqlalchemy.requirements:Requirements
profile_file = profiles.txt
"""
DATABASE = "sqlalchemy_suite"
#: How many tests each database runs at least, and in the long run; `requirements` says why not the others.
RUN = {"postgresql": (619, 1875), "mariadb": (565, 1735), "sqlite": (560, 1620)}
#: Seconds that a hang is taken for: CI takes a tenth of them.
LONGEST = 900
SCHEMAS = ("test_schema", "test_schema_2")


@pytest.fixture
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Give the URL of an empty database of the source, with the schemas that the suite asks for."""
    if request.param == "sqlite":
        yield f"sqlite+longshore:///{tmp_path}/suite.db"
        return
    if request.param == "postgresql":
        postgres = request.getfixturevalue("postgres")
        postgres.psql(f"CREATE DATABASE {DATABASE} TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
        postgres.psql("; ".join(f"CREATE SCHEMA {name}" for name in SCHEMAS), database=DATABASE)
        yield postgres.url(database=DATABASE).replace("postgresql", "postgresql+longshore", 1)
        postgres.psql(f"DROP DATABASE {DATABASE} WITH (FORCE)")
        return
    mariadb = request.getfixturevalue("mariadb")
    mariadb.sql("; ".join(f"CREATE DATABASE {name} CHARACTER SET utf8mb4" for name in (DATABASE, *SCHEMAS)))
    yield mariadb.url(database=DATABASE).replace("mariadb", "mariadb+longshore", 1)
    mariadb.sql("; ".join(f"DROP DATABASE {name}" for name in (DATABASE, *SCHEMAS)))


@pytest.mark.parametrize("url", ["postgresql", "mariadb", "sqlite"], indirect=True)
def test_suite(url: str, tmp_path: Path) -> None:
    (tmp_path / "setup.cfg").write_text(CONFIGURATION)
    plugins = ("tests.sqlalchemy.plugin", "sqlalchemy.testing.plugin.pytestplugin", "no:cacheprovider", "no:xdist")
    command = [sys.executable, "-m", "pytest", "--noconftest", *(f"-p{name}" for name in plugins)]
    command += [f"-c{tmp_path}/setup.cfg", f"--dburi={url}", "--junitxml=report.xml", "-q", "--tb=short"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    command.append(str(ROOT / "tests/sqlalchemy/suite.py"))
    ran = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=LONGEST
    )
    assert ran.returncode == 0, ran.stdout[-20_000:] + ran.stderr[-2000:]
    report = ET.parse(tmp_path / "report.xml").find("testsuite")  # noqa: S314  our own
    assert report is not None
    assert int(report.attrib["tests"]) - int(report.attrib["skipped"]) >= RUN[url.partition("+")[0]][IS_LONG]
