"""The nearest known name to a name that is wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name within a third of `name`'s length in edits, or None. First wins at a tie."""
    if len(name) < 2:
        return None
    wanted = name.lower().replace("-", "_")
    allowed = max(1, len(name) // 3)
    best: str | None = None
    for candidate in known:
        distance = _edits(wanted, candidate.lower().replace("-", "_"), allowed)
        if distance <= allowed:
            best, allowed = candidate, distance - 1  # another has to be nearer
        if allowed < 0:
            break
    return best


def _edits(left: str, right: str, allowed: int) -> int:
    """Insertions, deletions, replacements and swaps of neighbours; `allowed + 1` when it is more.

    Damerau's distance in the restricted form (each swapped pair is edited once).
    """
    if abs(len(left) - len(right)) > allowed:
        return allowed + 1
    if (Counter(left) - Counter(right)).total() > allowed:
        return allowed + 1  # each letter that is too many takes an edit
    before: list[int] = []
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        earlier, before = before, row
        row = [i]
        for j, b in enumerate(right, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and left[i - 2] == b:
                cost = min(cost, earlier[j - 2] + 1)
            row.append(cost)
        if min(row) > allowed:
            return allowed + 1
    return row[-1]


def spelt_out(name: str, known: Iterable[str]) -> str | None:
    """The one known name that has all of `name`'s letters in their order: `bf16` is `bfloat16`."""
    if len(name) < 3:
        return None
    found = [candidate for candidate in known if _holds(candidate.lower(), name.lower())]
    return found[0] if len(found) == 1 else None


def _holds(candidate: str, letters: str) -> bool:
    rest = iter(candidate)
    return len(letters) <= len(candidate) and all(letter in rest for letter in letters)


def same_ending(name: str, known: Iterable[str]) -> str | None:
    """The one known name that ends in all words of `name`, or else in which `name` ends:
    `model_name` is `served_model_name`, `extra_args` is `args`."""
    word = "_" + name.lower().replace("-", "_")
    names = list(known)
    for found in (
        [candidate for candidate in names if f"_{candidate}".endswith(word)],
        [candidate for candidate in names if word.endswith(f"_{candidate}")],
    ):
        if found:
            return found[0] if len(found) == 1 else None
    return None


def listed(words: list[str]) -> str:
    """`size`, `size and precision`, `architecture, size and precision`."""
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else last
