"""Names for frames that cannot hold the same name twice."""

from collections.abc import Sequence


def distinct(names: Sequence[str]) -> list[str]:
    """Add ``_1``, ``_2``, ... to every repetition; a name that is there already is never taken.

    >>> distinct(["a", "a", "a_1"])
    ['a', 'a_2', 'a_1']
    """
    taken = set(names)
    seen: set[str] = set()
    result = []
    for name in names:
        if name not in seen:
            seen.add(name)
            result.append(name)
            continue
        number = 1
        while (candidate := f"{name}_{number}") in taken:
            number += 1
        taken.add(candidate)
        result.append(candidate)
    return result
