"""Derivatives through inner variables against SymPy's own, and emitted without overflow."""

import numpy as np
import pytest
from sympy import N, Rational, S, Symbol, cos, erf, exp, log, sqrt, symbols, tanh

from numerics.emit import emit
from numerics.emit.chain import jet

z = symbols("z_0:3", real=True)
a, Y = symbols("a Y", real=True)
POINT = {**dict(zip(z, (Rational(3, 10), Rational(-7, 10), Rational(2, 5)), strict=True)), a: S(1) / 3, Y: S(4) / 5}
SHARE = 1 / (1 + exp(z[0] * (z[1] - z[0])) + exp(z[2] * z[0]))

EXPRESSIONS = {
    "polynomial": (z[0] - Y) ** 2 + z[1] * z[2],
    "no variable": 3 * a,
    "logistic": log(1 + exp(z[0] * z[1] - a)),
    "two functions": tanh(z[0] * z[1]) ** 2 + z[2] ** 4,
    "softmax": (SHARE - a) ** 2 + (SHARE - 1 / (1 + exp(-Y * z[2]))) ** 2,
    "softmax squared": SHARE**2,
    "constant inside": cos(z[0] + 1) * exp(-(z[1] ** 2) * a),
    "dependent arguments": 1 / (1 + exp(Y * z[0])) + 1 / (1 + exp(-2 * Y * z[0])),
    "root": sqrt(1 + z[0] ** 2),
    "nested": exp(exp(z[0])),
    "sums of arguments": erf(z[0] * z[1] + z[2]) * exp(-z[2]),
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_derivatives_are_those_of_the_expression(name):
    expression = EXPRESSIONS[name]
    value, gradient, hessian, definitions = jet(expression, z)
    known = dict(POINT)
    for symbol, part in definitions.items():
        known[symbol] = part.subs(known)
    pairs = [(value, expression), *((gradient[i], expression.diff(z[i])) for i in range(3))]
    pairs += [(hessian[i][j], expression.diff(z[i], z[j])) for i in range(3) for j in range(3)]
    for ours, theirs in pairs:
        assert abs(N(ours.subs(known) - theirs.subs(POINT), 30)) < 1e-25


def test_quotients_of_exponentials_are_named_with_all_their_family():
    """Derivatives of a softmax are polynomials in its entries: no exponential but those of the entries themselves."""
    found = jet(SHARE, z)
    held = {part for part in found.definitions.values() if part.has(exp)}
    assert len(held) == 3
    assert not any(part.has(exp) for row in (found.gradient, *found.hessian) for part in row)
    at = {Symbol(name, real=True): POINT[z[place]] for place, name in enumerate(("_u0", "_u1"))}
    entries = [part.subs(at) for part in held]
    assert abs(N(sum(entries), 30) - 1) < 1e-25


def test_emitted_derivatives_do_not_overflow():
    """Fields of a thousand: shares are zero or one, their slopes vanish, and nothing warns (warnings are errors here)."""
    found = jet(SHARE, z)
    outputs = (found.value, *found.gradient, *(entry for row in found.hessian for entry in row))
    emitted = emit(outputs, z, definitions=found.definitions)
    for x, share in (((1000, 2000, -1000), 0), ((1000, -1000, -1000), 1), ((-1000, 1000, 900), 1)):
        value, *slopes = emitted(*map(float, x))
        assert value == pytest.approx(share)
        assert np.all(np.array(slopes) == 0)


def test_emitted_derivatives_on_arrays_equal_those_without_definitions():
    expression = EXPRESSIONS["softmax"]
    found = jet(expression, z)
    ours = emit((*found.gradient, *found.hessian[0]), (*z, a, Y), definitions=found.definitions)
    theirs = emit((*(expression.diff(x) for x in z), *(expression.diff(z[0], x) for x in z)), (*z, a, Y))
    points = np.random.default_rng(0).standard_normal((5, 200))
    for one, other in zip(ours(*points), theirs(*points), strict=True):
        assert one == pytest.approx(other, rel=1e-12, abs=1e-14)
