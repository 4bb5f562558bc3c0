"""Standalone source: it runs without Spinodal, and finds the value that its header states."""

import math
import re
import shutil
import subprocess
import sys

import mpmath
import pytest
import sympy as sp

from derive.action import EffectiveAction, OrderParameter, Parameter
from derive.averages import GaussianAverage
from derive.catalogue import find
from derive.derivation import Derivation, Step
from numerics.emit import EmissionError, emit
from numerics.emit.standalone import standalone

CC, NODE = shutil.which("cc"), shutil.which("node")
x, y, z = sp.symbols("x y z")
P = sp.Symbol("P", positive=True)
LANGUAGES = [
    "python",
    pytest.param("javascript", marks=pytest.mark.skipif(NODE is None, reason="there is no Node.js, which runs it")),
    pytest.param("c", marks=pytest.mark.skipif(CC is None, reason="there is no C compiler cc")),
]

VALUES = {
    "softplus": sp.log(1 + sp.exp(100 * x)) - 100 * x * P / 2,
    "Lambert": sp.LambertW(x) + sp.LambertW(-x / 8, -1) * P,
    "lower Lambert": sp.LambertW(-sp.exp(-300 * x), -1),
    "tail": sp.log(sp.erfc(20 * x)) + sp.erfc(3 * x) * sp.exp(9 * x**2) + sp.log(sp.erfc(-x) / 2),
    "entropy": x * sp.log(x) + (1 - x / 4) * sp.log(1 - x / 4) + sp.sign(-x),
    "pieces": sp.Piecewise((sp.log(-x), x < 0), (sp.sin(x - sp.Rational(3, 4)) / (x - sp.Rational(3, 4)), True)),
    "logic": sp.Piecewise((1, (x > 4) | sp.Eq(x, 1)), (x**P, (x > 0) & sp.Ne(x, 1)), (0, True)) + sp.Max(x, P, 2),
    "powers": x ** sp.Rational(2, 3) / 3
    + x**99
    - 1 / sp.sqrt(P)
    + sp.Rational(1, 7) * sp.pi
    + 10**30 * sp.Rational(1, 3),
    "functions": sp.gamma(x) + sp.loggamma(x) * sp.atan2(x, P) - sp.cosh(x) * sp.Abs(x - 3) + sp.floor(7 * x),
    "several": sp.Tuple(sp.Matrix([[x, 1], [P, x * P]]).as_immutable(), sp.exp(x)),
    "error function": sp.erf(x / 4) + sp.erf(-3 * P) * sp.erfc(P),
    "gamma": sp.Tuple(*(sp.gamma(z) for z in (x / 9, x - 4, 12 * x)), sp.loggamma(x / 9), sp.loggamma(150 * x)),
    "a constant": sp.pi / 2,
}


def run(text, form, folder):
    """The numbers that the program prints; it has compared them itself."""
    if form == "python":
        (folder / "program.py").write_text(text)
        command = [sys.executable, "-I", "-W", "error", str(folder / "program.py")]
    elif form == "javascript":
        (folder / "program.cjs").write_text(text)
        command = [NODE, str(folder / "program.cjs")]
    else:
        (folder / "program.c").write_text(text)
        flags = ["-std=c99", "-Wall", "-Wextra", "-Werror"]
        subprocess.run(
            [CC, *flags, "-o", str(folder / "program"), str(folder / "program.c"), "-lm"], check=True, timeout=60
        )
        command = [str(folder / "program")]
    outcome = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert outcome.returncode == 0, (outcome.stdout, outcome.stderr, text)
    return [float(line.split()[0]) for line in outcome.stdout.splitlines()]


def toy(value, meaning="the order"):
    action = EffectiveAction(
        "toy",
        x**2 * P,
        (OrderParameter(x, meaning, -sp.S.One, sp.S.One),),
        Parameter(P, "the control"),
        (),
        (sp.S.Zero, sp.S.One),
    )
    return action, Derivation("toy", None, (Step("the value", sp.Symbol("F"), lambda model: value, "chosen"),))[
        "the value"
    ]


def written(value, form, **more):
    return standalone("toy", *toy(value, **more), form)


@pytest.mark.parametrize("form", LANGUAGES)
@pytest.mark.parametrize("name", VALUES)
def test_the_program_finds_the_value_of_its_header(name, form, tmp_path):
    text = written(VALUES[name], form)
    printed = run(text, form, tmp_path)
    header = re.search(r"test value.*: (.*(\n(//|#)     .*)*)", text)[1]
    stated = [float(number) for number in re.findall(r"-?\d[\d.]*(?:e[+-]\d+)?", header)]
    assert printed == pytest.approx(stated, rel=1e-12)
    assert len(printed) == (5 if name in ("several", "gamma") else 1)


@pytest.mark.parametrize("form", LANGUAGES)
def test_a_program_that_is_wrong_says_so(form, tmp_path):
    text = written(x**2 + P, form)
    wrong = text.replace("x*x", "x*x*1.000001")
    assert wrong != text
    with pytest.raises(AssertionError):
        run(wrong, form, tmp_path)


@pytest.mark.parametrize("form", LANGUAGES)
@pytest.mark.parametrize("theory", ["copy-head/softmax", "classical/potts"])
def test_a_theory_s_action(theory, form, tmp_path):
    found, (name, step) = (
        find(theory),
        {"copy-head/softmax": ("softmax_action", "softmax action")}.get(theory, ("action", "action")),
    )
    text = standalone(theory, found.problem(), found.derivation()[step], form)
    assert f"{name}(" in text
    assert all(parameter.meaning in " ".join(text.split()) for parameter in found.problem().parameters)
    run(text, form, tmp_path)


def test_the_function_is_the_action_elsewhere_too():
    theory = find("copy-head/softmax")
    namespace = {"__name__": "elsewhere"}
    exec(standalone(theory.name, theory.problem(), theory.derivation()["softmax action"], "python"), namespace)
    action = theory.action()
    point = {"s": 30, "P": 330, "L": 32, "V": 8, "gamma_w": 1, "gamma_g": 1, "T": 0.5}
    arguments = [*action.variables, action.control.symbol, *(parameter.symbol for parameter in action.parameters)]
    exact = emit(action.value, arguments, "mpmath").to_digits(
        *(mpmath.mpf(point[a.name]) for a in arguments), digits=20
    )
    assert namespace["softmax_action"](**point) == pytest.approx(float(exact), rel=1e-13)


@pytest.mark.skipif(NODE is None, reason="there is no Node.js, which runs it")
def test_another_module_of_javascript_requires_the_function(tmp_path):
    (tmp_path / "program.cjs").write_text(written(sp.exp(x) / P, "javascript"))
    outcome = subprocess.run(
        [NODE, "-p", "require('./program.cjs')(1, 2)"], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert float(outcome.stdout) == pytest.approx(math.e / 2, rel=1e-15)


@pytest.mark.parametrize("form", LANGUAGES)
def test_any_name_will_do(form, tmp_path):
    odd = sp.symbols("lambda exp double function gamma expected t0 branch1 value y0 a/b 2x x_\\max")
    assert len(run(written(sp.Add(*(sp.exp(-symbol) for symbol in odd)), form), form, tmp_path)) == 1


@pytest.mark.parametrize("form", LANGUAGES)
@pytest.mark.parametrize("meaning", ["one \\", '"""\nraise SystemExit(3)\n', "*/ int main;", "trigraph ??/", "a{b}%s"])
def test_no_text_leaves_the_header(meaning, form, tmp_path):
    run(written(x * P, form, meaning=meaning), form, tmp_path)


def test_a_formula_in_latex_has_the_header_too():
    text = written(x**2 / P, "latex")
    assert text.splitlines()[-1] == r"F = \frac{x^{2}}{P}"
    assert "% test value at x = 0.75, P = 1.5: 0.375" in text
    average = GaussianAverage(x * z, [z], [0], [[1]])
    assert "test value" not in written(average, "latex")


@pytest.mark.parametrize("form", ["python", "javascript", "c"])
def test_what_stands_for_no_formula_is_named(form):
    with pytest.raises(EmissionError, match=f"'the value'.*{form} has no GaussianAverage.*quadrature"):
        written(GaussianAverage(sp.tanh(x * z), [z], [0], [[1]]) + x, form)
    with pytest.raises(EmissionError, match="Trace"):
        written(sp.Trace(sp.MatrixSymbol("A", 2, 2)), form)
    with pytest.raises(EmissionError, match="no arguments were found"):
        written(sp.log(-sp.exp(x)), form)


def test_scipy_is_asked_for_only_where_it_is_needed(tmp_path):
    assert "scipy" not in written(sp.erf(x), "python")
    text = written(sp.besselj(0, x) * P, "python")
    assert "import scipy.special" in text
    run(text, "python", tmp_path)
    with pytest.raises(EmissionError, match="c has no besselj"):
        written(sp.besselj(0, x), "c")
