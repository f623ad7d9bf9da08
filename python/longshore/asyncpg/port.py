"""What a transport gives its bytes to: the core, and asyncpg's own protocol behind it."""

import asyncio
import contextlib
import socket
from typing import Any

from longshore import _core

# How long less may lie there. Loops count in milliseconds.
_SECONDS = 0.001

_TCP = {socket.AF_INET, socket.AF_INET6}


class LowWater:
    """Has the loop woken for a good amount at once (``SO_RCVLOWAT``), and never for longer than a millisecond.

    A server sends 8 KB at a time. Every tick in which nothing has come ends it; the kernel then tells of what lies
    there at once.
    """

    __slots__ = ("_loop", "_seen", "_socket", "_timer", "_transport", "core")

    core: _core.Port
    """Counts the bytes that come, and is told when waiting has brought none."""

    def __init__(self, transport: Any) -> None:
        """Look after a transport."""
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        found = transport.get_extra_info("socket")
        has_low_water = hasattr(socket, "SO_RCVLOWAT") and found is not None and found.family in _TCP
        self._socket = found if has_low_water else None
        self._timer: asyncio.TimerHandle | None = None
        self._seen = 0

    def change(self, size: int) -> None:
        """Wait for so many bytes; with 0, for any."""
        if size == 0:
            self._end()
        elif self._set(size) and self._timer is None:
            self._watch()

    def _watch(self) -> None:
        self._seen = self.core.received
        self._timer = self._loop.call_later(_SECONDS, self._tick)

    def _tick(self) -> None:
        if self.core.received > self._seen:
            self._watch()
            return
        self._end()
        self.core.hurry()

    def _end(self) -> None:
        if self._timer is None:
            return
        self._timer.cancel()
        self._timer = None
        if self._set(1) and not self._transport.is_closing():
            # Kernels before 4.18 tell of what lies there only when they are asked again.
            with contextlib.suppress(RuntimeError):
                self._transport.pause_reading()
                self._transport.resume_reading()

    def _set(self, size: int) -> bool:
        if self._socket is None:
            return False
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, size)
        except OSError:
            # Closed meanwhile, or a system without it.
            return False
        return True


class Port(asyncio.BufferedProtocol):
    """Receives into the core's buffer; what is not a row that somebody waits for goes on to ``protocol``.

    It stays for the connection's life: so it always knows where a message begins, which asyncpg would not tell.
    """

    # Attributes instead of methods: the event loop calls the core without a frame of Python in between.
    __slots__ = ("buffer_updated", "core", "eof_received", "get_buffer", "pause_writing", "protocol", "resume_writing")

    def __init__(self, protocol: Any, transport: Any) -> None:
        """Stand between ``transport`` and ``protocol``."""
        self.protocol = protocol
        low_water = LowWater(transport)
        self.core = low_water.core = _core.Port(protocol.data_received, low_water.change)
        self.get_buffer = self.core.get_buffer  # type: ignore[method-assign]
        self.buffer_updated = self.core.buffer_updated  # type: ignore[method-assign]
        self.eof_received = protocol.eof_received  # type: ignore[method-assign]
        self.pause_writing = protocol.pause_writing  # type: ignore[method-assign]
        self.resume_writing = protocol.resume_writing  # type: ignore[method-assign]

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell asyncpg, and let it go."""
        self.core.close()
        self.protocol.connection_lost(exc)
