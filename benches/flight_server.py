"""A server of pyarrow's that hands out a table from memory: `python -m benches.flight_server FILE CERTIFICATE KEY`.

Its answer to any statement are the batches of the Arrow file. It prints its port.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.flight as fl


class Table(fl.FlightServerBase):  # type: ignore[misc]
    """A table, under one ticket."""

    def __init__(self, table: pa.Table, certificate: Path, key: Path) -> None:
        """Listen on a free port."""
        pair = (certificate.read_bytes(), key.read_bytes())
        super().__init__("grpc+tls://127.0.0.1:0", tls_certificates=[pair])
        self._table = table

    def get_flight_info(self, _: Any, descriptor: fl.FlightDescriptor) -> fl.FlightInfo:
        """Tell of the one ticket."""
        endpoint = fl.FlightEndpoint(b"table", [])
        return fl.FlightInfo(self._table.schema, descriptor, [endpoint], self._table.num_rows, -1)

    def do_get(self, _: Any, __: fl.Ticket) -> fl.FlightDataStream:
        """Hand the batches out."""
        return fl.RecordBatchStream(self._table)

    def do_action(self, _: Any, __: fl.Action) -> Iterator[bytes]:
        """Answer that nothing is held."""
        return iter(())


def main(file: str, certificate: str, key: str) -> None:
    """Serve until the process is ended."""
    with pa.OSFile(file) as source:
        table = pa.ipc.open_file(source).read_all()
    server = Table(table, Path(certificate), Path(key))
    print(server.port, flush=True)
    server.serve()


if __name__ == "__main__":
    main(*sys.argv[1:])
