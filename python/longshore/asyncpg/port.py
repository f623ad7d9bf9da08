"""The protocol that a transport gives its bytes to: the core, and asyncpg's own protocol behind it."""

import asyncio
from typing import Any

from longshore import _core


class Port(asyncio.BufferedProtocol):
    """Receives into the core's buffer; what is not a row that somebody waits for goes on to ``protocol``.

    It stays for the connection's life: so it always knows where a message begins, which asyncpg would not tell.
    """

    # Attributes instead of methods: the event loop calls the core without a frame of Python in between.
    __slots__ = ("buffer_updated", "core", "eof_received", "get_buffer", "pause_writing", "protocol", "resume_writing")

    def __init__(self, protocol: Any) -> None:
        """Stand before ``protocol``."""
        self.protocol = protocol
        self.core = _core.Port(protocol.data_received)
        self.get_buffer = self.core.get_buffer  # type: ignore[method-assign]
        self.buffer_updated = self.core.buffer_updated  # type: ignore[method-assign]
        self.eof_received = protocol.eof_received  # type: ignore[method-assign]
        self.pause_writing = protocol.pause_writing  # type: ignore[method-assign]
        self.resume_writing = protocol.resume_writing  # type: ignore[method-assign]

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell asyncpg, and let it go."""
        self.core.close()
        self.protocol.connection_lost(exc)
