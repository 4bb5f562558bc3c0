"""Formulas in sentences are found and typeset; words stay words; a hostile text takes no time and opens no tag."""

import re
import time
from html import escape
from xml.dom import minidom

import pytest

from derive.catalogue import THEORIES
from derive.prose import as_html, as_tex, mathml, typeset, within


@pytest.mark.parametrize(
    "text, tex",
    [
        ("of order L^(-1/2).", r"of order $L^{-1 / 2}$."),
        ("A row of scores costs (1 - 1/L) s^2 in A.", r"A row of scores costs $(1 - 1 / L) s^{2}$ in A."),
        ("at P* the two coexist", r"at $P^{*}$ the two coexist"),
        ("S_V x C_L, the mean", r"$S_{V} \times C_{L}$, the mean"),
        ("s = ln sqrt(L X) with ln^2 L", r"$s = \ln \sqrt{L X}$ with $\ln^{2} L$"),
        ("the data's slope is what that is", "the data's slope is what that is"),
        ("V^-1 and gamma_w/gamma_g <= 1", r"$V^{-1}$ and $\gamma_{w} / \gamma_{g} \le 1$"),
        ("exact instances equal: 2", "exact instances equal: 2"),
        ("(u, c) -> (-u, -c), i.i.d.", r"$(u, c) \to (-u, -c)$, i.i.d."),
        ("qhat of 100% #1", r"$\hat{q}$ of 100\% \#1"),
    ],
)
def test_text(text, tex):
    assert as_tex(text) == tex


def test_what_is_no_formula_stays():
    assert typeset("not a formula") == "not a formula"


def texts():
    for theory in THEORIES:
        for step in theory.derivation().steps:
            yield from (step.reason, *(check.name for check in step.checks))


def test_every_reason_is_well_formed():
    for text in texts():
        shown = as_html(text)
        minidom.parseString(f"<p>{re.sub('&[A-Z][A-Za-z]+;', '', shown)}</p>")
        assert "<code>" not in shown, text


@pytest.mark.parametrize("text", ["(" * 4000 + "x", "x " * 4000, "|" * 4000, "x^(" * 2000, "- " * 4000, "a_" * 4000])
def test_a_long_text_takes_no_time(text):
    begin = time.process_time()
    as_html(text)
    assert time.process_time() - begin < 2


@pytest.mark.parametrize("text", ["<script>x^2</script>", "P <b> 2", 'x_1" onload="y'])
def test_no_text_opens_a_tag(text):
    shown = as_html(text)
    assert "<script" not in shown
    assert "<b>" not in shown
    assert '"onload' not in shown


def test_code_and_links_stay():
    html = f'<p>x^2 <code>y^2</code> <a href="#z">z^2</a> {escape("a < b")}</p>'
    shown = within(html)
    assert "<code>y^2</code>" in shown
    assert '<a href="#z">z^2</a>' in shown
    assert shown.count("<math") == 2


def test_what_the_converter_does_not_know_is_shown():
    assert mathml(r"\nonsense{<x>}") == r"<code>\nonsense{&lt;x&gt;}</code>"
