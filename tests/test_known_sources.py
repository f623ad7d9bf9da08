"""The sources that there are, and what an address of another, or of one that is not installed, says."""

import re

import pytest

import longshore
from longshore import _core
from longshore.sources import SCHEMES
from longshore.sources.known import instead_of
from tests.shell.running import alone


def test_every_scheme_is_listed_once() -> None:
    known = longshore.list_sources()
    assert [source.scheme for source in known] == [*_core.SCHEMES, *SCHEMES]
    assert all(source.database for source in known)
    assert {source.extra for source in known} == {None, *(extra for extra, *_ in SCHEMES.values())}
    built_in = [source for source in known if source.extra is None]
    assert all(source.is_installed and source.remedy is None for source in built_in)


def test_what_is_missing_says_what_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SCHEMES, "harbour", ("harbour", "a harbour", ["pyarrow", "no_such_package"]))
    found = next(source for source in longshore.list_sources() if source.scheme == "harbour")
    assert (found.is_installed, found.extra) == (False, "harbour")
    assert found.remedy == "pip install 'longshore[harbour]'"
    with pytest.raises(ImportError, match=r"a harbour needs .*no-such-package: pip install 'longshore\[harbour\]'"):
        longshore.read_sql("SELECT 1 AS n", "harbour://quay")


@pytest.mark.parametrize(
    ("address", "hint"),
    [
        ("snowflake://me@account/database", r"adbc:driver=adbc_driver_snowflake, .*pip install 'longshore\[adbc\]'"),
        ("databricks://workspace", "adbc:driver=databricks"),
        ("db2://host/database", r"odbc:Driver=.*pip install 'longshore\[odbc\]'"),
        ("yugabytedb://host/database", "postgresql://"),
        ("harbour://quay", "known are postgresql, .*, sqlite, .*duckdb, .*odbc"),
        ("postgrsql://quay", r"^did you mean postgresql://\?$"),
        ({"scheme": "db2", "host": "quay"}, "odbc:Driver="),
    ],
)
def test_a_database_without_a_source(address: object, hint: str) -> None:
    with pytest.raises(longshore.InterfaceError, match="no driver for URLs that start with") as caught:
        longshore.read_sql("SELECT 1 AS n", address)  # type: ignore[call-overload]
    assert re.search(hint, caught.value.hint or "")


def test_a_hint_is_of_no_source() -> None:
    for scheme in (*_core.SCHEMES, *SCHEMES):
        assert instead_of(scheme).startswith(("known are", f"did you mean {scheme}://"))


def test_the_command() -> None:
    done = alone("sources", "--json")
    assert (done.code, done.errors) == (0, "")
    listed = done.said["sources"]
    assert [each["scheme"] for each in listed] == [source.scheme for source in longshore.list_sources()]
    assert {"scheme", "database", "is_installed", "extra", "remedy"} == {*listed[0]}
    text = alone("sources").text
    assert all(f"{each['scheme']}:" in text for each in listed)


@pytest.mark.parametrize("url", ["clickhouse://u:hush@127.0.0.1:1/d", "trino://u@127.0.0.1:1/c"])
def test_a_server_that_does_not_listen_is_named(url: str) -> None:
    with pytest.raises(longshore.OperationalError, match=r"127\.0\.0\.1:1: .*refused(.|\n)*is running") as refused:
        longshore.read_sql("SELECT 1", url)
    assert "hush" not in str(refused.value)


@pytest.mark.parametrize(
    "url",
    [
        "clickhouse://u:hu%zzsh@127.0.0.1:1/d",
        "trino://u:hu/sh@127.0.0.1:1/c",
        "oracle://u:1/hush@127.0.0.1:1/s",
        "duckdb:///harbour.db?hush",
        "bigquery://project/dataset?location=%zzhush",
    ],
)
def test_one_reader_takes_urls_apart(url: str) -> None:
    with pytest.raises(longshore.InterfaceError, match=r"the connection's URL has|broken percent-encoding") as refused:
        longshore.read_sql("SELECT 1", url)
    assert "hu" not in f"{refused.value}"


@pytest.mark.parametrize("scheme", ["clickhouse", "trino", "oracle"])
@pytest.mark.parametrize("port", ["65536", "0", "-1", "1_0", "\u0663", "1,2"])
def test_a_port_is_a_port(scheme: str, port: str) -> None:
    with pytest.raises(longshore.InterfaceError, match="the port is not a number from 1 to 65535"):
        longshore.read_sql("SELECT 1", f"{scheme}://u@127.0.0.1:{port}/d")


def test_a_plus_is_a_plus() -> None:
    from longshore.sources.clickhouse_http import Address

    address = Address.of("u:a+b@harbour/quay?password=c+d", {})
    assert (address.user, address.password, address.database) == ("u", "c+d", "quay")
