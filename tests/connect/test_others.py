"""Others than PostgreSQL itself that speak its wire."""

from tests.connect.asking import failure, read
from tests.servers import H2, Endpoint, PgBouncer, QuestDB


def test_pgbouncer(pgbouncer: PgBouncer) -> None:
    for _ in range(3):
        assert read(pgbouncer.url()) == 1
    assert read(pgbouncer.url(sslmode="prefer", application_name="mine")) == 1


def test_questdb(questdb: QuestDB) -> None:
    assert read(questdb.url()) == 1
    assert failure(questdb.url(password="hidden"))


def test_h2(h2: H2) -> None:
    assert read(h2.url()) == 1


def test_the_shared_server(postgres: Endpoint) -> None:
    assert read(postgres.url()) == 1
