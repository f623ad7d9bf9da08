"""The sources that there are, whether they are installed, and how databases without one are read."""

from typing import NamedTuple

from longshore import _core, sources
from longshore.foreign import refusing
from longshore.texts import closest

_BY_ADBC = "adbc:driver={0}, with its vendor's driver: pip install 'longshore[adbc]'; see the guide's page Warehouses"
_BY_ODBC = "odbc:Driver=...;Server=..., with its vendor's driver: pip install 'longshore[odbc]'"
#: Databases without a source, by the scheme that their users try, and the address that reads them.
_ELSEWHERE = {
    "snowflake": _BY_ADBC.format("adbc_driver_snowflake"),
    "databricks": _BY_ADBC.format("databricks"),
    **dict.fromkeys(("db2", "teradata", "vertica", "hana", "impala", "hive"), _BY_ODBC),
    **dict.fromkeys(("firebird", "informix", "netezza", "exasol", "sybase", "access"), _BY_ODBC),
    **dict.fromkeys(
        ("yugabytedb", "timescaledb", "neon", "supabase", "questdb", "h2"), "postgresql://..., whose wire it speaks"
    ),
    "tidb": "mysql://..., whose wire it speaks",
}


class KnownSource(NamedTuple):
    """A source of ``list_sources``."""

    scheme: str
    """The beginning of its addresses."""
    database: str
    """The name of its database."""
    is_installed: bool
    """Whether all packages that it needs are there."""
    extra: str | None
    """The extra of this package that brings them; None of what is built in."""

    @property
    def remedy(self) -> str | None:
        """The command that installs what is missing; None where nothing is."""
        return None if self.is_installed else f"pip install 'longshore[{self.extra}]'"


@refusing({})
def list_sources() -> list[KnownSource]:
    """Give every source: its scheme, what it is for, whether it is installed, and the extra that brings its packages.

    >>> [(source.scheme, source.is_installed) for source in list_sources()][:2]
    [('postgresql', True), ('postgres', True)]
    """
    built_in = [KnownSource(*named, is_installed=True, extra=None) for named in _core.SCHEMES.items()]
    others = [
        KnownSource(name, purpose, sources.are_installed(packages), extra)
        for name, (extra, purpose, packages) in sources.SCHEMES.items()
    ]
    return [*built_in, *others]


def instead_of(scheme: str) -> str:
    """Give the hint for a scheme that no source has."""
    if (address := _ELSEWHERE.get(scheme.lower())) is not None:
        return f"read it by {address}"
    known = [source.scheme for source in list_sources()]
    close = closest(scheme.lower(), known)
    return f"did you mean {close}://?" if close else f"known are {', '.join(known)}"
