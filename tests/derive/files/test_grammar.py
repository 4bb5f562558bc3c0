"""The grammar of theory files: what it reads, where it points when it cannot, and what it refuses to be drawn into."""

import time

import mpmath
import pytest
from sympy import LambertW, Max, Rational, S, Symbol, cosh, erfc, exp, gamma, log, pi, sqrt, tanh

from derive.averages import GaussianAverage, MoreauEnvelope
from derive.exact import ExactnessError
from derive.files.algebra import FUNCTIONS, WORK, Budget, number, probed
from derive.files.grammar import condition, expression, numeric
from derive.files.tokens import LENGTH, NESTING, FormulaError
from numerics.emit import emit

x, y, q, z, w = (Symbol(name, real=True) for name in "xyqzw")
lam, E = Symbol("lambda", positive=True), Symbol("E", real=True)
NAMES = {"x": x, "y": y, "q": q, "lambda": lam, "E": E}


def read(text, names=NAMES):
    return expression(text, names, "the action", Budget())


@pytest.mark.parametrize(
    "text, value",
    [
        ("1/3 + 0.01*x^2 - 1e3", Rational(1, 3) + x**2 / 100 - 1000),
        ("-x^2", -(x**2)),
        ("2^-1", Rational(1, 2)),
        ("x^y^2", x ** (y**2)),
        ("x**2/3/y", x**2 / 3 / y),
        ("x - y - q + .5", x - y - q + Rational(1, 2)),
        ("lambda*E", lam * E),
        ("pi*e", pi * S.Exp1),
        ("sum[x^k/k, k: (1, 3)]", x + x**2 / 2 + x**3 / 3),
        ("sum[j*k, j: (1, 2), k: (0, 2)]", S(9)),
        ("sum[x, k: (3, 1)]", S.Zero),
        ("H(x)", erfc(x / sqrt(2)) / 2),
        ("W(x^2) + gamma(x)", LambertW(x**2) + gamma(x)),
        ("max(0, 1 - x)", Max(0, 1 - x)),
        ("E[log(cosh(x*z)), z]", GaussianAverage(log(cosh(x * z)), (z,), (0,), [[1]])),
        ("E[tanh(z), z: N(x, q)]", GaussianAverage(tanh(z), (z,), (x,), [[q]])),
        ("E[z*w, z, w]", GaussianAverage(z * w, (z, w), (0, 0), [[1, 0], [0, 1]])),
        ("E[z*w, (z, w): N((x, 0), ((q, y), (y, 1)))]", GaussianAverage(z * w, (z, w), (x, 0), [[q, y], [y, 1]])),
        (
            "E[M[exp(w), w: (z, y)], z: N(0, q)]",
            GaussianAverage(MoreauEnvelope(exp(w), (w,), (z,), [[y]]), (z,), (0,), [[q]]),
        ),
    ],
)
def test_what_a_formula_means(text, value):
    assert read(text) == value


@pytest.mark.parametrize(
    "text, inside, outside",
    [
        ("x > 0 and y == 1", (1, 1), (1, 2)),
        ("0 < x <= 2", (2, 0), (0, 0)),
        ("not (x > 0 or y != 1)", (0, 1), (1, 1)),
    ],
)
def test_conditions(text, inside, outside):
    where = condition(text, NAMES, "a phase", Budget())
    assert where.subs(dict(zip((x, y), inside, strict=True))) == S.true
    assert where.subs(dict(zip((x, y), outside, strict=True))) == S.false


@pytest.mark.parametrize("text", ["x", "1 < 2", "x + (y < 1) > 2", "x == x", "not " * 900 + "x > 0"])
def test_what_is_no_condition(text):
    with pytest.raises(FormulaError):
        condition(text, NAMES, "a phase", Budget())


@pytest.mark.parametrize(
    "text, character, why",
    [
        ("x + ", 4, "ends where a number"),
        ("", 1, "ends where a number"),
        ("x * * y", 5, "has to stand here"),
        ("x // y", 4, "has to stand here"),
        ("2*foo + 1", 3, "foo is not declared"),
        ("x + lambada", 5, "did you mean lambda"),
        ("2x", 2, "an operator is missing"),
        ("x y", 3, "an operator is missing"),
        ("x(1 + y)", 1, "written x"),
        ("(x)(y)", 4, "an operator is missing"),
        ("(x + (y)", 1, "not closed"),
        ("x)", 2, "not opened"),
        ("(x]", 3, "not opened"),
        ("x.y", 2, "no attributes"),
        ("x.__class__", 2, "no attributes"),
        ("__import__", 1, "'_'"),
        ("x__y", 1, "single underscores"),
        ("x" * 33, 1, "at most 32"),
        ("x = 3", 3, "== compares"),
        ("exp('a')", 5, "quotes"),
        ("x + \u0445", 5, "U+0445"),
        ("x\u2212y", 2, "U+2212"),
        ("x; y", 2, "';'"),
        ("x@y", 2, "'@'"),
        ("x, y", 2, "a comma"),
        ("(x, y)", 1, "no place"),
        ("x: y", 2, "a colon"),
        ("[x]", 1, "square brackets"),
        ("x[0]", 2, "square brackets"),
        ("lambda x: x", 8, "an operator is missing"),
        ("x if y else q", 3, "an operator is missing"),
        ("exp", 1, "is a function"),
        ("exp(x, y)", 1, "takes 1 argument"),
        ("max(x)", 1, "takes 2 arguments"),
        ("exp(*x)", 5, "has to stand here"),
        ("tahn(x)", 1, "did you mean tanh"),
        ("x < y", 1, "a condition"),
        ("1/(2 - 2)", 4, "divides by zero"),
        ("0^-1", 1, "not finite"),
        ("(-8)^(1/3)", 1, "not real"),
        ("log(0)", 1, "not finite"),
        ("sqrt(-2)*x", 1, "not real"),
        ("oo", 1, "finite"),
        ("E[z]", 1, "needs a formula"),
        ("E[x, x]", 6, "a meaning already"),
        ("E[z, z: 3]", 6, "write E"),
        ("E[z, (z, w): N((0, 0), ((1, x), (y, 1)))]", 24, "not symmetric"),
        ("E[z, (z, w): N((0, 0), ((1, x)))]", 6, "a square matrix"),
        ("E[E[z*w, z], w]", 1, "an average inside"),
        ("E[M[M[z*a, z: (0, 1)], a: (w, 1)], w]", 3, "another minimum"),
        ("E[M[abs(z), z: (w, 1)], w]", 3, "have kinks"),
        ("E[a + b, a, b, q1, q2, q3]", 1, "one to 4"),
        ("sum[k, k: (x, 3)]", 12, "whole numbers"),
        ("sum[k, k: 3]", 8, "write sum"),
        ("sum[k, k: (1, 2): 3]", 8, "write sum"),
        ("E[z, z: N(0, 1): 3]", 6, "write E"),
        ("E[M[z, z: (w, 1): 3], w]", 8, "write M"),
    ],
)
def test_errors_point_at_the_character(text, character, why):
    with pytest.raises(FormulaError) as caught:
        read(text)
    head, line, caret = str(caught.value).split("\n")
    assert head.startswith(f"the action, character {character}: ")
    assert why in head
    assert caret.index("^") - 4 == character - 1
    assert line[4:] == text


def test_the_line_of_a_long_formula_is_cut_around_the_error():
    with pytest.raises(FormulaError) as caught:
        read("x + " * 200 + "foo\n + x")
    _, line, caret = str(caught.value).split("\n")
    assert len(line) < 120
    assert line[caret.index("^") :] == "foo"


HOSTILE = [
    "9^9^9^9",
    "10^(10^10)",
    "(2*x)^(10^9)",
    "((2*x)^1000)^1000",
    "1e999999999",
    "gamma(10^9)",
    "loggamma(10^9)",
    "gamma(1/2 + 10^9)",
    "exp(10^9*log(2))",
    "exp(exp(20)*log(3)) + sqrt(10^100 + 7)",
    "2^(10^9*log(3)/log(2))",
    "(10^100 + 7)^(1/3)",
    "sum[k, k: (1, 10^9)]",
    "sum[sum[x^k*j, k: (1, 1000)], j: (1, 1000)]",
    "sum[1, i: (1, 99999), j: (1, 99999), k: (1, 99999)]",
    "(" * 100_000,
    "(" * 1999 + ")" * 1999,
    "exp(" * NESTING + "exp(x)" + ")" * NESTING,
    "-" * (LENGTH - 1) + "x",
    "x^" * (LENGTH // 2 - 1) + "x",
    "not " * 900 + "x",
    "+".join(f"tanh({k}*x)" for k in range(350)) + "+" + "+".join(["x*y*q"] * 220),
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:30])
def test_no_formula_takes_long_to_refuse(text):
    begin = time.process_time()
    with pytest.raises(FormulaError):
        read(text)
    assert time.process_time() - begin < 2


LONG = [
    "+".join(["x"] * (LENGTH // 2 - 1)),
    "*".join(f"(x+{k})" for k in range(500)),
    "+".join(f"tanh({k}*x)" for k in range(280)),
    "abs(" * (NESTING - 1) + "x" + ")" * (NESTING - 1),
    "max(x*y," * (NESTING - 1) + "x" + ")" * (NESTING - 1),
    "tanh(1+" * (NESTING - 1) + "x" + ")" * (NESTING - 1),
    "(q+(" * (NESTING // 2 - 1) + "x" + ")^2)^y" * (NESTING // 2 - 1),
    "exp(log(1+" * (NESTING // 2 - 1) + "x" + ")*2)" * (NESTING // 2 - 1),
]


@pytest.mark.parametrize("text", LONG, ids=lambda text: text[:20])
def test_the_largest_formulas_are_read_in_time(text):
    begin = time.process_time()
    read(text)
    assert time.process_time() - begin < 2


def test_the_work_of_a_file_is_bounded_over_all_its_formulas():
    budget = Budget()

    def doubled(value, count):
        for _ in range(count):
            value = expression("(1 + d)^2*sin(d)", {"d": value}, "d", budget)

    doubled(x, 5)
    with pytest.raises(FormulaError, match=f"{WORK} operations"):
        doubled(x, 40)


def test_numbers_of_any_spelling_are_bounded():
    assert number("1e3") == 1000
    for text in ("1e5000", "1e-5000", "9" * 5000, "1e" + "9" * 50, "inf", "nan", "1_000", "0x10", ""):
        with pytest.raises(ExactnessError):
            number(text)


VALUES = {"x": mpmath.mpf(1) / 3, "y": mpmath.mpf(2) / 7, "q": mpmath.mpf(3) / 7}
EXACT = {x: Rational(1, 3), y: Rational(2, 7), q: Rational(3, 7)}


@pytest.mark.parametrize(
    "text",
    [
        *(f"{name}({', '.join(['x', 'y'][: f.arguments])})" for name, f in FUNCTIONS.items()),
        "x^y*tanh(x)/q - 2^-x",
        "sum[x^k/k, k: (1, 4)] + pi + e",
        "E[log(2*cosh(x*z)), z]",
        "E[z^2*w, (z, w): N((x, y), ((q, y), (y, 1)))]",
        "E[M[softplus(1 - z)^2, z: (c, q)], c: N(x, y)]",
    ],
)
def test_the_two_algebras_agree(text):
    """SymPy's expression and mpmath's numbers come from one text by different ways."""
    value = probed(read(text)).subs(EXACT).evalf(40)
    with mpmath.workdps(40):
        other = numeric(text, {name: mpmath.mpf(v.p) / v.q for name, v in zip("xyq", EXACT.values(), strict=True)}, "")
        assert abs(mpmath.mpf(value._to_mpmath(140)) - other) < mpmath.mpf(10) ** -35


def test_numeric_says_where_a_formula_is_not_real():
    with pytest.raises(FormulaError, match="character 5: this is not real"):
        numeric("1 + log(x - 1)", VALUES, "the action")
    with pytest.raises(FormulaError, match="out of the range"):
        numeric("exp(exp(exp(exp(10*x + 10))))", VALUES, "the action")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_can_be_evaluated_with_its_slopes(name):
    """Nothing is in the grammar that a solver could not take; kinks have one slope, and NumPy has no real W."""
    arguments = [Symbol("a", positive=True), Symbol("b", positive=True)][: FUNCTIONS[name].arguments]
    value = read(f"{name}({', '.join(map(str, arguments))})", {str(a): a for a in arguments})
    orders = 2 if name in ("abs", "max", "min") else 3
    formulas = tuple(value.diff(arguments[0], order) for order in range(orders))
    at = [Rational(1, 3), Rational(5, 7)][: len(arguments)]
    exact = emit(formulas, arguments, "mpmath")(*at)
    step = mpmath.mpf("1e-8")
    emitted = emit(value, arguments, "mpmath")
    moved = [emitted(mpmath.mpf(1) / 3 + sign * step, *at[1:]) for sign in (-1, 1)]
    assert abs((moved[1] - moved[0]) / (2 * step) - exact[1]) < 1e-6
    if name not in ("lambertw", "W"):
        numbers = emit(formulas, arguments, "numpy")(*map(float, at))
        assert all(abs(float(a) - b) < 1e-12 * max(1, abs(b)) for a, b in zip(numbers, exact, strict=True))
