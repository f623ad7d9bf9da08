"""Words that the design's table of words replaces: `make lint` refuses them. `python -m tests.words`."""

import re
import sys
from itertools import pairwise
from pathlib import Path

#: The words that are refused, and what to say instead.
WORDS = {
    r"moments?": "snapshot; date, time, timestamp",
    r"halts?": "reason, not split",
    r"newcomers?": "replacement table",
    r"reliev\w*|relief": "session factory, release",
    r"patience": "deadline, timeout; low-water mark",
    r"crews?": "workers",
    r"knots?": "bound",
    r"nobody": "no one",
    r"anew": "again",
    r"settle[drs]?": "finalise, inferred type",
    r"misread\w*": "unrepresentable, refused",
    r"swift\w*": "staging table",
    r"beside": "staging table; next to",
    r"noroom|no_room|make_room|room_for|roomy": "OutOfMemory, try_reserve, check_available",
    r"unasked": "automatic",
    r"lenders?": "owner of a lease",
    # "there is no server" is plain English; "is no longer", too.
    r"(?<!there )is no (?!longer\b|more\b)": "is not a ..., cannot be ..., because ...",
}

#: Lines that may hold one: the file, a part of the line, and why.
ALLOWED = [
    ("tests/words.py", "", "the list itself"),
    ("tests/asyncpg/test_frames.py", "crew", "a table of ships' people"),
    ("tests/postgres/test_writing.py", "crew", "a table of ships' people"),
    ("tests/installations.py", "nobody", "the user of that name"),
    ("python/longshore/_core.pyi", "def done(self)", "an attribute"),
    ("python/longshore/_core.pyi", "def held(self)", "an attribute"),
    ("crates/py/src/cursor.rs", "fn done(&self)", "the same attribute"),
    ("crates/py/src/server.rs", "fn held(&self)", "the same attribute"),
]

FOLDERS = ("benches", "crates", "docs", "fuzz", "python", "tests")
SUFFIXES = {".rs", ".py", ".pyi", ".md"}
# Words within identifiers count: `moment_of`, `is_moment`.
PATTERNS = {re.compile(rf"(?i)(?<![a-z])(?:{word})(?![a-z])"): instead for word, instead in WORDS.items()}


#: A comment that says of a thing what it is for, and not what it is: the line before is not a part of it.
QUESTION = re.compile(r'\s*(?P<mark>//[/!]|#:|"""|r""") ?What\b')


#: Participles that do not end in -ed, without what is a verb as well, as `put` and `read`, or a noun, as `bound`.
IRREGULAR = (
    "begun|bent|blown|bought|broken|brought|built|caught|chosen|dealt|done|drawn|driven|felt|forgotten|found|frozen|given|gone|"
    "grown|heard|held|hidden|hung|kept|known|laid|lent|lost|made|meant|overridden|paid|rewritten|said|seen|sent|shaken|shown|sold|"
    "sought|spelt|spent|spoken|struck|sunk|swept|taken|taught|thought|thrown|told|torn|unbound|understood|undone|unread|withheld|"
    "woken|won|worn|wound|written"
)
#: Verbs that end as participles do, and the word of Rust's libraries for what they hand out as a `Box<dyn ...>`.
VERBS = "boxed|embed|exceed|feed|need|proceed|seed|succeed"
PREPOSITIONS = "as|at|by|for|from|in|of|on|to|up|with"
#: A function that a participle alone names: a verb says what it does, a noun what it gives; an adjective, what is true.
PARTICIPLE = re.compile(
    rf"\b(?:def|fn) _?(?!(?:{VERBS})\b)(?:[a-z]+ed|{IRREGULAR})(?:_(?:{PREPOSITIONS}))?\b(?!.*-> bool(?::| \{{|;|$))"
)


def begins_with_what(line: str, before: str) -> bool:
    """Whether the line begins a documentation comment, and with the word What."""
    found = QUESTION.match(line)
    return found is not None and not before.strip().startswith(f"{found['mark']} ")


def refused(path: str, line: str) -> list[str]:
    """Return what to say instead of the words of a line that are refused."""
    if any(path == file and part in line for file, part, _ in ALLOWED):
        return []
    words = [instead for pattern, instead in PATTERNS.items() if pattern.search(line)]
    is_named_so = path.startswith(("crates", "python")) and PARTICIPLE.search(line)
    return [*words, "a verb or a noun"] if is_named_so else words


def main() -> int:
    """Show each line that holds one; 1 if there are any."""
    root = Path(__file__).parents[1]
    found = [path for folder in FOLDERS for path in (root / folder).rglob("*") if "target" not in path.parts]
    paths = [path for path in [*root.glob("*.md"), *found] if path.suffix in SUFFIXES]
    count = 0
    for path in sorted(paths):
        name = path.relative_to(root).as_posix()
        lines = path.read_text(encoding="utf-8").splitlines()
        for number, (before, line) in enumerate(pairwise(["", *lines]), start=1):
            questions = ["what it is: The ..., A ..."] if begins_with_what(line, before) else []
            for instead in refused(name, line) + questions:
                sys.stderr.write(f"{name}:{number}: say {instead}: {line.strip()}\n")
                count += 1
    return min(count, 1)


if __name__ == "__main__":
    sys.exit(main())
