"""The steps of a program with an engine, on every source: it moves by its URL."""

import datetime as dt
import enum
import uuid
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import sqlalchemy as sa
from sqlalchemy import orm
from sqlalchemy.dialects import postgresql
from sqlalchemy.engine.url import make_url

import longshore
from longshore import sqlalchemy as dialects
from tests.sqlalchemy import entry_points, register

# Of SQLAlchemy's oldest version, and of pandas'.
pytestmark = pytest.mark.packages

register()

UTC = dt.UTC


class Base(orm.DeclarativeBase):
    """The base of the models."""


class Flag(enum.Enum):
    """Where a ship is from."""

    GERMAN = "de"
    DANISH = "dk"


class Short(sa.TypeDecorator[str]):
    """A type of a program's own."""

    impl = sa.String(2)
    cache_ok = True


class Harbour(Base):
    """A harbour."""

    __tablename__ = "alchemy_harbours"

    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    name: orm.Mapped[str] = orm.mapped_column(sa.String(40), unique=True)
    ships: orm.Mapped[list["Ship"]] = orm.relationship(back_populates="harbour", cascade="all, delete-orphan")


class Ship(Base):
    """A ship, with a column of each type."""

    __tablename__ = "alchemy_ships"

    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    harbour_id: orm.Mapped[int] = orm.mapped_column(sa.ForeignKey(Harbour.id))
    name: orm.Mapped[str | None] = orm.mapped_column(sa.String(40))
    fee: orm.Mapped[Decimal] = orm.mapped_column(sa.Numeric(12, 2))
    length: orm.Mapped[float] = orm.mapped_column(sa.Double)
    built: orm.Mapped[dt.date]
    left: orm.Mapped[dt.datetime] = orm.mapped_column(sa.DateTime)
    tide: orm.Mapped[dt.time]
    rest: orm.Mapped[dt.timedelta]
    is_afloat: orm.Mapped[bool]
    papers: orm.Mapped[dict[str, Any]] = orm.mapped_column(sa.JSON)
    photo: orm.Mapped[bytes]
    key: orm.Mapped[uuid.UUID]
    flag: orm.Mapped[Flag]
    harbour: orm.Mapped[Harbour] = orm.relationship(back_populates="ships")


VALUES: dict[str, Any] = {
    "name": "Adler: 100% 'ok' :x ? $1",
    "fee": Decimal("1234567890.05"),
    "length": 71.5,
    "built": dt.date(1998, 5, 1),
    "left": dt.datetime(2024, 2, 29, 23, 59, 58),  # noqa: DTZ001  the column has no time zone
    "tide": dt.time(4, 5, 6),
    "rest": dt.timedelta(days=3, seconds=7),
    "is_afloat": True,
    "papers": {"sails": [1, None, "Jörg"], "depth": 2.5},
    "photo": b"\x00\xff",
    "key": uuid.UUID(int=7),
    "flag": Flag.DANISH,
}


@pytest.fixture(scope="module", params=["postgresql", "mariadb", "mysql", "sqlite"])
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[sa.Engine]:
    """Give an engine of each source, with the tables of the models."""
    if request.param == "sqlite":
        url = f"sqlite+longshore:///{tmp_path_factory.mktemp('alchemy')}/new.db"
    else:
        server = request.getfixturevalue("postgres" if request.param == "postgresql" else request.param)
        url = server.url().replace("://", "+longshore://", 1)
    engine = sa.create_engine(url, pool_size=1, max_overflow=0, insertmanyvalues_page_size=100)
    Base.metadata.create_all(engine)
    yield engine
    Base.metadata.drop_all(engine)
    engine.dispose()


@pytest.fixture
def session(engine: sa.Engine) -> Iterator[orm.Session]:
    """Give a session over empty tables."""
    with orm.Session(engine) as session:
        session.execute(sa.delete(Ship))
        session.execute(sa.delete(Harbour))
        session.commit()
        yield session


def test_models(session: orm.Session) -> None:
    session.add(Harbour(name="Kiel", ships=[Ship(**VALUES), Ship(**{**VALUES, "name": None})]))
    session.commit()
    harbour = session.scalars(sa.select(Harbour).options(orm.selectinload(Harbour.ships))).one()
    first, second = sorted(harbour.ships, key=lambda ship: ship.id)
    assert {name: getattr(first, name) for name in VALUES} == VALUES
    assert second.name is None
    first.fee += 1
    harbour.ships.remove(second)
    session.commit()
    query = sa.select(Ship.fee, Harbour.name).join(Ship.harbour).where(Ship.left == VALUES["left"])
    assert session.execute(query).all() == [(Decimal("1234567891.05"), "Kiel")]
    session.execute(sa.update(Ship).values(length=Ship.length * 2).where(Ship.name.contains("100%", autoescape=True)))
    assert session.scalars(sa.select(Ship.length)).all() == [143.0]
    session.rollback()
    assert session.scalars(sa.select(Ship.length)).all() == [71.5]


def test_many_rows(session: orm.Session) -> None:
    # Keys of rows that are inserted at once: by RETURNING where the database has it for that.
    session.add_all(Harbour(name=f"Berth {number}") for number in range(250))
    session.flush()
    assert session.scalar(sa.select(sa.func.count()).select_from(Harbour)) == 250
    names = {key: f"Pier {key}" for key in session.scalars(sa.select(Harbour.id).limit(3))}
    session.execute(sa.update(Harbour), [{"id": key, "name": name} for key, name in names.items()])
    assert set(session.scalars(sa.select(Harbour.name).where(Harbour.name.like("Pier %")))) == {*names.values()}


def test_transactions(engine: sa.Engine, session: orm.Session) -> None:
    del session
    with engine.begin() as connection:
        connection.execute(sa.insert(Harbour), {"id": 1, "name": "Kiel"})
        with pytest.raises(sa.exc.IntegrityError) as caught, connection.begin_nested():
            connection.execute(sa.insert(Harbour), {"id": 2, "name": "Kiel"})
        assert isinstance(caught.value.orig, longshore.IntegrityError)
        connection.execute(sa.insert(Harbour), {"id": 2, "name": "Husum"})
    with engine.connect() as connection:
        assert connection.execute(sa.delete(Harbour).where(Harbour.id == 2)).rowcount == 1
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(sa.insert(Harbour), {"id": 3, "name": "Tönning"})
        connection.rollback()
    with engine.connect().execution_options(isolation_level="SERIALIZABLE") as connection:
        assert connection.get_isolation_level() == "SERIALIZABLE"
        assert connection.scalars(sa.select(Harbour.name).order_by(Harbour.id)).all() == ["Kiel", "Husum", "Tönning"]
    with engine.connect() as connection:
        assert connection.get_isolation_level() == connection.default_isolation_level


def test_rows_stream_and_others_wait(engine: sa.Engine, session: orm.Session) -> None:
    session.execute(sa.insert(Harbour), [{"id": n, "name": f"Berth {n}"} for n in range(1, 10_001)])
    session.commit()
    with engine.connect() as connection:
        query = sa.select(Harbour.id).order_by(Harbour.id)
        rows = connection.execution_options(stream_results=True, yield_per=500).execute(query)
        assert [len(part) for part in rows.partitions()] == [500] * 20
        rows = connection.execution_options(stream_results=False).execute(query)
        assert rows.fetchone() == (1,)
        # Another statement on the connection; the rest waits.
        assert connection.scalar(sa.text("SELECT 7")) == 7
        connection.commit()
        assert rows.all() == [(n,) for n in range(2, 10_001)]


def test_pandas(engine: sa.Engine, session: orm.Session) -> None:
    del session
    frame = pd.DataFrame(
        {
            "berth": [1, 2],
            "ship": ["Adler", None],
            "fee": [1.5, float("nan")],
            "left": pd.to_datetime(["2024-02-29", "2025-01-01"]),
        }
    )
    try:
        assert frame.to_sql("alchemy_frames", engine, index=False) == 2
        assert frame.to_sql("alchemy_frames", engine, index=False, if_exists="append", method="multi") == 2
        table = sa.Table("alchemy_frames", sa.MetaData(), autoload_with=engine)
        found = pd.read_sql(sa.select(table).where(table.c.berth == 2), engine)
        assert found["berth"].tolist() == [2, 2]
        assert found["left"].tolist() == [pd.Timestamp("2025-01-01")] * 2
        assert found["fee"].isna().all()
        assert pd.read_sql("SELECT count(*) AS n FROM alchemy_frames", engine)["n"].tolist() == [4]
        chunks = pd.read_sql_table("alchemy_frames", engine, chunksize=3)
        assert [len(chunk) for chunk in chunks] == [3, 1]
    finally:
        with engine.begin() as connection:
            connection.exec_driver_sql("DROP TABLE alchemy_frames")


def test_longshore_within(session: orm.Session) -> None:
    session.add(Harbour(id=5, name="Kiel"))
    session.flush()
    driver = session.connection().connection.driver_connection
    assert isinstance(driver, longshore.Connection)
    # The same transaction.
    found = longshore.read_sql("SELECT id, name FROM alchemy_harbours", driver, return_type="numpy")
    assert (found["id"].tolist(), found["name"].tolist()) == ([5], ["Kiel"])
    assert longshore.write_sql({"id": [6], "name": ["Husum"]}, "alchemy_harbours", driver, if_exists="append") == 1
    assert session.scalars(sa.select(Harbour.name).order_by(Harbour.id)).all() == ["Kiel", "Husum"]
    # SQLAlchemy's connection as `conn` is the same.
    query = "SELECT id FROM alchemy_harbours ORDER BY id"
    assert longshore.read_sql(query, session.connection(), return_type="numpy")["id"].tolist() == [5, 6]
    session.rollback()
    assert longshore.read_sql(query, session.get_bind(), return_type="numpy")["id"].size == 0


ENDED = {
    "postgresql": ("SELECT pg_backend_pid()", "SELECT pg_terminate_backend({})"),
    "mysql": ("SELECT connection_id()", "KILL {}"),
    "mariadb": ("SELECT connection_id()", "KILL {}"),
}


@pytest.mark.parametrize("is_asked", [False, True], ids=["without ping", "with ping"])
@pytest.mark.parametrize("engine", ["postgresql", "mariadb", "mysql"], indirect=True)
def test_reconnects(engine: sa.Engine, is_asked: bool) -> None:  # noqa: FBT001  a parameter
    who, end = ENDED[engine.name]
    ours = sa.create_engine(engine.url, pool_size=1, max_overflow=0, pool_pre_ping=is_asked)
    with ours.connect() as connection:
        session = connection.scalar(sa.text(who))
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql(end.format(session))
    if not is_asked:
        with ours.connect() as connection, pytest.raises(sa.exc.DBAPIError) as caught:
            connection.scalar(sa.text(who))
        assert caught.value.connection_invalidated
    with ours.connect() as connection:
        other = connection.scalar(sa.text(who))
        assert other != session
        # A session that is lost inside a transaction, whose work is not taken for done.
        connection.execute(sa.insert(Harbour), {"name": "Lost"})
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as killer:
            killer.exec_driver_sql(end.format(other))
        with pytest.raises(sa.exc.DBAPIError) as caught:
            connection.commit()
        assert caught.value.connection_invalidated
    with ours.connect() as connection:
        assert connection.scalars(sa.select(Harbour.name).where(Harbour.name == "Lost")).all() == []
    ours.dispose()


@pytest.mark.parametrize("engine", ["postgresql", "mariadb", "mysql"], indirect=True)
def test_secrets(engine: sa.Engine) -> None:
    refused = sa.create_engine(engine.url.set(password="anchor", port=1))
    with pytest.raises(sa.exc.OperationalError) as caught:
        refused.connect()
    assert "anchor" not in f"{caught.value}{caught.value.orig!r}{refused!r}"


@pytest.mark.parametrize("engine", ["postgresql"], indirect=True)
def test_types_of_postgresql(engine: sa.Engine) -> None:
    of = postgresql
    ranges = of.Range
    cases: list[tuple[Any, Any]] = [
        (of.ARRAY(sa.Integer), [1, None, 3]),
        (of.ARRAY(sa.Text), ["a,b", 'c"d', "\\", "NULL"]),
        (of.ARRAY(of.ENUM(Flag, name="alchemy_flag")), [Flag.GERMAN, Flag.DANISH]),
        (of.JSONB, {"a": [1, 2.5, None, "ü"]}),
        (sa.DateTime(timezone=True), dt.datetime(2024, 2, 29, 12, tzinfo=UTC)),
        (sa.Time(timezone=True), dt.time(1, 2, 3, tzinfo=dt.timezone(dt.timedelta(hours=2)))),
        (of.INTERVAL, dt.timedelta(days=-1, microseconds=5)),
        (of.NUMRANGE, ranges(Decimal("1.5"), None, bounds="(]")),
        (of.INT8RANGE, ranges(1, 10)),
        (of.DATERANGE, ranges(dt.date(2024, 1, 1), dt.date(2024, 2, 1))),
        (of.TSRANGE, ranges(dt.datetime(2024, 1, 1, 1), None)),  # noqa: DTZ001
        (of.TSTZRANGE, ranges(None, dt.datetime(2024, 1, 1, tzinfo=UTC))),
        (of.INT4RANGE, ranges(empty=True)),
        (of.INT4MULTIRANGE, [ranges(1, 3), ranges(5, 7)]),
        (of.ARRAY(of.INT4RANGE), [ranges(1, 3), None, ranges(empty=True)]),
        (of.ARRAY(of.TSTZMULTIRANGE, dimensions=1), [[ranges(dt.datetime(2024, 1, 1, tzinfo=UTC), None)]]),
        (of.ARRAY(of.UUID), [uuid.UUID(int=1)]),
        (of.BYTEA, b"\x00\\"),
        (of.INET, "10.0.0.1"),
        (sa.Numeric(20, 10), Decimal("0.0000000001")),
        (of.REGCLASS, "pg_class"),
        (sa.BigInteger, 2**62),
    ]
    with engine.begin() as connection:
        Flag_ = of.ENUM(Flag, name="alchemy_flag")  # noqa: N806  a type
        Flag_.create(connection)
        for type_, value in cases:
            bound = sa.cast(sa.literal(value, type_), type_)
            assert connection.scalar(sa.select(bound)) == value, type_
            assert connection.scalar(sa.select(bound == sa.literal(value, type_))) is True, type_
        assert connection.scalar(sa.text("""SELECT '{"a": [1]}'::jsonb""")) == {"a": [1]}
        assert connection.scalar(sa.text("SELECT 'a:b'::text || :x"), {"x": "%s"}) == "a:b%s"
        with pytest.raises(sa.exc.DataError, match="an array of 2 dimensions"), connection.begin_nested():
            connection.execute(sa.text("SELECT '{{1},{2}}'::int[]"))
        months = sa.literal_column("interval '1 month'", of.INTERVAL)
        with pytest.raises(longshore.DataError, match="months"):
            connection.scalar(sa.select(months))
        Flag_.drop(connection)


@pytest.mark.parametrize("engine", ["postgresql"], indirect=True)
def test_no_value_is_cut_or_rounded_in_postgresql(engine: sa.Engine) -> None:
    of = postgresql
    cases: list[tuple[Any, Any]] = [
        (sa.String(2), "abc"),
        (sa.CHAR(), "abc"),
        (sa.ARRAY(sa.String(2)), ["abc"]),
        (sa.ARRAY(sa.CHAR(2)), ["abc"]),
        (sa.ARRAY(Short), ["abc"]),
        (sa.ARRAY(sa.Integer().with_variant(sa.String(2), "postgresql")), ["abc"]),
        (sa.ARRAY(sa.Numeric(10, 2)), [Decimal("0.001")]),
        (of.ARRAY(of.VARCHAR(1), dimensions=1), ["abc"]),
        (sa.Numeric(4, 1), Decimal("12345.67")),
        (of.BIT(2), of.BitString("101") if hasattr(of, "BitString") else "101"),
        (of.INTERVAL(fields="DAY"), dt.timedelta(days=1, microseconds=5)),
        (of.INTERVAL(precision=2), dt.timedelta(microseconds=5)),
        (of.TIME(precision=2), dt.time(1, 2, 3, 4)),
        (of.ARRAY(of.TIMESTAMP(precision=2)), [dt.datetime(2024, 1, 1, microsecond=5)]),  # noqa: DTZ001
    ]
    with engine.connect() as connection:
        for type_, value in cases:
            assert connection.scalar(sa.select(sa.literal(value, type_))) == value, type_
        # A column's value equals itself, with the blanks at its end.
        padded = sa.cast(sa.literal_column("'ab'"), sa.CHAR(5))
        assert connection.scalar(sa.select(padded)) == "ab   "
        for value in ("ab", "ab   "):
            assert connection.scalar(sa.select(padded == value)) is True


AWARE, NAIVE = dt.datetime(2024, 1, 1, 12, tzinfo=UTC), dt.datetime(2024, 1, 1, 12)  # noqa: DTZ001


@pytest.mark.parametrize(
    ("range_type", "bound", "remedy"),
    [
        (postgresql.DATERANGE, NAIVE, "give dates"),
        (postgresql.TSRANGE, AWARE, "without a time zone"),
        (postgresql.TSTZRANGE, NAIVE, "with a time zone"),
        (postgresql.TSTZRANGE, NAIVE.date(), "with a time zone"),
        (postgresql.TSRANGE, pd.Timestamp("2024-01-01 00:00:00.000000001"), "round it"),
    ],
)
@pytest.mark.parametrize("engine", ["postgresql"], indirect=True)
def test_bounds_that_do_not_fit(engine: sa.Engine, range_type: Any, bound: Any, remedy: str) -> None:
    multirange = getattr(postgresql, range_type.__name__.replace("RANGE", "MULTIRANGE"))
    with engine.connect() as connection:
        for type_, value in ((range_type, postgresql.Range(None, bound)), (multirange, [postgresql.Range(bound)])):
            with pytest.raises(sa.exc.DataError, match=remedy):
                connection.execute(sa.select(sa.literal(value, type_)))


@pytest.mark.parametrize("engine", ["postgresql"], indirect=True)
def test_ranges_that_python_does_not_have(engine: sa.Engine) -> None:
    class Names(postgresql.ranges.AbstractSingleRange[str]):
        __visit_name__ = "names"

    with engine.connect() as connection:
        connection.exec_driver_sql("CREATE TYPE pg_temp.names AS RANGE (subtype = text)")
        for written, type_ in (
            ("'[2024-01-01,infinity)'::daterange", postgresql.DATERANGE),
            ("ARRAY['[0044-03-15 BC,)'::tsrange]", postgresql.ARRAY(postgresql.TSRANGE)),
            ("'[a,b)'::pg_temp.names", Names),
        ):
            with pytest.raises(longshore.DataError, match=r"read its text: type_coerce\(column, Text\(\)\)"):
                connection.scalar(sa.select(sa.literal_column(written, type_)))
        text = sa.type_coerce(sa.literal_column("'[a,b)'::pg_temp.names", Names), sa.Text())
        assert connection.scalar(sa.select(text)) == "[a,b)"


WRITES = """
CREATE FUNCTION pg_temp.moor(number int) RETURNS text LANGUAGE sql
AS 'INSERT INTO alchemy_harbours VALUES (number, number) RETURNING name'
"""


@pytest.mark.parametrize("engine", ["postgresql"], indirect=True)
def test_dropped_results_have_run(engine: sa.Engine, session: orm.Session) -> None:
    del session
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql(WRITES)
        connection.execute(sa.text("SELECT pg_temp.moor(n) FROM generate_series(1, 30000) AS n"))
        assert connection.scalar(sa.select(sa.func.count()).select_from(Harbour)) == 30_000


@pytest.mark.parametrize("engine", ["postgresql"], indirect=True)
def test_read_only_where_an_event_has_begun_a_transaction(engine: sa.Engine) -> None:
    ours = sa.create_engine(engine.url)

    @sa.event.listens_for(ours, "connect")
    def look(connection: Any, _record: Any) -> None:
        connection.execute("SELECT 1")

    options = {"postgresql_readonly": True, "postgresql_deferrable": True}
    with ours.connect().execution_options(**options) as connection:
        shown = sa.text("SELECT current_setting('transaction_read_only'), current_setting('transaction_deferrable')")
        for _ in range(2):
            assert connection.execute(shown).one() == ("on", "on")
            connection.rollback()
    with ours.connect() as connection:
        assert connection.execute(shown).one() == ("off", "off")
    ours.dispose()


@pytest.mark.parametrize("engine", ["postgresql"], indirect=True)
def test_options(engine: sa.Engine) -> None:
    query = sa.text("SELECT 'NaN'::numeric")
    lenient = engine.execution_options(longshore_options={"numeric_nan": "null"})
    with lenient.connect() as connection:
        assert connection.scalar(query) is None
        strict = {"longshore_options": longshore.Options()}
        with pytest.raises(sa.exc.DataError, match="numeric_nan"):
            connection.scalar(query, execution_options=strict)
        with pytest.raises(sa.exc.InterfaceError, match="did you mean 'numeric_nan'"):
            connection.scalar(query, execution_options={"longshore_options": {"numeric_man": "null"}})


@pytest.mark.parametrize("engine", ["mariadb", "mysql"], indirect=True)
def test_mysql_begins_no_two_phases(engine: sa.Engine) -> None:
    with engine.connect() as connection:
        with pytest.raises(sa.exc.NotSupportedError, match="in PostgreSQL alone"):
            connection.begin_twophase()
        assert connection.scalar(sa.text("SELECT 1")) == 1
        assert connection.recover_twophase() == []


@pytest.mark.parametrize("engine", ["postgresql"], indirect=True)
def test_two_phases(engine: sa.Engine, session: orm.Session) -> None:
    session.close()
    for end in ("commit", "rollback"):
        for is_prepared in (True, False):
            with engine.connect() as connection:
                transaction = connection.begin_twophase(f"it's \\ {end}")
                connection.execute(sa.insert(Harbour), {"name": f"{end} {is_prepared}"})
                if is_prepared:
                    transaction.prepare()
                    assert connection.recover_twophase() == [transaction.xid]
                getattr(transaction, end)()
                assert connection.recover_twophase() == []
                # The next one is an ordinary one.
                connection.execute(sa.insert(Harbour), {"name": "another"})
                connection.rollback()
    # What is left by an exception is undone.
    with engine.connect() as connection, pytest.raises(sa.exc.IntegrityError), connection.begin_twophase():
        connection.execute(sa.insert(Harbour), [{"name": "twice"}, {"name": "twice"}])
    with engine.connect() as connection:
        assert connection.recover_twophase() == []
        assert connection.scalars(sa.select(Harbour.name).order_by(Harbour.id)).all() == ["commit True", "commit False"]


@pytest.mark.parametrize("engine", ["mariadb", "mysql"], indirect=True)
def test_types_of_mysql(engine: sa.Engine) -> None:
    from sqlalchemy.dialects import mysql

    table = sa.Table(
        "alchemy_types",
        sa.MetaData(),
        sa.Column("at", mysql.TIMESTAMP(fsp=6)),
        sa.Column("bits", mysql.BIT(9)),
        sa.Column("flags", mysql.SET("a", "b")),
        sa.Column("span", mysql.TIME),
        sa.Column("big", mysql.BIGINT(unsigned=True)),
    )
    values = (dt.datetime(2024, 2, 29, 1, 2, 3, 4), 257, {"a", "b"}, dt.time(23, 59, 1), 2**64 - 1)  # noqa: DTZ001
    east = sa.create_engine(engine.url.update_query_dict({"time-zone": "+02:00"}))
    with engine.begin() as connection:
        table.create(connection)
    try:
        with east.begin() as connection:
            connection.execute(sa.insert(table), dict(zip(table.columns.keys(), values, strict=True)))
            assert connection.execute(sa.select(table)).all() == [values]
            connection.execute(sa.text("UPDATE alchemy_types SET span = '25:00:00'"))
            with pytest.raises(longshore.DataError, match="not a time of day"):
                connection.scalar(sa.select(table.c.span))
            # Texts of the session have the collation of the tables'.
            assert (
                connection.scalars(sa.select(Harbour.id).where(Harbour.name == sa.cast("x", sa.String(9)))).all() == []
            )
    finally:
        east.dispose()
        with engine.begin() as connection:
            table.drop(connection)


@pytest.mark.parametrize("engine", ["mariadb", "mysql"], indirect=True)
def test_time_zone_that_an_event_sets(engine: sa.Engine) -> None:
    from sqlalchemy.dialects import mysql

    columns = [sa.Column("at", mysql.TIMESTAMP), sa.Column("aware", mysql.TIMESTAMP(timezone=True))]
    table = sa.Table("alchemy_zones", sa.MetaData(), *columns, prefixes=["TEMPORARY"])
    ours = sa.create_engine(engine.url)
    offsets = iter(["+02:00", "-03:30"])

    @sa.event.listens_for(ours, "connect")
    def set_zone(connection: Any, _record: Any) -> None:
        connection.execute(f"SET time_zone = '{next(offsets)}'")

    noon = dt.datetime(2024, 2, 29, 12, tzinfo=UTC)
    values = {"at": noon.replace(tzinfo=None), "aware": noon}
    with ours.connect() as east, ours.connect() as west:
        for connection in (east, west):
            table.create(connection)
            connection.execute(sa.insert(table), values)
            assert connection.execute(sa.select(table)).all() == [tuple(values.values())]
        aware = west.execution_options(stream_results=True).scalar(sa.select(table.c.aware))
        assert aware is not None
        assert aware.utcoffset() == dt.timedelta(hours=-3.5)
        # The same points in time in another time zone, from a statement.
        east.exec_driver_sql("SET time_zone = '+00:00'")
        assert east.execute(sa.select(table)).all() == [(dt.datetime(2024, 2, 29, 10), noon)]  # noqa: DTZ001
    ours.dispose()


def test_foreign_keys_of_sqlite(tmp_path: Path) -> None:
    engine = sa.create_engine(f"sqlite+longshore:///{tmp_path}/new.db", connect_args={"check_same_thread": False})

    # As SQLAlchemy's documentation has it, for a driver that begins a transaction late.
    @sa.event.listens_for(engine, "connect")
    def enforce(connection: Any, _record: Any) -> None:
        cursor = connection.cursor()
        cursor.execute("PRAGMA foreign_keys=ON")
        cursor.close()

    Base.metadata.create_all(engine)
    with orm.Session(engine) as session:
        session.add(Ship(**VALUES, harbour_id=1))
        with pytest.raises(sa.exc.IntegrityError, match="FOREIGN KEY"):
            session.flush()
    engine.dispose()


def test_entry_points() -> None:
    found = {name: place.rpartition(":")[2] for name, place in entry_points().items()}
    assert found == {
        "postgresql.longshore": "PostgreSQLDialect",
        "mysql.longshore": "MySQLDialect",
        "mariadb.longshore": "MariaDBDialect",
        "sqlite.longshore": "SQLiteDialect",
    }
    for name, dialect in found.items():
        url = make_url(name.replace(".", "+") + "://")
        assert url.get_dialect() is getattr(dialects, dialect)


@pytest.mark.parametrize(
    ("url", "place"),
    [
        (
            "postgresql+longshore://me:a%40b@h:7/db?sslmode=require",
            {"password": "a@b", "port": 7, "sslmode": "require"},
        ),
        ("postgresql+longshore:///db?host=a:1&host=b:2", {"host": "a,b", "port": "1,2"}),
        ("sqlite+longshore:////srv/100%.db", {"database": "/srv/100%.db", "mode": "rwc"}),
        ("sqlite+longshore:///a.db?mode=ro", {"database": str(Path.cwd() / "a.db"), "mode": "ro"}),
        ("sqlite+longshore://", {"scheme": "sqlite"}),
    ],
)
def test_places(url: str, place: dict[str, Any]) -> None:
    made = make_url(url)
    _, found = made.get_dialect()().create_connect_args(made)
    assert {**found, **place} == found
