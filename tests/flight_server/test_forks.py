"""A process that serves, or has served, forks: its child leaves the server alone, and is a client, or serves itself."""

from pathlib import Path

import pytest

import longshore
from tests.flight_server.conftest import made
from tests.forking import answers

# Python's own, where the process has threads.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")

QUERY = "SELECT count(*) AS n FROM berths"


def berths(url: str) -> list[int]:
    """Count over a connection of its own."""
    table: object = longshore.read_sql(QUERY, url, return_type="arrow")
    return table["n"].to_pylist()  # type: ignore[index, no-any-return]


@pytest.mark.parametrize("kind", ["duckdb", "store", "sqlite"])
def test_a_child_leaves_its_parents_server_alone(tmp_path: Path, kind: str) -> None:
    (tmp_path / "other").mkdir()
    other = made("sqlite", tmp_path / "other")

    def serve_in_the_child() -> list[int]:
        with longshore.serve(other, port=0) as own:
            return berths(own.url)

    with longshore.serve(made(kind, tmp_path), port=0) as server:
        assert berths(server.url) == [10]
        uses = (lambda: berths(server.url), server.stop, lambda: berths(server.url), serve_in_the_child)
        assert answers(*uses) == [[10], None, [10], [10]]
        assert berths(server.url) == [10]
    # Its threads are gone.
    assert answers(serve_in_the_child) == [[10]]


def test_a_child_does_not_speak_on_a_connection_to_its_parents_server(tmp_path: Path) -> None:
    with longshore.serve(made("duckdb", tmp_path), port=0) as server, longshore.connect(server.url) as connection:
        assert connection.execute(QUERY) == 1
        refused, own = answers(lambda: connection.execute(QUERY), lambda: berths(server.url))
        assert "forked from" in refused
        assert own == [10]
        assert connection.execute(QUERY) == 1
