"""QuestDB."""

from tests import installations
from tests.servers.address import LOOPBACK
from tests.servers.endpoint import Endpoint
from tests.servers.server import Server


class QuestDB(Server, Endpoint):
    """A QuestDB, which speaks PostgreSQL's wire and is not PostgreSQL."""

    def __init__(self) -> None:
        """Fetch the jar."""
        self.jar = installations.jar("org.questdb", "questdb", "9.3.4")
        super().__init__(user="admin", password="quest", database="qdb")

    def _prepare(self) -> None:
        (self.home / "conf").mkdir(exist_ok=True)
        self.give(self.home / "conf")
        settings = {
            "pg.net.bind.to": f"{LOOPBACK}:{self.port}",
            "http.enabled": "false",
            "http.min.enabled": "false",
            "line.tcp.enabled": "false",
            "telemetry.enabled": "false",
            "shared.worker.count": "2",
        }
        text = "".join(f"{key}={value}\n" for key, value in settings.items())
        self._write(self.home / "conf" / "server.conf", text)

    def _command(self) -> list[str]:
        java = installations.java("512m")
        return [*java, "-p", str(self.jar), "-m", "io.questdb/io.questdb.ServerMain", "-d", str(self.home)]
