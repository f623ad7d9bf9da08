"""What a caller wants of a result whose types are those of ``read_sql``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from longshore import _core, frames
from longshore.arguments import wanted
from longshore.errors import InterfaceError
from longshore.options import Options
from longshore.read import batch_bytes, batch_rows, frame_for, policy, whole


@dataclass(frozen=True, slots=True)
class Terms:
    """What a caller wants of the rows."""

    types: dict[str, Any]
    policy: dict[str, str]
    batch_rows: int
    batch_bytes: int
    memory_limit: int | Literal["auto"] | None

    def inquiry(self, text: str, knowledge: _core.Knowledge, *, binary_forms: bool) -> _core.Inquiry:
        """Begin to ask what the rows of a statement need."""
        return _core.Inquiry(
            statement=text,
            knowledge=knowledge,
            binary_forms=binary_forms,
            types=self.types,
            policy=self.policy,
            batch_rows=self.batch_rows,
            batch_bytes=self.batch_bytes,
            memory_limit=self.memory_limit,
        )


@dataclass(frozen=True, slots=True)
class FrameTerms:
    """What a caller wants of a whole result."""

    rows: Terms
    frame: frames.Target
    json_objects: bool

    def build(self, reading: _core.Reading) -> Any:
        """Make the frame."""
        return whole(reading, self.frame, json_objects=self.json_objects)


def frame_terms(
    return_type: str,
    *,
    schema: Mapping[str, Any] | None,
    options: Mapping[str, Any] | Options | None,
    dtype_backend: str | None = None,
    index_col: str | Sequence[str] | None = None,
) -> FrameTerms:
    """Check a caller's arguments, before anything is sent; raises as ``read_sql`` does."""
    chosen = Options.of(options)
    frame = frame_for(return_type, dtype_backend, index_col)
    if frame is None:
        message = f"{return_type} is not a frame"
        raise InterfaceError(message)
    limit = chosen.memory_limit_bytes
    rows = Terms(
        types=wanted(schema),
        policy=policy(return_type, dtype_backend, chosen),
        batch_rows=batch_rows(None, return_type, frame),
        batch_bytes=batch_bytes(return_type, limit, None),
        memory_limit=chosen.memory_budget,
    )
    return FrameTerms(rows, frame, json_objects=chosen.json == "object")


def batch_terms(
    batch_size: int | None, *, schema: Mapping[str, Any] | None, options: Mapping[str, Any] | Options | None
) -> Terms:
    """Check the arguments of a caller who wants batches; raises as ``read_sql`` does."""
    chosen = Options.of(options)
    if chosen.memory_limit_bytes is not None:
        message = "options['memory_limit'] bounds a whole result, and batches come one by one: set batch_size"
        raise InterfaceError(message)
    return Terms(
        types=wanted(schema),
        policy=policy("arrow_stream", None, chosen),
        batch_rows=batch_rows(batch_size, "arrow_stream", None),
        batch_bytes=batch_bytes("arrow_stream", None, None),
        memory_limit=chosen.stream_budget,
    )
