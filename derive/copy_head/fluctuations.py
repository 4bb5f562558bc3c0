r"""Finite temperature: transverse fluctuations of the scores, and the density of one attention entry.

.. math:: F_\mathrm{fl}(s) = F(s) + \frac{T}{2} \ln\det{}' \frac{\mathcal H(s)}{\gamma_g}, \qquad
          \mathcal H = \gamma_g + \partial_G^2 D, \qquad \frac{ds}{dT} = -\frac{\partial_s F_1}{F''}

Laplace integration of the posterior over every score direction but the gap gives the determinant over the other
(V+L)^2 - 1 directions at T = 0. It is exact to first order in T on the plane, for a query whose token is drawn apart from
the keys': then the score row is x_b + y(t_b), and permutations of the keys and of the symbols leave one gap mode, L - 2
equal other modes and V - 1 token modes per row, which the four blocks of G share. The query's own key is one of L, so
that for the copy task itself the term is the leading order in 1/L. arXiv 2606.12058 keeps the entropy of W alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache
from itertools import pairwise, product

import mpmath
from sympy import (
    QQ,
    Basic,
    Derivative,
    Dummy,
    Expr,
    Float,
    Function,
    Rational,
    S,
    Symbol,
    Tuple,
    exp,
    factor,
    factorial,
    lambdify,
    log,
    pi,
    sqrt,
)
from sympy import symbols as symbols_

from derive.checks import DIGITS, Comparison
from derive.copy_head.enumeration import Direction, Number, Population, Site, determinant, inverse, score_row, units
from derive.copy_head.model import L, Model, P, T, V, gamma_g, gamma_w, s
from derive.copy_head.posterior import mode
from derive.copy_head.relaxed import COPIED, GROWTH, at_gap, row_modes, softmax_population, tilted_overlaps
from derive.derivation import Check, Derivation, Step

__all__ = ["ENTRY", "SOFTMAX_STEPS", "VARIANCES"]

# --- curvatures of one row ---


_OTHER = (1 - COPIED) / (L - 1)
_SQUARE, _CUBE = (factor(COPIED**k + (L - 1) * _OTHER**k) for k in (2, 3))
"""Attention on each other key when the copied one has A, and the sums of squares and cubes of the row."""


def _overlaps(copied: Expr, square: Expr) -> tuple[Expr, Expr]:
    """phi and psi of a row that does not depend on the tokens, with sum of squares ``square``."""
    return square + (1 - square) / V, copied + (1 - copied) / V


def _along_gap(function: Expr) -> Expr:
    """Derivative along the gap: of the copied attention it is A (1 - A)."""
    return COPIED * (1 - COPIED) * function.diff(COPIED)


def row_curvatures(model: Model, marginal: Basic) -> Tuple:
    """Second derivatives of the data term at T = 0 along unit perturbations of one row, as functions of its A.

    The gap; two other keys; one token; and the token mode common to all rows, which moves the readout W along.
    """
    cold = marginal.subs(T, 0)
    pairs, hits, tilt = Dummy("phi"), Dummy("psi"), Dummy("y")
    plane = dict(zip((pairs, hits), _overlaps(COPIED, _SQUARE), strict=True))
    data = row_modes(cold, pairs, hits)
    forces = [factor(data.diff(name).subs(plane)) / L for name in (pairs, hits)]

    def bend(second: Iterable[Expr]) -> Expr:
        return sum((force * factor(term) for force, term in zip(forces, second, strict=True)), S.Zero)

    def along_tilt(overlaps: Iterable[Expr]) -> list[Expr]:
        return [overlap.diff(tilt, 2).subs(tilt, 0) for overlap in overlaps]

    norm = 1 + _OTHER * (exp(tilt) + exp(-tilt) - 2)
    split = _SQUARE + _OTHER**2 * (exp(2 * tilt) + exp(-2 * tilt) - 2)
    gap = bend(_along_gap(_along_gap(overlap)) for overlap in plane.values()) / (1 - 1 / L)
    keys = bend(along_tilt(_overlaps(COPIED / norm, split / norm**2))) / 2
    token = bend(along_tilt(tilted_overlaps(tilt, certain=0))) / (1 - 1 / V)
    return Tuple(gap, keys, token, token + _readout_response(cold, *plane.values()) / L)


def _readout_response(cold: Basic, pairs: Expr, hits: Expr) -> Expr:
    """What the readout gains when every row turns towards one unit token direction y (sum y = 0, |y| = 1).

    With N = (C + rho)^-1 and W = N B the second derivative of -kappa tr B^T N B holds -2 kappa tr Q^T N Q, Q = dB - dC W.
    A matrix d diag(y) + (l y 1^T + k 1 y^T)/V is written (d, l, k); the row's slopes A_b (y_b - sum A y) give dB and dC.
    """
    gram, cross = Dummy("gram"), Dummy("cross")
    one = mode(cold, gram, cross)
    constant = {gram: P * L / V, cross: P * L / V}
    token = {gram: P * L * (pairs - 1 / V) / (V - 1), cross: P * L * (hits - 1 / V) / (V - 1)}
    flat, sharp = (factor(-2 * (one.diff(gram) / one.diff(cross)).subs(at)) for at in (constant, token))
    turned, mixed = 2 * (_SQUARE - _CUBE), 1 - 3 * _SQUARE + 2 * _CUBE
    spread = COPIED * (1 - COPIED)
    diagonal = spread - turned * sharp
    left = 1 - spread - _SQUARE - turned * (flat - sharp) - mixed * flat
    right = -spread - mixed * sharp
    total = diagonal**2 + (left**2 + right**2 + 2 * diagonal * (left + right)) / V
    common = (diagonal + right) ** 2 / V
    stiff, soft = (factor(one.diff(cross, 2).subs(at)) for at in (constant, token))
    return (P * L / V) ** 2 * (stiff * common + soft * (total - common))


# --- the one-loop term ---


def _columns(gap: Expr, keys: Expr) -> tuple[Expr, Expr]:
    """Curvature of one column of token-position scores: row modes averaged over rows, bare and screened by the rows."""
    bare = (gap + (L - 2) * keys) / (L - 1)
    screened = (gap / (1 + gap) + (L - 2) * keys / (1 + keys)) / (L - 1)
    return 1 + L / V * bare, 1 + L / V * screened


def _loop(curvatures: Iterable[Expr]) -> Expr:
    """Half the log determinant of the Hessian over all scores but the gap, by block; curvatures in units of gamma_g.

    Row modes come once per row; averaged over the rows they give the token-position block, which sees L/V rows a token,
    and screen its constant part; the token modes of position-token and token-token share the common one.
    """
    gap, keys, token, common = curvatures
    bare, screened = _columns(gap, keys)
    position_position = (L - 1) * log(1 + gap) + L * (L - 2) * log(1 + keys)
    token_position = (V - 1) * (L - 1) * log(bare) + (L - 1) * log(screened)
    any_token = (L - 1) * log(1 + token) + (V - 1) * log(1 + L / V * token) + log(1 + (1 + L / V) * common)
    return (position_position + token_position + (V - 1) * any_token) / 2


def one_loop_term(model: Model, curvatures: Tuple, copied: Expr) -> Expr:
    return _loop(curvature.subs(COPIED, copied) / model.score_decay for curvature in curvatures)


def fluctuating_action(model: Model, plane: Expr, loop: Expr) -> Expr:
    return plane + T * loop


def drift(model: Model, plane: Expr, loop: Expr) -> Tuple:
    """ds/dT at T = 0 of a stationary point: from the entropy of W, from the one-loop term, and from both.

    The slope of the one-loop term stays unevaluated: written out it is an order of magnitude longer than the term.
    """
    stiffness = plane.subs(T, 0).diff(s, 2)
    entropy, fluctuations = plane.diff(T).diff(s), Derivative(loop, s)
    return Tuple(*(-slope / stiffness for slope in (entropy, fluctuations, entropy + fluctuations)))


# --- one attention entry ---

Rivals = tuple[tuple[Expr, Expr, Expr], ...]

ENTRY = Symbol("x", positive=True)
"""The value of an attention entry, between zero and one."""

VARIANCES = (Symbol("tau_c", positive=True), Symbol("tau_o", positive=True))
"""Variances of the copied score and of another one, of order T."""


def score_variance(model: Model, plane: Expr, curvatures: Tuple, copied: Expr) -> Tuple:
    """Posterior variance of the copied score and of another one: each adds a position and a token part.

    They are diagonal in the modes of the inverse Hessian: the gap, other keys, tokens; without data each is 2 T/gamma_g.
    """
    gap, keys, token, common = (curvature.subs(COPIED, copied) / model.score_decay for curvature in curvatures)
    bare, screened = _columns(gap, keys)
    all_rows = plane.subs(T, 0).diff(s, 2) / ((L - 1) * model.score_decay)

    def row(curvature: Expr) -> Expr:
        return 1 / (1 + curvature) + 1 / (V * screened * (1 + curvature) ** 2) + (1 - 1 / V) / bare

    position, other, tokens = (
        row(gap) + (1 / all_rows - 1 / (1 + gap)) / L,
        row(keys),
        (1 - 1 / L) / (1 + token) + (1 - 1 / V) / (1 + L / V * token) + (1 / L + 1 / V) / (1 + (1 + L / V) * common),
    )
    return Tuple(*(T / model.score_decay * (part + tokens) for part in (position, other)))


def _competitors() -> Iterator[tuple[Expr, Expr, Rivals]]:
    """For the copied entry and for another one: its value, its score's variance, and the classes it competes with.

    A class is (number of keys, entry, variance of the score). Scores are taken independent, as they are but for keys of
    one token.
    """
    copied, other = VARIANCES
    yield COPIED, copied, ((L - 1, _OTHER, other),)
    yield _OTHER, other, ((S.One, COPIED, copied), (L - 2, _OTHER, other))


def entry_logits(model: Model) -> Tuple:
    """Mean and variance of ln(A/(1-A)) = S - ln R, for the copied entry and for another one.

    R sums the competing weights, independent log-normals; ln R is taken normal, with the first two moments of R.
    """

    def logit(entry: Expr, variance: Expr, rivals: Rivals) -> Tuple:
        weights = [(count, factor(other / entry), noise) for count, other, noise in rivals]
        total = sum((count * weight * exp(noise / 2) for count, weight, noise in weights), S.Zero)
        spread = sum((count * weight**2 * exp(noise) * (exp(noise) - 1) for count, weight, noise in weights), S.Zero)
        width = log(1 + spread / total**2)
        return Tuple(width / 2 - log(total), variance + width)

    return Tuple(*(logit(*parts) for parts in _competitors()))


def entry_density(model: Model, logits: Tuple) -> Tuple:
    """Density of an entry x when its logit is normal; the Jacobian of the logit is 1/(x (1 - x))."""
    logit, jacobian = log(ENTRY / (1 - ENTRY)), ENTRY * (1 - ENTRY)
    return Tuple(
        *(exp(-((logit - mean) ** 2) / (2 * width)) / (jacobian * sqrt(2 * pi * width)) for mean, width in logits)
    )


def entry_moments(model: Model) -> Tuple:
    """Mean, variance and skewness of the softmax of independent Gaussian scores, each to leading order in T.

    With v_c = delta_bc - A_c the entry e = A_b has gradient e v and Hessian e (v v^T - diag A + A A^T); to leading order
    the third cumulant is 3 grad e . D . Hess e . D . grad e with the covariance D.
    """

    def moments(entry: Expr, variance: Expr, rivals: Rivals) -> Tuple:
        row = ((S.One, entry, variance, 1 - entry), *((count, a, noise, -a) for count, a, noise in rivals))
        shift = sum((count * noise * (v**2 - a + a**2) for count, a, noise, v in row), S.Zero)
        slope = sum((count * noise * v**2 for count, a, noise, v in row), S.Zero)
        bend = sum((count * a * noise**2 * v**2 for count, a, noise, v in row), S.Zero)
        turn = sum((count * a * noise * v for count, a, noise, v in row), S.Zero)
        return Tuple(entry + entry * shift / 2, entry**2 * slope, 3 * (slope**2 - bend + turn**2) / sqrt(slope) ** 3)

    return Tuple(*(moments(*parts) for parts in _competitors()))


# --- checks ---

_SMALLEST, _SIZES = (3, 2), ((4, 2), (3, 3))


def _cold(model: Model, length: int, symbols: int, apart: bool) -> Population:
    """All sequences at T = 0; ``apart`` draws the query's token independently of the keys'."""
    population = softmax_population(model, length, symbols, apart)
    return replace(population, values={**population.values, T: S.Zero})


@cache
def _hessian(model: Model, length: int, symbols: int, apart: bool = True) -> tuple[tuple[Number, ...], ...]:
    """gamma_g plus the enumerated Hessian of the data term at T = 0 in all (V+L)^2 scores."""
    population = _cold(model, length, symbols, apart)
    _, hessian = population.derivatives(units(length, symbols))
    price = QQ.convert(S(model.score_decay).subs(population.values))
    return tuple(tuple(x + (price if i == j else 0) for j, x in enumerate(line)) for i, line in enumerate(hessian))


def _gap(model: Model, length: int, symbols: int, signs: Iterable[int]) -> Direction:
    """Gaps in all rows, with the given signs."""
    return {
        (symbols + a, symbols + b): sign * (int((a - b - model.shift) % length == 0) - Rational(1, length))
        for a, sign in enumerate(signs)
        for b in range(length)
    }


def _curvature_claim(derivation: Derivation) -> Iterable[Comparison]:
    """Enumerated second derivatives; opposite perturbations of two rows leave C and B, and so the readout, alone."""
    model = derivation.model
    for length, symbols in (_SMALLEST, (4, 3)):
        others = [symbols + b for b in range(length) if (b + model.shift) % length][:2]
        signs = [1, -1, *[0] * (length - 2)]
        directions: tuple[Direction, ...] = (
            _gap(model, length, symbols, signs),
            {(symbols, others[0]): 1, (symbols, others[1]): -1},
            {(symbols + a, token): sign * turn for a, sign in enumerate(signs) for token, turn in ((0, 1), (1, -1))},
            {(symbols + a, token): turn for a in range(length) for token, turn in ((0, 1), (1, -1))},
        )
        _, hessian = _cold(model, length, symbols, apart=True).derivatives(directions)
        for k, (ours, direction) in enumerate(zip(derivation.value("row curvatures"), directions, strict=True)):
            explicit = QQ.to_sympy(hessian[k][k]) / sum(x**2 for x in direction.values())
            yield f"direction {k}, L = {length}, V = {symbols}", at_gap(ours, length, symbols), explicit


def _half_log_determinant(model: Model, length: int, symbols: int, apart: bool = True) -> Expr:
    """Half the log determinant of the enumerated Hessian over gamma_g, without its gap direction."""
    hessian, size = _hessian(model, length, symbols, apart), length + symbols
    gap = {i * size + j: QQ.convert(x) for (i, j), x in _gap(model, length, symbols, [1] * length).items()}
    stiffness = sum(x * y * hessian[k][m] for k, x in gap.items() for m, y in gap.items()) / sum(
        x**2 for x in gap.values()
    )
    price = at_gap(S(model.score_decay), length, symbols)
    return log(QQ.to_sympy(determinant(hessian) / stiffness) / price ** (len(hessian) - 1)) / 2


def _loop_claim(*sizes: tuple[int, int]) -> Callable[[Derivation], Iterable[Comparison]]:
    def claim(derivation: Derivation) -> Iterable[Comparison]:
        for length, symbols in sizes:
            ours = at_gap(derivation.value("one-loop term"), length, symbols)
            yield f"L = {length}, V = {symbols}", ours, _half_log_determinant(derivation.model, length, symbols)

    return claim


def _own_key_claim(derivation: Derivation) -> Iterable[Comparison]:
    """With the query's own token among the keys the determinant differs, the less the longer the sequence."""
    shift = derivation.model.shift
    misfits = [
        abs(
            at_gap(derivation.value("one-loop term"), length, 2)
            - _half_log_determinant(derivation.model, length, 2, apart=False)
        ).evalf()
        for length in (shift + 2, shift + 3, shift + 4)
    ]
    for length, (short, long) in enumerate(pairwise(misfits), shift + 2):
        yield f"L = {length} against {length + 1}", short, long


def _fluctuating_claim(derivation: Derivation) -> Iterable[Comparison]:
    length, symbols = _SMALLEST
    loop = _half_log_determinant(derivation.model, length, symbols)
    names = ("fluctuating action", "softmax action")
    action, plane = (at_gap(derivation.value(name), length, symbols) for name in names)
    yield f"L = {length}, V = {symbols}", action, plane + at_gap(T, length, symbols) * loop


def _drift_claim(derivation: Derivation) -> Iterable[Comparison]:
    """Stationary points at T = 0 and at a tiny T, by Newton's method on difference quotients."""
    setup = {L: S(24), V: S(6), P: S(400), gamma_w: Rational(6, 5), gamma_g: Rational(5, 7)}
    tiny = Rational(1, 10**40)
    with mpmath.workdps(160):
        actions = [
            lambdify((s, T), derivation.value(name).subs(setup), "mpmath")
            for name in ("softmax action", "fluctuating action")
        ]
        gap, heat = mpmath.mpf(3), mpmath.mpf(tiny.p) / tiny.q
        for _ in range(12):
            gap = _newton(actions[0], gap, mpmath.mpf(0))
        entropy, total = ((_newton(action, _newton(action, gap, heat), heat) - gap) / heat for action in actions)
        parts = lambdify(s, derivation.value("drift").subs({**setup, T: S.Zero}).doit(), "mpmath")(gap)
        yield "entropy of W, one loop, both", tuple(parts), (entropy, total - entropy, total)


def _newton(action: Callable[[mpmath.mpf, mpmath.mpf], mpmath.mpf], gap: mpmath.mpf, heat: mpmath.mpf) -> mpmath.mpf:
    """One Newton step towards a stationary point, the derivatives by central differences."""
    step = mpmath.mpf(10) ** -40
    up, middle, down = (action(gap + k * step, heat) for k in (1, 0, -1))
    return gap - (up - down) / 2 * step / (up - 2 * middle + down)


def _variance_claim(derivation: Derivation) -> Iterable[Comparison]:
    """Quadratic forms of the inverse of the enumerated Hessian in all (V+L)^2 scores."""
    model, (length, symbols) = derivation.model, _SMALLEST
    size = length + symbols
    covariance = inverse([list(line) for line in _hessian(model, length, symbols)], QQ.convert)
    keys = [symbols + b for b in range(length) if (b + model.shift) % length]
    gap = {j: x for (i, j), x in _gap(model, length, symbols, [1]).items()}
    forms = []
    for pattern in (gap, {keys[0]: 1, keys[1]: -1}, {0: 1, 1: -1}):
        score = {i * size + j: QQ.convert(x) for i in (0, symbols) for j, x in pattern.items()}
        form = sum(x * y * covariance[k][m] for k, x in score.items() for m, y in score.items())
        forms.append(at_gap(T, length, symbols) * QQ.to_sympy(form) / sum(x**2 for x in pattern.values()))
    position, other, tokens = forms
    explicit = (position + tokens, other + tokens)
    yield f"L = {length}, V = {symbols}", at_gap(derivation.value("score variance"), length, symbols), explicit


def _prior_claim(derivation: Derivation) -> Iterable[Comparison]:
    """Without data: the squared coefficients of the entries of G in one score."""
    for length, tokens in ((3, (1, 0, 1)), (2, (1, 2))):
        symbols = max(tokens) + 1
        site = Site(0, tokens[0], tokens)
        rows = [score_row(direction, site, symbols, QQ.convert) for direction in units(length, symbols)]
        ours = at_gap(derivation.value("score variance").subs(P, 0), length, symbols)
        for column in zip(*rows, strict=True):
            explicit = T / S(derivation.model.score_decay) * QQ.to_sympy(sum(x**2 for x in column))
            yield f"{site}", ours, (at_gap(explicit, length, symbols),) * 2


_NOISES = (Rational(3, 2), Rational(2, 3))


def _at_noise(expression: Basic, length: int) -> Basic:
    return at_gap(expression.subs(dict(zip(VARIANCES, _NOISES, strict=True))), length, 7)


def _logit_claim(derivation: Derivation) -> Iterable[Comparison]:
    """First and second moment of the competing weight R, pair by pair; one competitor makes the logit exact."""
    for length in (2, 3, 6):
        for own, logit in enumerate(_at_noise(derivation.value("entry logits"), length)):
            yield f"key {own}, L = {length}", *_competing_moments(own, length, *logit)


def _competing_moments(own: int, length: int, mean: Expr, spread: Expr) -> tuple[tuple[Expr, Expr], tuple[Expr, Expr]]:
    """First and second moment of the competing weight R: as a logit of this mean and variance has it, and pair by pair."""
    keys = [(GROWTH, _NOISES[0]), *[(S.One, _NOISES[1])] * (length - 1)]
    weight, noise = keys[own]
    rivals = list(enumerate(keys[:own] + keys[own + 1 :]))
    first = sum((x * exp(a / 2) for _, (x, a) in rivals), S.Zero)
    second = S.Zero
    for (i, (x, a)), (j, (y, b)) in product(rivals, rivals):
        second += x * y * exp((a + b) / 2 + (a if i == j else 0))
    middle, width = log(weight) - mean, spread - noise
    return (exp(middle + width / 2), exp(2 * (middle + width))), (first, second)


def _density_claim(derivation: Derivation) -> Iterable[Comparison]:
    """Total mass; moments of the competing weight; for L = 2 those of the entry from a double sum over both scores."""
    logit = log(ENTRY / (1 - ENTRY))
    with mpmath.workdps(DIGITS + 10):
        gap, *widths = (mpmath.mpf(str(x.evalf(DIGITS + 10))) for x in (log(GROWTH), *map(sqrt, _NOISES)))
        for length in (2, 5):
            for own, density in enumerate(_at_noise(derivation.value("entry density"), length)):
                mass, mean, square = (_integral(density * logit**power) for power in range(3))
                yield f"mass, key {own}, L = {length}", mass, S.One
                mean, square = (Float(value, DIGITS + 10) for value in (mean, square))
                yield f"logit, key {own}, L = {length}", *_competing_moments(own, length, mean, square - mean**2)
                if length == 2:
                    moments = [_integral(density * ENTRY**power) for power in (1, 2)]
                    brute = _softmax_moments(gap, *widths) if own == 0 else _softmax_moments(-gap, *reversed(widths))
                    yield f"moments, key {own}", moments, brute


def _integral(density: Expr) -> mpmath.mpf:
    return mpmath.quad(lambdify(ENTRY, density, "mpmath"), [0, mpmath.mpf(1) / 2, 1])


def _softmax_moments(gap: mpmath.mpf, first: mpmath.mpf, second: mpmath.mpf) -> list[mpmath.mpf]:
    """E[A] and E[A^2] for A = e^x/(e^x + e^y), x and y independent normal of means ``gap``, 0.

    The trapezoidal rule converges faster than any power on these integrands.
    """
    step = mpmath.mpf(1) / 6
    nodes = [(k * step, mpmath.npdf(k * step) * step) for k in range(-80, 81)]
    totals = [mpmath.mpf(0), mpmath.mpf(0)]
    for (x, weight), (y, other) in product(nodes, nodes):
        entry = 1 / (1 + mpmath.exp(second * y - first * x - gap))
        totals[0] += weight * other * entry
        totals[1] += weight * other * entry**2
    return totals


def _moments_claim(derivation: Derivation) -> Iterable[Comparison]:
    """Moments of the softmax of three Gaussians by the heat kernel: E f = f + D f/2 + D^2 f/8 + ..., D = sum tau_c d_c^2."""
    length, weights = 3, symbols_("w0:3", positive=True)
    base = dict(zip(weights, (GROWTH, S.One, S.One), strict=True))
    noises = (*_NOISES, _NOISES[1])

    def laplacian(f: Expr) -> Expr:
        return sum((noise * x * (x * f.diff(x)).diff(x) for noise, x in zip(noises, weights, strict=True)), S.Zero)

    for name, entry, ours in zip(("copied", "other"), weights, derivation.value("entry moments"), strict=False):
        series = []
        for power in range(1, 4):
            flat = (entry / sum(weights)) ** power
            once = factor(laplacian(flat))
            orders = [f.subs(base) for f in (flat, once, laplacian(once))]
            series.append(sum((value * _TAU**k / (2**k * factorial(k)) for k, value in enumerate(orders)), S.Zero))
        mean, square, cube = series
        width = (square - mean**2).expand().coeff(_TAU, 1)
        skew = (cube - 3 * mean * square + 2 * mean**3).expand().coeff(_TAU, 2)
        explicit = (mean.coeff(_TAU, 0) + mean.coeff(_TAU, 1), width, skew / sqrt(width) ** 3)
        yield name, _at_noise(ours, length), explicit


_TAU = Symbol("tau", positive=True)

_PAPER = "arXiv 2606.12058"

SOFTMAX_STEPS = (
    Step(
        "row curvatures",
        Tuple(*(Symbol(name) for name in ("D_s", "D_b", "D_t", "D_w"))),
        row_curvatures,
        "Second derivatives of the data term at T = 0 along one row: the gap, two of the other keys, one token; and along "
        "the token mode that all rows share, softened because the readout W follows it.",
        takes=("marginal action",),
        checks=(Check("enumerated Hessian along these directions", "exact", _curvature_claim),),
    ),
    Step(
        "one-loop term",
        Function("F_1")(s),
        one_loop_term,
        "Half the log determinant of the Hessian transverse to the gap. Key symmetry and symbol symmetry make it block "
        "diagonal when the query's token is independent of the keys': position-position rows, token-position rows averaged "
        "over L/V positions and screened by them, and the token modes of position-token and token-token.",
        takes=("row curvatures", "copied attention"),
        checks=(
            Check("determinant of the enumerated Hessian in all 25 scores", "numeric", _loop_claim(_SMALLEST)),
            Check("the same in all 36 scores, L + V = 6", "numeric", _loop_claim(*_SIZES), quick=False),
            Check("the query's own key matters less as L grows", "positive", _own_key_claim, quick=False),
        ),
    ),
    Step(
        "fluctuating action",
        Function(r"F_\mathrm{fl}")(s),
        fluctuating_action,
        "The action with the Gaussian fluctuations of all other scores integrated out, to first order in T. It is real "
        "where single rows are stable, 1 + D_s/gamma_g > 0, which holds at every minimum.",
        takes=("softmax action", "one-loop term"),
        checks=(Check("action plus T/2 times the enumerated log determinant", "numeric", _fluctuating_claim),),
    ),
    Step(
        "drift",
        Function("ds")(T) / Symbol("dT"),
        drift,
        "First-order perturbation of a stationary point in T: entropy of W, one-loop term, and their sum.",
        takes=("softmax action", "one-loop term"),
        checks=(Check("stationary points at T = 0 and T = 1e-40", "numeric", _drift_claim, quick=False),),
    ),
    Step(
        "score variance",
        Tuple(*VARIANCES),
        score_variance,
        "Variances of the copied score and of another one, from the inverse of the same Hessian: a position part (gap, or "
        "other keys) and a token part. Without data each part is 2 T/gamma_g.",
        takes=("softmax action", "row curvatures", "copied attention"),
        checks=(
            Check("inverse of the enumerated Hessian in all 25 scores", "exact", _variance_claim),
            Check("squared coefficients of the entries of G without data", "exact", _prior_claim),
        ),
    ),
    Step(
        "entry logits",
        Tuple(Symbol(r"\lambda_\mathrm{copy}"), Symbol(r"\lambda_\mathrm{other}")),
        entry_logits,
        "A = 1/(1 + R e^-S) with a Gaussian score S and R the sum of the competing log-normal weights; ln R is replaced by "
        "the normal variable that gives R its mean and variance, exact for L = 2 and in the limit of large L.",
        checks=(Check("moments of the competing weight, pair by pair", "numeric", _logit_claim),),
    ),
    Step(
        "entry density",
        Tuple(Function(r"p_\mathrm{copy}")(ENTRY), Function(r"p_\mathrm{other}")(ENTRY)),
        entry_density,
        "Push-forward of the Gaussian scores through the row-softmax: a logit-normal density, skewed towards 1/2.",
        takes=("entry logits",),
        checks=(
            Check("mass, competing weight, and double sum over both scores", "numeric", _density_claim, quick=False),
        ),
    ),
    Step(
        "entry moments",
        Tuple(Function("M")(Symbol("copy")), Function("M")(Symbol("other"))),
        entry_moments,
        "Mean, variance and skewness of an entry to leading order in T; the skewness is of order sqrt(T), so that the "
        "entries are not Gaussian.",
        checks=(Check("heat kernel on the softmax of three scores", "numeric", _moments_claim, quick=False),),
        source=f"{_PAPER}, claim C9",
    ),
)
