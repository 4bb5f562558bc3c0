r"""Averages over a standard normal variable, enclosed: rigorous quadrature inside, a proven bound outside.

.. math:: \Big| \mathrm{E} f(z) - \int_{-R}^{R} \frac{e^{-x^2/2}}{\sqrt{2\pi}} f(x)\, \mathrm{d}x \Big|
          \le C e^{a^2/2}\, \mathrm{erfc}\frac{R - a}{\sqrt 2} \quad\text{if}\quad |f(x)| \le C e^{a|x|}

The integral is Arb's (F. Johansson, ICMS 2018, after K. Petras): Gauss-Legendre rules whose errors are bounded by the size
of the integrand on ellipses in the complex plane. The bound on growth is read off the expression's tree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import mul

from flint import acb, arb, ctx, fmpq
from sympy import (
    Add,
    Basic,
    Expr,
    Mul,
    Pow,
    Rational,
    Symbol,
    cos,
    cosh,
    erf,
    erfc,
    exp,
    log,
    sin,
    sinh,
    tanh,
)

from numerics.balls import Ball
from numerics.certify.intervals import ProofError, ball_of
from numerics.certify.taylor import CONSTANTS, UncertifiableError, derivatives_at
from numerics.emit.graph import Graph

__all__ = ["At", "average_over", "gaussian_average"]

At = Mapping[Basic, Ball]
"""Values of symbols."""

_ENTIRE: dict[type[Basic], str] = {
    kind: kind.__name__ for kind in (exp, sin, cos, sinh, cosh, tanh, erf, erfc)
}  # or meromorphic: at a pole the value is not finite
_BOUNDED: dict[type[Basic], int] = {sin: 1, cos: 1, tanh: 1, erf: 1, erfc: 2}


def gaussian_average(expression: Expr, variable: Symbol, digits: int = 15) -> Ball:
    """A ball of radius 10^-digits at most that holds the mean of ``expression`` over a standard normal ``variable``.

    Raises `UncertifiableError` for a function without a rule, or whose growth is not bounded by the rules, and `ProofError`
    where the ball is too wide, as it is where the expression is not analytic on the real line.
    """
    for bits in (k * (64 + int(3.33 * digits)) for k in (1, 2, 4)):
        with ctx.workprec(bits):
            value = average_over(expression, variable, {})
            if value.rad() < arb(10) ** -digits:
                return value
    raise ProofError(f"the average of {str(expression)[:60]} is not enclosed to {digits} digits")


def average_over(expression: Expr, variable: Symbol, at: At) -> Ball:
    """A ball that holds the mean over a standard normal ``variable`` for all values of the other symbols in the balls ``at``.

    As narrow as Arb's current precision makes it; raises `UncertifiableError` as `gaussian_average` does.
    """
    C, a = _growth(expression, variable, at)
    if not (C.is_finite() and a.is_finite()):
        raise ProofError(f"an average cannot be enclosed: {str(expression)[:60]} is not defined everywhere in the box")
    reach = (a + (2 * (ctx.prec + (1 + C).log() / arb.const_log2() + 8)).sqrt()).upper().ceil()
    tail = C * (a * a / 2).exp() * ((reach - a) / arb(2).sqrt()).erfc()
    inside = acb.integral(_integrand(Graph([expression]), variable, at), -reach, reach).real
    return inside + arb(0, tail.upper())


def _integrand(graph: Graph, variable: Symbol, at: At) -> Callable[[acb, bool], acb]:
    """The density times the function, not finite on a region on which the function is not known to be analytic."""
    scale, known = 1 / (2 * arb.pi()).sqrt(), {symbol: acb(value) for symbol, value in at.items()}

    def integrand(x: acb, analytic: bool) -> acb:
        found: list[acb] = []
        for node, children in zip(graph.nodes, graph.children, strict=True):
            if isinstance(node, Symbol):
                found.append(x if node == variable else known[node])
            else:
                found.append(_complex(node, [found[child] for child in children], analytic))
        return found[graph.roots[0]] * (-x * x / 2).exp() * scale

    return integrand


def _complex(node: Basic, parts: Sequence[acb], analytic: bool) -> acb:
    if isinstance(node, Rational):
        return acb(ball_of(node))
    if node in CONSTANTS:
        return acb(CONSTANTS[node]())
    if isinstance(node, Add):
        return sum(parts, acb(0))
    if isinstance(node, Mul):
        product = acb(1)
        for part in parts:
            product *= part
        return product
    if isinstance(node, Pow) and isinstance(node.exp, Rational):
        if node.exp.q == 1:
            return parts[0] ** int(node.exp)
        return parts[0].pow(acb(arb(fmpq(int(node.exp.p), int(node.exp.q)))), analytic=analytic)
    if type(node) in _ENTIRE:
        return acb(getattr(parts[0], _ENTIRE[type(node)])())
    if isinstance(node, log):
        return parts[0].log(analytic=analytic)
    raise UncertifiableError(f"an average cannot be enclosed of {type(node).__name__} in {str(node)[:60]}")


def _constant(node: Expr, at: At) -> Ball:
    return derivatives_at(node, (), at, 0)[()]


def _growth(node: Expr, x: Symbol, at: At) -> tuple[Ball, Ball]:
    """C and a with |f(x)| <= C exp(a |x|)."""
    if not node.has(x):
        return abs(_constant(node, at)), arb(0)
    if node == x:
        return arb(1), arb(1)
    if isinstance(node, Add | Mul):
        sizes, rates = zip(*(_growth(part, x, at) for part in node.args), strict=True)
        if isinstance(node, Mul):
            return _product(sizes), sum(rates, arb(0))
        return sum(sizes, arb(0)), reduce(arb.max, rates)
    if isinstance(node, Pow) and isinstance(node.exp, Rational):
        power = ball_of(node.exp)
        if node.exp < 0:
            return _positive(node.base, x, at) ** power, arb(0)
        size, rate = _growth(node.base, x, at)
        return size**power, rate * power
    if isinstance(node, exp):
        level, rate = _rise(node.args[0], x, at)
        return level.exp(), rate
    if isinstance(node, sinh | cosh):
        level, rate = _line(node.args[0], x, at)
        return level.exp(), rate
    if isinstance(node, log):
        level, rate = _line(node, x, at)
        return level + rate, arb(int(bool(rate > 0)))  # |x| <= exp |x|
    return _line(node, x, at)


def _line(node: Expr, x: Symbol, at: At) -> tuple[Ball, Ball]:
    """c and a with |f(x)| <= c + a |x|."""
    if not node.has(x):
        return abs(_constant(node, at)), arb(0)
    if node == x:
        return arb(0), arb(1)
    if type(node) in _BOUNDED:
        return arb(_BOUNDED[type(node)]), arb(0)
    if isinstance(node, Add):
        levels, rates = zip(*(_line(part, x, at) for part in node.args), strict=True)
        return sum(levels, arb(0)), sum(rates, arb(0))
    if isinstance(node, Mul):
        lines = [_line(part, x, at) for part in node.args]
        rising = [rate for _, rate in lines if not rate.is_zero()]
        if len(rising) <= 1:
            flat = _product([level for level, rate in lines if rate.is_zero()])
            level, rate = next((line for line in lines if not line[1].is_zero()), (arb(1), arb(0)))
            return flat * level, flat * rate
    if isinstance(node, log):
        size, rate = _growth(node.args[0], x, at)
        return abs(_positive(node.args[0], x, at).log()) + abs(size.log()), rate
    raise UncertifiableError(f"an average cannot be enclosed: the growth of {str(node)[:60]} is not bounded")


def _rise(node: Expr, x: Symbol, at: At) -> tuple[Ball, Ball]:
    """c and a >= 0 with f(x) <= c + a |x|."""
    if isinstance(node, Add):
        levels, rates = zip(*(_rise(part, x, at) for part in node.args), strict=True)
        return sum(levels, arb(0)), sum(rates, arb(0))
    if node.has(x) and _least(-node, x, at) >= 0:
        return arb(0), arb(0)
    return _line(node, x, at)


def _positive(node: Expr, x: Symbol, at: At) -> Ball:
    """A positive number below f."""
    least = _least(node, x, at)
    if not least > 0:
        raise UncertifiableError(f"an average cannot be enclosed: {str(node)[:60]} is not seen to stay above zero")
    return least


def _least(node: Expr, x: Symbol, at: At) -> Ball:
    """A number below f, minus infinity where none is seen."""
    if not node.has(x):
        return _constant(node, at)
    if type(node) in _BOUNDED:
        return arb(0) if isinstance(node, erfc) else arb(-1)
    if isinstance(node, cosh):
        return arb(1)
    if isinstance(node, exp):
        return arb(0)
    if isinstance(node, Pow) and isinstance(node.exp, Rational) and (node.exp.q == 2 or node.exp.p % 2 == 0):
        return arb(0)
    if isinstance(node, Add | Mul):
        parts = [_least(part, x, at) for part in node.args]
        if isinstance(node, Add):
            return sum(parts, arb(0))
        if all(part >= 0 for part in parts):
            return _product(parts)
    return arb.neg_inf()


def _product(factors: Sequence[Ball]) -> Ball:
    return reduce(mul, factors, arb(1))
