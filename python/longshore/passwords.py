"""Passwords in texts: where they stand, and the text without them."""

import re

__all__ = ["LOGIN", "SETTING", "STARS", "masked"]

STARS = "***"
#: In a URL, whose password may hold what should have been percent-encoded. The bound keeps the search linear.
LOGIN = re.compile(r"(?P<before>://[^\s:/@]*:)(?P<password>[^'\"\n]{0,4096})@")
#: In a setting, ``password=rope``, and in SQL, ``SECRET 'rope'``.
SETTING = re.compile(
    r"(?P<before>(?:^|[?&;,(\s'\"])(?:\w*(?:password|token|secret|api_key)|passwd|pwd|identified\s+by)"
    r"(?:\s*=\s*['\"]*|\s+['\"]+))(?P<password>[^&;\s'\"]+)",
    re.IGNORECASE,
)


def masked(text: str) -> str:
    """Give a text without the passwords of the URLs and the settings in it.

    >>> masked("near 'mysql://me:rope@host/x?token=anchor'")
    "near 'mysql://me:***@host/x?token=***'"
    >>> masked("ATTACH 'host=quay password=''rope'''")
    "ATTACH 'host=quay password=''***'''"
    >>> masked("CREATE SECRET s (TYPE s3, SECRET 'rope'), motherduck_token = anchor")
    "CREATE SECRET s (TYPE s3, SECRET '***'), motherduck_token = ***"
    """
    if "://" in text:
        text = LOGIN.sub(rf"\g<before>{STARS}@", text)
    return SETTING.sub(rf"\g<before>{STARS}", text)
