r"""The words of a formula, and where each may stand, so that an error points at its character.

.. math:: \texttt{2x} \;\longmapsto\; \text{character 2: an operator is missing in front of this}
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from derive.action import SetupError

__all__ = ["FORMS", "LENGTH", "NAME", "NESTING", "WORDS", "FormulaError", "Token", "tokens", "wrong"]

LENGTH = 4_000
"""Characters of one formula."""
NESTING = 30
"""Brackets inside each other."""
NAME = re.compile(r"(?=.{1,32}$)[A-Za-z](?:_?[A-Za-z0-9])*_?", re.ASCII)
"""Names: at most 32 letters, digits and single underscores, a letter first."""
WORDS = ("and", "or", "not")
FORMS = {"E": "E[f(z), z]", "M": "M[g(z), z: (c, V)]", "sum": "sum[f(k), k: (1, 10)]"}
"""What is written with square brackets."""
_TOKEN = re.compile(
    r"(?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)|(?P<name>[A-Za-z][A-Za-z0-9_]*)"
    r"|(?P<operator>\*\*|<=|>=|==|!=|[-+*/^<>()\[\],:])|(?P<space>\s+)",
    re.ASCII,
)
_ASIDE = 50  # characters shown on each side of an error
_HIDDEN = "\ufffd"  # for what cannot be shown, and a terminal may obey


class FormulaError(SetupError):
    """A formula is none of the grammar; the message shows the line and points at the character."""


class Token(NamedTuple):
    text: str
    place: int
    kind: str  # number, name, word, operator


def wrong(label: str, text: str, place: int, why: str) -> FormulaError:
    """An error with the line of ``text`` and a caret below the character at ``place``."""
    begin = text.rfind("\n", 0, place) + 1
    line = text[begin:].partition("\n")[0].replace("\t", " ")
    first = max(begin, place - _ASIDE)
    shown = line[first - begin : place + _ASIDE - begin]
    shown = "".join(c if c.isprintable() else _HIDDEN for c in shown)
    return FormulaError(f"{label}, character {place + 1}: {why}\n    {shown}\n    {' ' * (place - first)}^")


def tokens(text: str, label: str) -> list[Token]:
    """The tokens of ``text``, each where one of its kind may stand; raises `FormulaError`."""
    if len(text) > LENGTH:
        raise FormulaError(f"{label} has {len(text)} characters; a formula may have {LENGTH}: use definitions")
    found: list[Token] = []
    opened: list[Token] = []
    operand = False  # whether one has just ended
    place = 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise wrong(label, text, place, _stranger(text[place]))
        word, kind = match.group(), str(match.lastgroup)
        token = Token(word, place, "word" if word in WORDS else kind)
        place = match.end()
        if kind == "space":
            continue
        why = _misplaced(token, found[-1:], opened, operand)
        if why:
            raise wrong(label, text, token.place, why)
        if word in "([":
            opened.append(token)
        elif word in ")]":
            opened.pop()
        operand = token.kind in ("number", "name") or word in ")]"
        found.append(token)
    if opened:
        raise wrong(label, text, opened[-1].place, "this bracket is not closed")
    if not operand:
        raise wrong(
            label, text, len(text.rstrip()), "the formula ends where a number, a name or a bracket has to stand"
        )
    return found


def _stranger(character: str) -> str:
    if character == "=":
        return "one = has no meaning here; == compares"
    if character == ".":
        return "a point belongs to a number; names have no attributes"
    if character in "\"'":
        return "text in quotes has no place in a formula"
    code = "" if character.isascii() else f" (U+{ord(character):04X}, which may look like another)"
    return f"the character {character!r}{code} has no place in a formula"


def _misplaced(token: Token, before: Sequence[Token], opened: Sequence[Token], operand: bool) -> str:
    """Why ``token`` may not stand after ``before``; empty if it may."""
    word, after = token.text, before[-1] if before else Token("", 0, "")
    named = token.kind == "name" and NAME.fullmatch(word) is None
    begins = token.kind in ("number", "name") or (word == "(" and after.kind != "name")
    innermost = opened[-1].text if opened else ""
    checks = (
        (named, "a name has at most 32 letters, digits and single underscores"),
        (begins and operand, "an operator is missing in front of this; a product is written with *"),
        (word == "[" and not (operand and after.text in FORMS), f"square brackets write {', '.join(FORMS.values())}"),
        (
            not (operand or begins or word in ("-", "+", "not", "(", "[")),
            "a number, a name or a bracket has to stand here",
        ),
        (operand and word == "not", "not stands in front of a condition"),
        (word in (")", "]") and innermost != {")": "(", "]": "["}.get(word), "this bracket was not opened"),
        (word == "," and not opened, "a comma stands between arguments, in brackets"),
        (word == ":" and innermost != "[", "a colon stands behind a variable of E[...], M[...] or sum[...]"),
        (word in ("(", "[") and len(opened) >= NESTING, f"more than {NESTING} brackets inside each other"),
    )
    return next((why for wrong, why in checks if wrong), "")
