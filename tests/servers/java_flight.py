"""Apache's Flight SQL server over Derby on any port: `python -m tests.servers.java_flight PORT CLASSPATH`.

Its own main knows 55555 only, which may be taken.
"""

import sys

from tests.servers.address import LOOPBACK

_FLAGS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx512m", "--add-opens=java.base/java.nio=ALL-UNNAMED")


def main(port: int, classpath: str) -> None:
    """Serve until the process is ended."""
    import jpype

    jpype.startJVM(*_FLAGS, classpath=[classpath])
    apache = jpype.JPackage("org.apache.arrow")
    place = apache.flight.Location.forGrpcInsecure(LOOPBACK, port)
    producer = apache.flight.sql.example.FlightSqlExample(place, "derbyDB")
    builder = apache.flight.FlightServer.builder(apache.memory.RootAllocator(), place, producer)
    builder.build().start().awaitTermination()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
