"""Libraries that may be missing or too old, and their objects, recognised without importing them."""

import sys


def is_of(data: object, module: str, *names: str) -> bool:
    """Whether it is an instance of one of a library's classes; the library is not imported for that."""
    loaded = sys.modules.get(module)
    return loaded is not None and isinstance(data, tuple(getattr(loaded, name) for name in names))


def missing(*, library: str, extra: str, purpose: str, instead: str = "") -> ImportError:
    """Make the error for a ``library`` that is not installed; ``instead`` is what does without."""
    other = f", or {instead}" if instead else ""
    return ImportError(f"{purpose} needs {library}: pip install 'longshore[{extra}]'{other}", name=library)


def require_version(library: str, found: str, minimum: tuple[int, int]) -> None:
    """Refuse a ``library`` older than ``minimum``."""
    parts = found.split(".")[:2]
    # A version that is not numbers is a development build: newer than any minimum.
    if len(parts) < len(minimum) or not all(part.isdigit() for part in parts):
        return
    if tuple(int(part) for part in parts) < minimum:
        oldest = ".".join(str(part) for part in minimum)
        message = f"{library} {found} is too old: pip install '{library}>={oldest}'"
        raise ImportError(message, name=library)
