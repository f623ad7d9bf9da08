"""H2."""

from tests import installations
from tests.servers.address import LOOPBACK
from tests.servers.endpoint import Endpoint
from tests.servers.server import Server


class H2(Server, Endpoint):
    """An H2, which speaks PostgreSQL's wire and is not PostgreSQL."""

    def __init__(self) -> None:
        """Fetch the jar."""
        self.jar = installations.jar("com.h2database", "h2", "2.5.252")
        super().__init__(user="sa", password="sa", database="test")

    def _command(self) -> list[str]:
        # Without the property H2 listens on every interface.
        java = [*installations.java("256m"), f"-Dh2.bindAddress={LOOPBACK}"]
        options = ["-pg", "-pgPort", str(self.port), "-ifNotExists", "-baseDir", str(self.home)]
        return [*java, "-cp", str(self.jar), "org.h2.tools.Server", *options]
