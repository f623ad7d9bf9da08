"""Hostile texts run nothing, in any source: ``types=`` takes one type, names and bounds are quoted."""

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import longshore

SOURCES = ["postgresql", "mariadb", "mysql", "sqlite"]
DATA = {"a": [7, None], "b": ["x", "y"]}


class Place(NamedTuple):
    """A database with a table that must survive, and a name that no table has."""

    source: str
    url: str
    table: str
    victim: str


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """Give a place in one of the sources."""
    source, name = request.param, f"types_{uuid.uuid4().hex[:8]}"
    if source == "sqlite":
        url = f"sqlite:///{tmp_path}/a.db?mode=rwc"
    else:
        url = request.getfixturevalue("postgres" if source == "postgresql" else source).url()
    victim = f"{name}_victim"
    longshore.write_sql({"a": [1]}, victim, url)
    yield Place(source, url, name, victim)
    with longshore.connect(url, autocommit=True) as connection:
        for table in (name, victim):
            connection.execute(f"DROP TABLE IF EXISTS {table}")


def in_sources(*names: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("place", names or SOURCES, indirect=True)


HOSTILE = [
    "int); DROP TABLE {victim}; CREATE TABLE {table}_2 (a int",
    "int); DROP TABLE {victim}; --",
    "int) ; DROP TABLE {victim} /*",
    "int; DROP TABLE {victim}",
    "int, c int",
    "int, PRIMARY KEY (a)",
    "int default (1)); DROP TABLE {victim}; --",
    "varchar(9) default 'a\\'); DROP TABLE {victim}; --'",
    "varchar(9) default 'a''); DROP TABLE {victim}; --",
    "varchar(9) default $$a'$$); DROP TABLE {victim}; --'",
    "int ` ' `); DROP TABLE {victim}; --'",
    "int -- ' \n); DROP TABLE {victim}; --'",
    "int # ' \n); DROP TABLE {victim}; --'",
    "int /* ' */); DROP TABLE {victim}; --'",
    "int /*! ); DROP TABLE {victim} */",
    "int \" ' \"); DROP TABLE {victim}; --'",
    "int\0",
    "",
    " ",
    "int)",
    "numeric(3",
    "varchar(9) default 'a",
]


@in_sources()
def test_no_second_statement_and_no_other_column(place: Place) -> None:
    # Elsewhere, that is a text.
    bracketed = ["int [ ' ]); DROP TABLE {victim}; --'"] * (place.source == "sqlite")
    for hostile in HOSTILE + bracketed:
        text = hostile.format(victim=place.victim, table=place.table)
        for if_exists in ("fail", "replace"):
            with pytest.raises(longshore.InterfaceError, match=r'types\["a"\] is not one type of a column'):
                longshore.write_sql(DATA, place.table, place.url, if_exists=if_exists, types={"a": text})
        with pytest.raises(longshore.InterfaceError, match="not one type"):
            longshore.copy("SELECT 1 AS a", "sqlite:///:memory:", place.table, place.url, types={"a": text})
    assert longshore.read_sql(f"SELECT a FROM {place.victim}", place.url, return_type="numpy")["a"].tolist() == [1]
    with pytest.raises(longshore.ProgrammingError):
        longshore.read_sql(f"SELECT * FROM {place.table}", place.url)


@pytest.mark.parametrize("if_exists", ["fail", "replace"])
@in_sources("postgresql", "mariadb")
def test_nor_in_parallel(place: Place, if_exists: Any) -> None:
    types = {"a": f"int); DROP TABLE {place.victim}; --"}
    with pytest.raises(longshore.InterfaceError, match="not one type"):
        longshore.write_sql(DATA, place.table, place.url, if_exists=if_exists, types=types, parallel=2, batch_size=1)
    assert longshore.read_sql(f"SELECT a FROM {place.victim}", place.url, return_type="numpy")["a"].tolist() == [1]


#: The types of the columns.
HANDY = {
    "": [
        ("bigint default 5", "text"),
        ("bigint check (a > 5 and a in (6, 7))", "text"),
        ("numeric(10,2)", "varchar(10) not null"),
        ("numeric(10, 2) unique", "char(3)"),
        ("bigint", "varchar(10) default 'a;b,c)--''' not null"),
    ],
    "postgresql": [
        ("double precision", 'text collate "C"'),
        ("int null", "pg_catalog.varchar(3)"),
        ("int", '"text"'),
        ("int constraint five check (a > 5)", "text"),
    ],
    "mysql": [
        ("int unsigned", "enum('x','y')"),
        ("bigint(20) unsigned null comment 'tons; and, more'", "varchar(9) character set utf8mb4 collate utf8mb4_bin"),
        ("double", "set('x', 'y') not null"),
        ("int default null", "longtext"),
    ],
    "sqlite": [
        ("[any thing]", "TEXT COLLATE NOCASE"),
        ("INTEGER", '`a type` DEFAULT "x"'),
        ("UNSIGNED BIG INT", "VARCHAR(3) CHECK (length(b) = 1)"),
    ],
}


@in_sources()
def test_constraints_are_handy(place: Place) -> None:
    own = HANDY["mysql" if place.source == "mariadb" else place.source]
    for a, b in [*HANDY[""], *own]:
        for _ in range(2):
            longshore.write_sql(DATA, place.table, place.url, if_exists="replace", types={"a": a, "b": b})
        read = longshore.read_sql(f"SELECT * FROM {place.table} ORDER BY b", place.url, return_type="arrow")
        assert [
            (None if a is None else int(a), b.strip()) for a, b in zip(*read.to_pydict().values(), strict=True)
        ] == [
            (7, "x"),
            (None, "y"),
        ]
        if "not null" in b:
            with pytest.raises(longshore.IntegrityError):
                longshore.write_sql({"a": [1], "b": [None]}, place.table, place.url, if_exists="append")
        # MySQL before 8.0.16 reads a CHECK, and forgets it.
        if "check" in a and place.source != "mysql":
            with pytest.raises(longshore.IntegrityError):
                longshore.write_sql({"a": [1], "b": ["z"]}, place.table, place.url, if_exists="append")


@in_sources("postgresql")
def test_arrays_and_zones(place: Place) -> None:
    data = {"a": [[1, 2], None], "b": ["2026-01-01 00:00:00+00", None]}
    types = {"a": "bigint[]", "b": "timestamp with time zone"}
    longshore.write_sql(data, place.table, place.url, types={**types, "b": "text"})
    longshore.write_sql({"a": data["a"]}, place.table, place.url, if_exists="replace", types={"a": "int[3]"})
    table = longshore.read_sql(f"SELECT * FROM {place.table}", place.url, return_type="arrow")
    assert table.to_pydict() == {"a": [[1, 2], None]}


# MySQL has no snapshot that several sessions share.
@pytest.mark.filterwarnings("ignore::longshore.SerialReadWarning")
@in_sources()
def test_names_and_bounds_are_quoted(place: Place) -> None:
    for quote in ("'", '"', "`", "]", "\\", "$$", "--", "/*"):
        text = f"a{quote}); DROP TABLE {place.victim}; --"
        name = f'"{text.replace(chr(34), chr(34) * 2)}"'
        longshore.write_sql({text: [7, 8]}, name, place.url, key=text, types={text: "int"})
        longshore.write_sql({text: [8, 9]}, name, place.url, if_exists="upsert", key=text)
        query = f"SELECT * FROM {quoted(place, text)}"
        read = longshore.read_sql(
            query, place.url, index_col=text, partition_on=text, partition_num=2, schema={text: "int64"}
        )
        assert sorted(read.index) == [7, 8, 9]
        for ends in ((text, text), (7, text)):
            with pytest.raises(longshore.Error):
                longshore.read_sql(query, place.url, partition_on=text, partition_num=2, partition_range=ends)
        with pytest.raises(longshore.InterfaceError, match="index_col"):
            longshore.read_sql(query, place.url, index_col=f"{text}'")
        with longshore.connect(place.url, autocommit=True) as connection:
            connection.execute(f"DROP TABLE {quoted(place, text)}")
        with pytest.raises(longshore.Error):
            longshore.read_sql("SELECT 1 AS a", place.url, partition_on=text, partition_num=2)
    assert longshore.read_sql(f"SELECT a FROM {place.victim}", place.url, return_type="numpy")["a"].tolist() == [1]


def quoted(place: Place, name: str) -> str:
    mark = "`" if place.source in {"mariadb", "mysql"} else '"'
    return f"{mark}{name.replace(mark, mark * 2)}{mark}"


@in_sources("postgresql", "sqlite")
def test_names_in_sql_are_quoted(place: Place) -> None:
    for quote in ("'", '"', "`", "$$", "--"):
        text = f"a{quote}; DROP TABLE {place.victim}; --"
        name = '"{}"'.format(text.replace('"', '""'))
        query = f"SELECT a FROM {name}.{place.victim}"
        assert longshore.sql(query, attach={text: place.url}, return_type="numpy")["a"].tolist() == [1]
        tables: dict[str, Any] = {text: {"a": [7]}}
        assert longshore.sql(f"SELECT * FROM {name}", return_type="numpy", **tables)["a"].tolist() == [7]
        file = text.replace("'", "''")
        for missing in (f"'{file}'", f"'{file}.arrow'", f"read_csv('{file}')"):
            with pytest.raises(longshore.Error):
                longshore.sql(f"SELECT * FROM {missing}", attach={"a": place.url})
        for option in ("numeric_nan", "memory_limit", text):
            with pytest.raises(longshore.InterfaceError):
                longshore.sql("SELECT 1", options={option: text})
    assert longshore.read_sql(f"SELECT a FROM {place.victim}", place.url, return_type="numpy")["a"].tolist() == [1]
