"""Flight SQL: Apache's own example servers in Go and in Java."""

import os
import sys
from pathlib import Path
from typing import Any, ClassVar

from tests import installations
from tests.servers.server import Server


class GoFlight(Server):
    """Apache's example in Go: SQLite behind Flight SQL."""

    scheme: ClassVar[str] = "grpc"

    def __init__(self) -> None:
        """Build it."""
        self.program = installations.go_flight()
        super().__init__(user="", database="")

    def url(self, **parameters: Any) -> str:
        """Return the URL."""
        query = "&".join(f"{name}={value}" for name, value in parameters.items())
        return f"grpc://{self.host}:{self.port}" + ("?" + query if query else "")

    def _command(self) -> list[str]:
        return [str(self.program), "-host", self.host, "-port", str(self.port)]

    def _socket(self, place: str, port: int) -> dict[str, str | int]:
        raise NotImplementedError


class JavaFlight(Server):
    """Apache's example in Java: Derby behind Flight SQL."""

    scheme: ClassVar[str] = "grpc"
    start_seconds = 120

    def __init__(self) -> None:
        """Fetch it."""
        self.classpath = installations.java_flight()
        super().__init__(user="", database="")

    def url(self, **parameters: Any) -> str:
        """Return the URL."""
        query = "&".join(f"{name}={value}" for name, value in parameters.items())
        return f"grpc://{self.host}:{self.port}" + ("?" + query if query else "")

    def _command(self) -> list[str]:
        return [sys.executable, "-m", "tests.servers.java_flight", str(self.port), self.classpath]

    def _surroundings(self) -> dict[str, Any]:
        # As the tests' own user, who can read their Python.
        checkout = str(Path(__file__).parents[2])
        return {"cwd": self.home, "env": {**os.environ, "PYTHONPATH": checkout}}

    def _socket(self, place: str, port: int) -> dict[str, str | int]:
        raise NotImplementedError
