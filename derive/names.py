"""What to say where a name is not known: the names that are near it, or else those that there are, never a far guess."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable

__all__ = ["instead"]

_NEAR = 0.6  # of one, which is the same
_PART = 3  # letters of a name by which one that holds them is near


def instead(word: str, names: Iterable[str], shown: Callable[[str], str] = str, count: int = 2) -> str:
    """``did you mean m or n?`` of at most ``count`` names, ``it may be k, m, n`` of all, or ``there is none``."""
    known = list(names)
    lower = {spelt.lower(): name for name in reversed(known) for spelt in (name.rpartition("/")[2], name)}
    close = [lower[spelt] for spelt in difflib.get_close_matches(word.lower(), lower, n=2 * count, cutoff=_NEAR)]
    parts = [name for name in known if len(word) >= _PART and word.lower() in name.lower()]
    near = list(dict.fromkeys([*close, *parts]))[:count]
    if near:
        return f"did you mean {' or '.join(map(shown, near))}?"
    return f"it may be {', '.join(map(shown, known))}" if known else "there is none"
