"""Bytes, taken from the front."""

import struct
from typing import Any


class Reader:
    """The rest of some bytes."""

    def __init__(self, data: bytes) -> None:
        """Begin at the first."""
        self.data, self.at = data, 0

    def take(self, size: int) -> bytes:
        """Return the next bytes, or fail where there are not as many."""
        if self.at + size > len(self.data):
            message = f"{size} bytes are wanted at {self.at} of {len(self.data)}"
            raise ValueError(message)
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self, form: str) -> Any:
        """Return the next number, whose form is one of `struct`; the low byte is the first."""
        (number,) = struct.unpack("<" + form, self.take(struct.calcsize("<" + form)))
        return number

    def text(self, form: str = "B") -> str:
        """Return the next text of UTF-16, whose units are counted before it."""
        return self.take(2 * self.number(form)).decode("utf-16-le")

    @property
    def left(self) -> int:
        """How many bytes there are."""
        return len(self.data) - self.at
