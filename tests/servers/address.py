"""Where a server answers, whatever it speaks."""

import abc
from dataclasses import dataclass, field
from typing import ClassVar, Self
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

LOOPBACK = "127.0.0.1"


@dataclass(eq=False)
class Address(abc.ABC):
    """Where a server answers, and as whom to go there."""

    scheme: ClassVar[str]

    port: int
    user: str
    database: str
    host: str = LOOPBACK
    password: str | None = None
    parameters: dict[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, url: str) -> Self:
        """Take a URL apart; what it leaves out is the class's default."""
        parts = urlsplit(url)
        said = {
            "host": parts.hostname,
            "port": parts.port,
            "user": unquote(parts.username or ""),
            "password": None if parts.password is None else unquote(parts.password),
            "database": unquote(parts.path.removeprefix("/")),
        }
        given = {name: value for name, value in said.items() if value}
        return cls(**given, parameters=dict(parse_qsl(parts.query)))  # type: ignore[arg-type]

    def url(
        self,
        *,
        user: str | None = None,
        password: str | None = None,
        database: str | None = None,
        host: str | None = None,
        port: int | None = None,
        **parameters: str | int,
    ) -> str:
        """Return the URL; an argument replaces the endpoint's own. A host may be the place of a Unix socket."""
        if password is None and user in {None, self.user}:
            password = self.password
        login = quote(user or self.user, safe="") + ("" if password is None else ":" + quote(password, safe=""))
        host, port = host or self.host, port or self.port
        place = f"{host}:{port}"
        query: dict[str, str | int] = {**self.parameters, **parameters}
        if host.startswith("/"):
            place, query = "", {**self._socket(host, port), **query}
        path = quote(database or self.database, safe="")
        return f"{self.scheme}://{login}@{place}/{path}" + ("?" + urlencode(query, quote_via=quote) if query else "")

    @abc.abstractmethod
    def _socket(self, place: str, port: int) -> dict[str, str | int]:
        """Return the parameters of a URL that names a Unix socket."""
