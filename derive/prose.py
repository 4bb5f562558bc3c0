r"""Formulas in sentences: texts are written in plain characters, and their formulas are typeset where that can be.

.. math:: \mathtt{of\ order\ L\hat{\ }(3/2)} \;\longmapsto\; \text{of order } L^{3/2}

A formula is what is made of single letters, Greek names, names with an index, numbers, functions and the signs between
them; "a" and "A" before a word are articles. Reasons of steps, names of checks and the texts of theory files are read so
on pages and in LaTeX, and stay as they are in a terminal.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from html import escape, unescape

__all__ = ["as_html", "as_mathtext", "as_tex", "mathml", "plain_tex", "typeset", "within", "words"]

_GREEK = (
    "alpha|beta|gamma|delta|epsilon|zeta|eta|theta|kappa|lambda|mu|nu|xi|pi|rho|sigma|tau|phi|chi|psi|omega|ell"
    "|varpi|Gamma|Delta|Theta|Lambda|Sigma|Phi|Psi|Omega|Pi"
)
_TOKEN = re.compile(
    rf"""(?P<function>(?:ln|log|exp|sqrt|tr|det|diag|min|max|tanh|cosh|erfc|Var|Cov)(?![A-Za-z]))
    |(?P<word>[A-Za-z]+(?:[-'][A-Za-z]+)+|[TtWw]hat(?!\w)|(?:[A-Za-z]\.){{2,}})
    |(?P<name>(?:(?:{_GREEK}|[A-Za-z])(?:hat)?|d[A-Zcfstxz]|oo)(?![A-Za-z0-9])|[A-Za-z]+(?=_[A-Za-z0-9]))
    |(?P<number>\d+(?:\.\d+)?(?:e-?\d+)?(?![A-Za-z]{{2}}))
    |(?P<script>_(?:[A-Za-z0-9]+|\([^()]*\)|[+-](?!\w))|\^(?:\([^()]*\)|\{{[^{{}}]*\}}|-?\w+|\*)|\*(?![\w(])|'(?!\w))
    |(?P<sign>\ (?:<=|>=|->|\+-|\.\.|[=<>~+/*.-])\ |->|<=|>=|\+-|[=<>~+/*-])
    |(?P<open>[(\[|]) | (?P<close>[)\]]) | (?P<comma>,\ ?) | (?P<space>\ ) | (?P<other>\w+|.)""",
    re.VERBOSE | re.DOTALL,
)
_SIGNS = {
    "->": r"\to",
    "<=": r"\le",
    ">=": r"\ge",
    "+-": r"\pm",
    "..": r"\ldots",
    ".": r"\cdot",
    "~": r"\sim",
    "*": r"\,",
}
_NAMES = {"oo": r"\infty", "sum": r"\sum", "lam": r"\lambda"}
_UPRIGHT = ("Var", "Cov", "diag", "tr", "erfc")
_PARTNER = {"(": ")", "[": "]", "|": "|"}
_DEEPEST = 6
"""Parentheses within parentheses in a sentence."""

_Read = tuple[str, int] | None
"""The LaTeX of a part and the place after it; None where there is no such part."""


class _Reader:
    """The tokens of a text, and what can be read of them as a formula from a place on."""

    def __init__(self, text: str) -> None:
        self.tokens = [(found.lastgroup or "", found[0]) for found in _TOKEN.finditer(text)]

    def kind(self, place: int) -> str:
        return self.tokens[place][0] if place < len(self.tokens) else ""

    def text(self, place: int) -> str:
        return self.tokens[place][1] if place < len(self.tokens) else ""

    def run(self, place: int, depth: int = 0) -> _Read:
        """Terms with signs between them."""
        read = self.signed(place, depth)
        if read is None:
            return None
        tex, place = read
        while self.kind(place) == "sign" and (read := self.signed(place + 1, depth)) is not None:
            sign = self.text(place).strip()
            tex, place = f"{tex} {_SIGNS.get(sign, sign)} {read[0]}", read[1]
        return tex, place

    def signed(self, place: int, depth: int) -> _Read:
        sign = {"-": "-", "+-": r"\pm "}.get(self.text(place), "")
        read = self.term(place + bool(sign), depth)
        return None if read is None else (sign + read[0], read[1])

    def term(self, place: int, depth: int) -> _Read:
        """Factors beside each other."""
        read = self.factor(place, depth)
        if read is None:
            return None
        tex, place = read
        while (read := self.factor(place + (self.kind(place) == "space"), depth)) is not None:
            crosses = read[0] == "x" and self.kind(read[1]) == "space" and re.search(r"[A-Z})]$", tex)
            between = r"\cdot" if tex[-1].isdigit() and read[0][0].isdigit() else ""
            tex, place = f"{tex}{between} " + (r"\times" if crosses else read[0]), read[1]
        return tex, place

    def factor(self, place: int, depth: int) -> _Read:
        kind, text = self.kind(place), self.text(place)
        if kind == "function":
            scripts, place = self.scripts(place + 1)
            read = self.factor(place + (self.kind(place) == "space"), depth)
            if read is None:
                return None
            if text == "sqrt":
                held = re.sub(r"^\((.*)\)$", r"\1", read[0])
                return rf"\sqrt{{{held}}}", read[1]
            name = rf"\mathrm{{{text}}}" if text in _UPRIGHT else rf"\{text}"
            return f"{name}{scripts} {read[0]}", read[1]
        if kind == "open":
            return self.group(place, depth)
        if kind not in ("name", "number"):
            return None
        scripts, after = self.scripts(place + 1)
        tex = (_name(text) if kind == "name" else text) + scripts
        called = self.group(after, depth) if kind == "name" and self.text(after) in ("(", "[", "|") else None
        return (tex, after) if called is None else (f"{tex}{called[0]}", called[1])

    def group(self, place: int, depth: int) -> _Read:
        """Formulas in parentheses, with commas between them."""
        begin = self.text(place)
        end, held, after = _PARTNER[begin], [], place
        while depth < _DEEPEST and (read := self.run(after + 1, depth + 1)) is not None:
            held.append(read[0])
            after = read[1]
            if self.text(after) == end:
                scripts, after = self.scripts(after + 1)
                return f"{begin}{', '.join(held)}{end}{scripts}", after
            if self.kind(after) != "comma":
                return None
        return None

    def scripts(self, place: int) -> tuple[str, int]:
        """Index, star, prime and power, as one subscript and one superscript."""
        below = above = ""
        while self.kind(place) == "script":
            mark, what = self.text(place)[0], self.text(place)[1:].strip("(){}")
            if mark == "_":
                below += _word(what)
            else:
                above += {"*": "*", "'": r"\prime"}.get(mark) or ("*" if what == "*" else typeset(what))
            place += 1
        return (f"_{{{below}}}" if below else "") + (f"^{{{above}}}" if above else ""), place


def _name(text: str) -> str:
    base = text.removesuffix("hat") if text != "hat" else text
    tex = _NAMES.get(base) or (rf"\{base}" if re.fullmatch(_GREEK, base) else base)
    tex = rf"\mathrm{{{tex}}}" if tex.isalpha() and len(tex) > 2 else tex
    return tex if base == text else rf"\hat{{{tex}}}"


def _word(text: str) -> str:
    """An index: letters and digits, a Greek name, or a word."""
    return (
        rf"\{text}"
        if re.fullmatch(_GREEK, text)
        else rf"\mathrm{{{text}}}"
        if re.match("[A-Za-z]{3}", text)
        else typeset(text)
    )


def typeset(formula: str) -> str:
    """LaTeX of a formula in plain characters; what is none stays as it is."""
    reader = _Reader(formula)
    read = reader.run(0)
    return formula if read is None or read[1] < len(reader.tokens) else read[0]


def _formulas(text: str) -> Iterator[tuple[str, str]]:
    """The sentence cut into pairs of words and the LaTeX of the formula that follows them."""
    reader = _Reader(text)
    before, place = "", 0
    while place < len(reader.tokens):
        article = reader.text(place) in ("a", "A", "I") and (
            reader.kind(place + 1) not in ("sign", "script") and reader.kind(place + 2) not in ("name", "sign")
        )
        read = None if article else reader.run(place)
        if read is None or all(kind != "name" and text[:1] != "^" for kind, text in reader.tokens[place : read[1]]):
            read = read or ("", place + 1)
            before += "".join(text for _, text in reader.tokens[place : read[1]])
        else:
            yield before, read[0]
            before = ""
        place = read[1]
    yield before, ""


# --- what a text becomes ---

_TEX_SPECIAL = str.maketrans(
    {character: f"\\{character}" for character in "&%$#_{}"}
    | {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}"}
)
_WORDS = (
    (r"\\mathrm|[{}]", ""),
    (r"\\,", " "),
    (r"\\langle\s*", "<"),
    (r"\s*\\rangle", ">"),
    (r"\\([A-Za-z]+)", r"\1"),
)


def words(tex: str) -> str:
    """LaTeX where it is not understood."""
    for pattern, word in _WORDS:
        tex = re.sub(pattern, word, tex)
    return tex


def plain_tex(text: str) -> str:
    """A text in LaTeX as it is written."""
    return text.translate(_TEX_SPECIAL)


def as_tex(text: str) -> str:
    """A text in LaTeX."""
    return _each(text, plain_tex, lambda tex: f"${tex}$")


def as_mathtext(text: str) -> str:
    """A text in a figure, its formulas between dollars."""
    return _each(text, lambda plain: plain.replace("$", r"\$"), lambda tex: f"${tex}$")


def as_html(text: str) -> str:
    """A text in HTML, its formulas in MathML."""
    return _each(text, escape, mathml)


def _each(text: str, sentence: Callable[[str], str], formula: Callable[[str], str]) -> str:
    return "".join(sentence(plain) + (formula(tex) if tex else "") for plain, tex in _formulas(text))


def within(html: str) -> str:
    """HTML with the formulas in its sentences in MathML, but for what is code, a link or a formula already."""
    parts = re.split(r"(<(?:pre|code|math|tt|a)\b.*?</(?:pre|code|math|tt|a)>|<[^>]*>)", html, flags=re.DOTALL)
    return "".join(part if place % 2 else as_html(unescape(part)) for place, part in enumerate(parts))


_MENDED = (
    (  # what follows an accent goes below and above the letter
        r'<munderover>(<mi>[^<]*</mi>)((?:(?!<munderover>).)*?)(<mo stretchy="false">\u02c6</mo>)</munderover>',
        r'<msub><mover accent="true">\1\3</mover>\2</msub>',
    ),
    (  # a function stands apart from what it is of
        r"(?<!<msup>)(?<!<msub>)(?<!<msubsup>)(<mi>[a-z]{2,}</mi>(?:<mo>&ApplyFunction;</mo>)?)(?=<m(?:i|n|sqrt|frac|sub|sup|over|row))",
        r'\1<mspace width="0.17em"></mspace>',
    ),
)
"""Where the converter could do better."""


def mathml(tex: str, display: bool = False) -> str:
    """LaTeX as MathML, in a line of its own or of a text; what the converter does not know stays as it is written."""
    from docutils.utils.math.latex2mathml import tex2mathml

    try:
        found = re.sub(r">\s+<", "><", tex2mathml(tex, as_block=display))
    except Exception:  # what a stranger wrote may break it in more ways than it declares
        return f"<code>{escape(tex)}</code>"
    for pattern, better in _MENDED:
        found = re.sub(pattern, better, found)
    return found
