r"""Long formulas in lines: LaTeX is broken before a sign, also within parentheses, averages, fractions and roots.

.. math:: \left(a + b\right)^2 \;\longmapsto\; (a \\ + b)^2, \qquad \frac{a + b}{c} \;\longmapsto\; (a \\ + b)\, c^{-1}

What is broken has plain parentheses, as a pair that grows with what it holds cannot be in two lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["LINE", "in_lines", "width"]

LINE = 88
"""Characters in a line: at the size of print they fit on A4."""

_TOKEN = re.compile(
    r"\\(?:left|right)\s*(?:\\[A-Za-z]+|\\[{}|]|.)|\\begin\{\w+\}|\\end\{\w+\}|\\[A-Za-z]+|\\.|[{}]| [+-] |, |.",
    re.DOTALL,
)
_UNSEEN = re.compile(r"\\(?:frac|sqrt|math\w+|operatorname|text|begin.*|end.*|left\.|right\.|[,;: !])|[{}^_ ]")
_SIGN, _SCRIPT = 3, 0.7
_SMALL = 6
"""Characters that stay beside what they belong to: parentheses, exponents, factors."""


class _Group(NamedTuple):
    """Tokens from ``begin`` to ``end`` that belong together: parts of a fraction or a root, what a pair holds."""

    begin: int
    end: int
    parts: tuple[list[str], ...]
    kind: str


def in_lines(formula: str) -> list[str]:
    """The formula cut into lines, each about as wide as `LINE` where it can be."""
    lines, room = [""], float(LINE)
    for piece in _pieces(_TOKEN.findall(formula)):
        wide = width(piece)
        if room < wide and lines[-1]:
            lines.append("")
            room = LINE
        lines[-1] += piece
        room -= wide
    return lines


def width(formula: str) -> float:
    """Roughly the characters that are seen, side by side."""
    return _width(_TOKEN.findall(formula))


def _width(tokens: list[str]) -> float:
    total, place, script = 0.0, 0, False
    groups = {group.begin: group for group in _groups(tokens)}
    while place < len(tokens):
        token, group = tokens[place], groups.get(place)
        if group is not None:
            wide = (max if group.kind == "frac" else sum)(map(_width, group.parts))
            total += (wide + (group.kind == "pair") * 2) * (_SCRIPT if script else 1)
            place, script = group.end, False
            continue
        script = token in "^_"
        total += _SIGN if token in (" + ", " - ") else 0 if _UNSEEN.fullmatch(token) else _SCRIPT if script else 1
        place += 1
    return total


def _groups(tokens: list[str]) -> Iterator[_Group]:
    """The outermost groups of a formula."""
    place = 0
    while place < len(tokens):
        token, count = tokens[place], {"\\frac": 2, "\\sqrt": 1}.get(tokens[place], 0)
        if count and place + 1 < len(tokens) and tokens[place + 1] == "{":
            parts, end = list[list[str]](), place + 1
            for _ in range(count):
                begin, end = end + 1, _closed(tokens, end)
                parts.append(tokens[begin : end - 1])
            yield _Group(place, end, tuple(parts), token[1:])
        elif (token.startswith("\\left") and token[5:6] in (" ", "(", "[", "|", "\\", ".", "{")) or token == "{":
            end = _closed(tokens, place)
            yield _Group(place, end, (tokens[place + 1 : end - 1],), "braces" if token == "{" else "pair")
        elif token.startswith("\\begin"):
            end = _closed(tokens, place)
            yield _Group(place, end, (tokens[place + 1 : end - 1],), "table")
        else:
            end = place + 1
        place = end


def _closed(tokens: list[str], place: int) -> int:
    """The place behind the group that begins at ``place``."""
    depth = 0
    for k in range(place, len(tokens)):
        token = tokens[k]
        if token == "{" or re.match(r"\\left(?![a-z])|\\begin", token):
            depth += 1
        elif token == "}" or re.match(r"\\right(?![a-z])|\\end", token):
            depth -= 1
            if depth == 0:
                return k + 1
    return len(tokens)


def _pieces(tokens: list[str]) -> list[str]:
    """The formula in pieces between which a line may end."""
    pieces: list[str] = []
    for term in _terms(tokens):
        pieces += ["".join(term)] if _width(term) <= LINE else _opened(term)
    return pieces


def _terms(tokens: list[str]) -> Iterator[list[str]]:
    """The terms of a sum, each with its sign, or of a list, each with the comma behind it."""
    inside = {k for group in _groups(tokens) for k in range(group.begin, group.end)}
    begin = 0
    for k, token in enumerate(tokens):
        cut = k if token in (" + ", " - ") else k + 1 if token == ", " else 0
        if cut > begin and k not in inside:
            yield tokens[begin:cut]
            begin = cut
    yield tokens[begin:]


def _opened(term: list[str]) -> list[str]:
    """A term in pieces: its widest group is opened, and what stands before and behind it if that is wide, too."""
    groups = [group for group in _groups(term) if group.kind in ("frac", "sqrt", "pair")]
    widest = max(groups, key=lambda group: _width(term[group.begin : group.end]), default=None)
    if widest is None or _width(term) <= LINE or max(map(_width, widest.parts)) < LINE / 3:
        return ["".join(term)]
    if widest.kind == "pair":
        opening, closing = (re.sub(r"\\(?:left|right)\s*\.?", "", term[k]) for k in (widest.begin, widest.end - 1))
        inner = _glued([f"{opening} "], _pieces(widest.parts[0]), [f" {closing}"])
    elif widest.kind == "sqrt":
        inner = _glued(["("], _pieces(widest.parts[0]), [")^{1/2}"])
    else:
        above, below = (_enclosed(part) for part in widest.parts)
        inner = _glued(above, [" "], below, ["^{-1}"])
    return _glued(_opened(term[: widest.begin]), inner, _opened(term[widest.end :]))


def _enclosed(part: list[str]) -> list[str]:
    several = len(list(_terms(part))) > 1 or len(part) > 1
    return _glued(["("], _pieces(part), [")"]) if several else ["".join(part)]


def _glued(*parts: list[str]) -> list[str]:
    """Pieces in a row, without a break between the parts unless both sides of it are wide."""
    pieces = [""]
    for part in parts:
        if part and min(wide := (width(pieces[-1]), width(part[0]))) > _SMALL and sum(wide) > LINE:
            pieces += part
        elif part:
            pieces[-1] += part[0]
            pieces += part[1:]
    return pieces
