"""A derivation on paper: what is printed is the live object, and each form is well-formed."""

import json
import re
from html.parser import HTMLParser

import pytest
from sympy import Function, Rational, Symbol

from derive.catalogue import THEORIES, find
from derive.derivation import Check, Derivation, Step
from derive.present import as_html, as_json, as_latex, as_text, by_check, folded, source

x = Symbol("x")
# Actions of one module share their derivation.
BY_MODULE = {theory.module: theory for theory in reversed(THEORIES)}

TOY = Derivation(
    "toy & co",
    None,
    (
        Step("energy", Function("F")(x), lambda model: x**2 / 2 - x, "quadratic, 100% <safe>", source="a_b"),
        Step(
            "minimum",
            Symbol(r"\langle x \rangle_\mathrm{low}"),
            lambda model, energy: energy.subs(x, 1),
            "completing the square",
            takes=("energy",),
            checks=(
                Check("right", "exact", lambda derivation: [("value", derivation.value("minimum"), -Rational(1, 2))]),
                Check("wrong", "exact", lambda derivation: [("value", derivation.value("minimum"), Rational(1, 2))]),
                Check("slow", "exact", lambda derivation: [], quick=False),
            ),
        ),
    ),
    meaning="a parabola",
)
REPORTS = by_check(TOY.check(quick=True))


class Balanced(HTMLParser):
    """Collects the text and fails where a tag is closed that was not open."""

    def __init__(self):
        super().__init__()
        self.open, self.text, self.addresses = [], "", []

    def handle_starttag(self, tag, attributes):
        self.addresses += [value for name, value in attributes if name in ("src", "href")]
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def parsed(page):
    parser = Balanced()
    parser.feed(page)
    assert parser.open == []
    return parser


def test_text():
    text = as_text(TOY, REPORTS)
    assert "F(x) = x**2/2 - x" in text
    assert "<x>_low = -1/2" in text
    assert "pass: right" in text
    assert "FAIL: wrong" in text
    assert "not run: slow" in text
    assert max(map(len, text.splitlines())) <= 110


def test_text_follows_a_changed_step():
    assert "<x>_low = -4/7" in as_text(TOY.altered("minimum", lambda value: value * Rational(8, 7)))


def test_latex_is_a_document_with_escaped_text():
    document = as_latex(TOY, REPORTS)
    assert document.startswith(r"\documentclass")
    assert document.endswith(r"\end{document}")
    assert r"\section*{toy \& co}" in document
    assert r"quadratic, 100\% <safe> (a\_b)" in document
    assert r"\[ F{\left(x \right)} = \frac{x^{2}}{2} - x \]" in document
    for environment in ("itemize", "document"):
        assert document.count(rf"\begin{{{environment}}}") == document.count(rf"\end{{{environment}}}") > 0


def test_html_is_one_well_formed_page():
    page = as_html(TOY, REPORTS)
    parser = parsed(page)
    assert parser.addresses == []
    assert "<script" not in page
    assert "quadratic, 100% <safe>" in parser.text
    assert "toy & co" in parser.text
    assert page.count("<math") == 2
    assert [page.count(f'class="{mark}"') for mark in ("pass", "fail", "open")] == [1, 1, 1]


def test_json():
    document = json.loads(json.dumps(as_json(TOY, REPORTS)))
    assert document["schema"] == 1
    energy, minimum = document["steps"]
    assert energy["statement"] == {"text": "F(x) = x**2/2 - x", "latex": r"F{\left(x \right)} = \frac{x^{2}}{2} - x"}
    assert minimum["takes"] == ["energy"]
    assert [check["result"] for check in minimum["checks"]] == ["pass", "fail", "not run"]


@pytest.mark.parametrize(
    "module", [pytest.param(m, marks=[pytest.mark.slow] * m.endswith("softmax")) for m in BY_MODULE]
)
def test_every_derivation_prints_in_every_form(module):
    derivation = BY_MODULE[module].derivation()
    parser = parsed(as_html(derivation))
    assert not re.search(r"\\[a-z]", parser.text)
    for printed in (as_text(derivation), as_latex(derivation), json.dumps(as_json(derivation))):
        assert all(step.name in printed for step in derivation.steps)


def test_source():
    assert source(TOY["energy"]) == "x**2/2 - x"
    assert source(TOY["energy"], "latex") == r"\frac{x^{2}}{2} - x"


@pytest.mark.parametrize(
    "theory", [pytest.param("copy-head/softmax", marks=pytest.mark.slow), "copy-head/linear", "classical/potts"]
)
def test_a_folded_statement_is_the_statement(theory):
    """With every name replaced by what it stands for: the same expression, or the same value at a rational point."""
    derivation = find(theory).derivation()
    results = {result.name: result for result in derivation}
    for result in derivation:
        taken = [results[name] for name in result.step.takes]
        shown = folded(result, taken)
        sides = list(result.value) if len(shown.equations) > 1 else [result.value]
        for (_, right), value in zip(shown.equations, sides, strict=True):
            whole = right
            for name, stands in (*shown.parts[::-1], *((one.step.left, one.value) for one in taken[::-1])):
                whole = whole.xreplace({name: stands})
            if whole != value:
                symbols = sorted(whole.free_symbols | value.free_symbols, key=str)
                at = {symbol: Rational(31 + 7 * k, 13 + k) for k, symbol in enumerate(symbols)}
                assert abs((whole - value).xreplace(at).n(20)) <= 1e-12 * abs(value.xreplace(at).n(20)), result.name
