"""Passwords, kept out of whatever a command says."""

import re
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import unquote

from longshore.passwords import LOGIN, SETTING, STARS, masked

__all__ = ["Curtain"]

#: An argument that is one URL, whose password should have been encoded all the more.
_ALONE = re.compile(r"^-*(?:[^\s=:]*=)?[A-Za-z][\w+.-]*://[^:/@]*:(?P<password>.*)@", re.DOTALL)
_NAMES = re.compile("password|passwd|passphrase|_pwd$|token|secret", re.IGNORECASE)
#: A shorter one would be found in every other word, and hides nothing.
_SHORTEST = 3


class Curtain:
    """Hides the secrets of a command's arguments and of its environment.

    >>> curtain = Curtain(["postgresql://me:rope%20walk@host/harbour"], {"PGPASSWORD": "anchor"})
    >>> curtain.hide("no 'rope walk' nor anchor; mysql://you:x@host")
    "no '***' nor ***; mysql://you:***@host"
    """

    def __init__(self, arguments: Iterable[str], environment: Mapping[str, str]) -> None:
        """Look for what is secret."""
        found = {secret for text in (*arguments, *environment.values()) for secret in _secrets(text)}
        found |= {value for name, value in environment.items() if _NAMES.search(name)}
        # As errors quote it.
        found |= {repr(secret)[1:-1] for secret in found}
        # What holds another secret goes first, or its rest would show.
        self._secrets = sorted((secret for secret in found if len(secret) >= _SHORTEST), key=len, reverse=True)

    def hide(self, text: str) -> str:
        """Give the text without them."""
        for secret in self._secrets:
            text = text.replace(secret, STARS)
        return masked(text)


def _secrets(text: str) -> Iterator[str]:
    if "://" not in text:
        return
    for pattern in (LOGIN, SETTING, _ALONE):
        for match in pattern.finditer(text):
            yield match["password"]
            yield unquote(match["password"])
