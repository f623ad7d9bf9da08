"""Files of rows: what the commands read and write beside databases."""

from longshore.shell.files.formats import STANDARD, FileLayout, Format, layout_of

__all__ = ["STANDARD", "FileLayout", "Format", "layout_of", "needs_arrow"]


def needs_arrow() -> None:
    """Raise ``ImportError`` where pyarrow, which every file needs, is missing."""
    from longshore.frames.libraries import missing, require_version

    try:
        import pyarrow as pa
    except ImportError as error:
        raise missing(library="pyarrow", extra="arrow", purpose="this command") from error
    require_version("pyarrow", pa.__version__, (16, 0))
