"""ClickHouse's HTTP interface over chdb."""

import contextlib
import http.client
import importlib.util
import signal
import sys
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlencode

from tests import installations
from tests.servers.server import Server


class ClickHouse(Server):
    """A stand-in for a ClickHouse server, over ClickHouse's own engine in the wheel of chdb."""

    scheme: ClassVar[str] = "clickhouse"
    end_now = signal.SIGKILL

    def __init__(self) -> None:
        """Choose a directory and a port; `start` does the rest."""
        if importlib.util.find_spec("chdb") is None:
            reason = "chdb is not installed"
            raise installations.Missing(reason, "pip install chdb")
        super().__init__(user="default", password="harbour", database="default")

    def sql(self, query: str) -> str:
        """Run a statement, and return what the server answers: columns parted by tabs."""
        with contextlib.closing(http.client.HTTPConnection(self.host, self.port, timeout=60)) as connection:
            headers = {"X-ClickHouse-User": self.user, "X-ClickHouse-Key": self.password or ""}
            connection.request("POST", "/?" + urlencode({"query": query}), headers=headers)
            response = connection.getresponse()
            text = response.read().decode()
        if response.status != http.HTTPStatus.OK:
            raise RuntimeError(text)
        return text

    def _command(self) -> list[str]:
        script = Path(__file__).with_name("clickhouse_stand_in.py")
        return [sys.executable, str(script), str(self.port), str(self.home), self.user, self.password or ""]

    def _surroundings(self) -> dict[str, Any]:
        # The checkout and its packages may be private to us.
        return {key: value for key, value in super()._surroundings().items() if key in {"cwd", "env"}}

    def _socket(self, place: str, port: int) -> dict[str, str | int]:
        raise NotImplementedError
