"""A server that speaks TDS, and answers what a test has told it to."""

import contextlib
import json
import socket
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import trustme

from tests import installations
from tests.certificates import Certificates
from tests.servers.server import Server, free_port
from tests.tds import tokens
from tests.tds.requests import Request
from tests.tds.tokens import Column, Count, Cut, Part, Rows, Wait
from tests.tds.types import fixed, nvarchar, simple, varbinary

Kind = Literal["login", "batch", "rpc", "bulk", "transaction"]
#: Longer than any test waits.
WAIT_SECONDS = 30.0


class MSSQL(Server):
    """A stand-in for a SQL Server: its handshake is that of Microsoft's mock-up, its answers are the tests' own.

        server.answer("SELECT 1 AS one", Rows([Column("one", fixed("int"))], [(1,)]))

    It listens without encryption on `port`; on the others with that of the login, of all, and with TDS 8's.
    """

    scheme: ClassVar[str] = "mssql"

    def __init__(self) -> None:
        """Choose ports; `start` does the rest."""
        self.program = installations.tds_server()
        super().__init__(user="sa", password="harb0ur!", database="master")
        self.control_port, self.login_port, self.on_port, self.strict_port = (free_port() for _ in range(4))
        self.certificates = Certificates.make(self.home / "certificates", key_type=trustme.KeyType.RSA)
        self._control: socket.socket | None = None
        self._since = 0

    def answer(
        self, sql: str, *said: Part, kind: Kind | None = None, match: Literal["is", "starts", "contains"] = "is"
    ) -> None:
        """Answer a statement, as a batch and in a call of a procedure; a later answer to it goes before this one."""
        self.answers(sql, [said], kind=kind, match=match)

    def answers(
        self,
        sql: str,
        each: Sequence[Sequence[Part]],
        *,
        kind: Kind | None = None,
        match: Literal["is", "starts", "contains"] = "is",
    ) -> None:
        """Answer the first time with the first, and so on; the last stays."""
        kinds: list[Kind] = ["batch", "rpc"] if kind is None else [kind]
        for one in kinds:
            how = match if one == "batch" else "contains"
            steps = [_steps(said, procedure=one == "rpc") for said in each]
            self._ask({"answer": steps, "kind": one, "text": sql, "match": how})

    def take_bulk(self, columns: Sequence[Column], rows: int) -> None:
        """Answer INSERT BULK into a table of these columns, and what clients ask about it before: so many rows come."""
        described = Rows(columns)
        self.answer("SET FMTONLY ON", described, kind="batch", match="starts")
        # As mssql-tds asks: three results, of which the last has the names of collations.
        count = Rows([Column("", fixed("int"))], [(0,)])
        names = [Column("", kind) for kind in (simple("int"), nvarchar(128), varbinary(5), nvarchar(128))]
        collations = Rows(names, [(at, column.name, None, None) for at, column in enumerate(columns, 1)])
        self.answer("SELECT @@TRANCOUNT;", count, described, collations, kind="batch", match="starts")
        for start in ("insert bulk", "INSERT BULK"):
            self.answer(start, Count(), kind="batch", match="starts")
        self.answer("", Count(rows), kind="bulk")

    def refuse(self, number: int, message: str, *, state: int = 1, severity: int = 14) -> None:
        """Refuse logins from now on, until `clear`."""
        self.answer("", tokens.ServerError(number, message, severity, state), kind="login")

    def clear(self) -> None:
        """Forget answers and requests."""
        self._ask({"clear": "all"})
        self._since = 0

    def clear_requests(self) -> None:
        """Forget requests alone."""
        self._ask({"clear": "requests"})
        self._since = 0

    def requests(self, *kinds: str) -> list[Request]:
        """Return the requests since `clear`, of these kinds or all."""
        found = [_request(one) for one in self._ask({"since": 0})["requests"]]
        return [request for request in found if not kinds or request.kind in kinds]

    def wait_for(self, kind: str) -> Request:
        """Wait until a request of a kind has come since the last one that was waited for, and return it."""
        reply = self._ask({"since": self._since, "until": kind, "seconds": WAIT_SECONDS})
        found = [_request(one) for one in reply["requests"]]
        place = next((at for at, request in enumerate(found) if request.kind == kind), None)
        if place is None:
            message = f"no request of kind {kind} came within {WAIT_SECONDS} s"
            raise TimeoutError(message)
        self._since += place + 1
        return found[place]

    def close(self) -> None:
        """Stop at once, and remove the server's directory."""
        if self._control is not None:
            self._control.close()
            self._control = None
        super().close()

    def _ask(self, command: dict[str, Any]) -> dict[str, Any]:
        if self._control is None:
            self._control = socket.create_connection((self.host, self.control_port))
        self._control.sendall(json.dumps(command).encode() + b"\n")
        with self._control.makefile("rb") as replies:
            reply: dict[str, Any] = json.loads(replies.readline())
        if "error" in reply:
            raise RuntimeError(reply["error"])
        return reply

    def _command(self) -> list[str]:
        files = [self.certificates.server, self.certificates.server_key]
        ports = [self.control_port, self.port, self.login_port, self.on_port, self.strict_port]
        return [*map(str, [self.program, *files, *ports])]

    def _ready(self) -> bool:
        # It listens there last.
        with contextlib.suppress(OSError), socket.create_connection((self.host, self.control_port), timeout=1):
            return True
        return False

    def _surroundings(self) -> dict[str, Any]:
        # The checkout may be private to us.
        return {key: value for key, value in super()._surroundings().items() if key in {"cwd", "env"}}

    def _socket(self, place: str, port: int) -> dict[str, str | int]:
        raise NotImplementedError


def _request(found: dict[str, Any]) -> Request:
    return Request(**{**found, "body": bytes.fromhex(found["body"])})


def _steps(said: Sequence[Part], *, procedure: bool) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = []
    for step in tokens.stream(said, procedure=procedure):
        if isinstance(step, Wait):
            steps.append({"wait": step.seconds})
        elif isinstance(step, Cut):
            return [*_first(steps, step.bytes), {"close": True}]
        else:
            data, times = step
            steps.append({"send": data.hex(), "times": times})
    return steps


def _first(steps: list[dict[str, Any]], size: int | None) -> list[dict[str, Any]]:
    """Return the steps up to so many bytes."""
    if size is None:
        return steps
    kept = []
    for step in steps:
        data = step.get("send", "") * step.get("times", 1)
        kept.append({**step, "send": data[: 2 * size], "times": 1} if data else step)
        size -= len(data) // 2
        if size <= 0:
            break
    return kept
