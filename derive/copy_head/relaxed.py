r"""The plane's surroundings: the same-token coordinate h, to second order.

.. math:: S_{ab} \to S_{ab} + h\,(\delta(t_a, t_b) - 1/V), \qquad
          F_\mathrm{rel} = F - \frac{g_h^2}{2 H_{hh}}, \quad h^* = -\frac{g_h}{H_{hh}}

On the plane the exact population action has a slope along one invariant direction only, the same-token one: there the
attention correlates with the tokens. The features keep one constant and V - 1 token modes, so the action along h needs
only the sums of one row, averaged over the number of keys that carry the query's token, which is binomial. In terms of
the unit vector of its direction the coordinate is sqrt(V - 1) h. arXiv 2606.12058 keeps the plane alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise

import mpmath
from sympy import (
    QQ,
    Add,
    Basic,
    Dummy,
    Expr,
    Function,
    Rational,
    S,
    Symbol,
    Tuple,
    exp,
    factor,
    factorial,
    log,
)
from sympy.polys.fields import FracField

from derive.checks import Comparison
from derive.copy_head.enumeration import Number, Population, Site, invariant_directions, same_token, stationary_point
from derive.copy_head.model import L, Model, P, T, V, c, gamma_g, gamma_w, h, s, u
from derive.copy_head.posterior import mode
from derive.derivation import Check, Derivation, Step

__all__ = [
    "COPIED",
    "GROWTH",
    "LINEAR_STEPS",
    "SOFTMAX_STEPS",
    "at_gap",
    "row_modes",
    "softmax_population",
    "tilted_overlaps",
]

_DEGREE = 4

COPIED = Symbol("A", positive=True)
"""Attention on the copied key of a softmax row, between zero and one."""


# --- one row, with the keys that carry a marked token told apart ---


def marked_sums(
    copied: tuple[Expr, Expr], marked: Expr, rest: Expr, certain: int, found: int, match: int
) -> tuple[Expr, Expr, Expr]:
    """One attention row: mass on the marked token; same-token pairs and target hits of the others, averaged over them.

    The copied key has attention ``copied[match]``; it carries the marked token if ``match``. Of the L - 1 others,
    ``certain + found`` carry it and have attention ``marked``, those that do not have ``rest``.
    """
    count = certain + found
    free = L - 1 - count
    pairs = rest**2 * (free + free * (free - 1) / (V - 1))
    if match:
        return copied[1] + count * marked, pairs, S.Zero
    copy = copied[0]
    return count * marked, pairs + copy**2 + 2 * copy * rest * free / (V - 1), copy + rest * free / (V - 1)


def averaged(row: Callable[[int, int], Expr], trials: Expr) -> Expr:
    """Average of ``row(match, found)`` over whether the copied key carries the marked token, and how many others do.

    The match has probability 1/V; ``found`` is binomial with ``trials`` and 1/V. The row is a polynomial in ``found`` of
    degree four at most, so that Newton's series sum_k Delta^k f(0) N (N-1) ... (N-k+1)/k! ends, and E of the falling
    factorial is trials (trials - 1) ... (trials - k + 1)/V^k.
    """
    values = [row(1, found) / V + row(0, found) * (1 - 1 / V) for found in range(_DEGREE + 1)]
    rational = FracField(sorted(Add(*values, trials, V).free_symbols, key=str), QQ)
    differences, average, chance = [rational.from_expr(value) for value in values], rational.zero, rational.one
    for order in range(_DEGREE + 1):
        average += differences[0] * chance
        chance *= rational.from_expr((trials - order) / ((order + 1) * V))
        differences = [after - before for before, after in pairwise(differences)]
    return factor(average.as_expr())


def tilted_overlaps(tilt: Symbol, certain: int) -> Tuple:
    """phi = E sum A_b A_b' delta(t_b, t_b') and psi = E sum A_b delta(t_b, t_copied) of a softmax row, to second order.

    The scores of the keys with the marked token are raised by ``tilt``; at ``tilt = 0`` the copied key has attention
    `COPIED` and the others share the rest.
    """
    mass, hit, rest = (Dummy(name) for name in ("m", "k", "o"))
    other = (1 - COPIED) / (L - 1)
    grown, norm = exp(tilt), 1 + (exp(tilt) - 1) * mass

    def term(row: Expr, pick: int, order: int) -> Expr:
        coefficient = row.diff(tilt, order).subs(tilt, 0) / factorial(order)

        def at(match: int, found: int) -> Expr:
            marked, *unmarked = marked_sums((COPIED, COPIED), other, other, certain, found, match)
            return coefficient.subs({mass: marked, hit: match * marked, rest: unmarked[pick]})

        return averaged(at, L - 1 - certain) * tilt**order

    pairs, hits = ((grown * mass) ** 2 + rest) / norm**2, (grown * hit + rest) / norm
    return Tuple(
        *(sum((term(row, pick, order) for order in range(3)), S.Zero) for pick, row in enumerate((pairs, hits)))
    )


def row_modes(marginal: Basic, pairs: Expr, hits: Expr, square: Expr = S.One, total: Expr = S.One) -> Expr:
    """The data term of a population whose rows have these averages; a row sums to one unless told otherwise.

    C is P L times a matrix of trace E sum A_b A_b' delta(t_b, t_b') whose entries sum to the mean square of the row
    sum; B likewise with the hits and the row sum. Invariance under S_V leaves one constant and V - 1 token modes.
    """
    token = mode(marginal, P * L * (pairs - square / V) / (V - 1), P * L * (hits - total / V) / (V - 1))
    return mode(marginal, P * L * square / V, P * L * total / V) + (V - 1) * token


def response(model: Model, marginal: Basic, averages: Iterable[Expr]) -> Tuple:
    """Slope and curvature along h of the data term and of the score cost gamma_g h^2 |I - 11^T/V|^2 / 2."""
    values, series = {}, []
    for average in averages:
        names = [Dummy() for _ in range(3)]
        values.update({name: average.diff(h, k).subs(h, 0) / factorial(k) for k, name in enumerate(names)})
        series.append(sum((name * h**k for k, name in enumerate(names)), S.Zero))
    data = row_modes(marginal, *series)
    slope, curvature = (data.diff(h, order).subs(h, 0).subs(values) for order in (1, 2))
    return Tuple(slope, curvature + model.score_decay * (V - 1))


# --- softmax and linear attention ---


def copied_attention(model: Model, attention: Expr) -> Expr:
    """Attention on the copied key: the row sums to one."""
    return factor(attention + (1 - attention) / L)


def same_token_overlaps(model: Model) -> Tuple:
    """phi(h) and psi(h) around the softmax row with `COPIED`; the query's own key is certain to carry its token."""
    return tilted_overlaps(h, certain=1)


def softmax_response(model: Model, marginal: Basic, overlaps: Tuple) -> Tuple:
    return response(model, marginal, overlaps)


def linear_response(model: Model, marginal: Basic) -> Tuple:
    """The same for A = u 11^T/L + c (Pi - 11^T/L) + h (delta(t_a, t_b) - 1/V)/L, whose row sums fluctuate with h."""
    level = (u - c) / L - h / (L * V)
    raised = level + h / L

    def row(value: Callable[[int, Expr, Expr, Expr, Expr], Expr]) -> Expr:
        def at(match: int, found: int) -> Expr:
            parts = marked_sums((level + c, raised + c), raised, level, 1, found, match)
            return value(match, (1 - match) * (level + c) + (L - 2 - found) * level, *parts)

        return averaged(at, L - 2)

    averages = (
        row(lambda match, others, mass, pairs, hits: mass**2 + pairs),
        row(lambda match, others, mass, pairs, hits: match * mass + hits),
        row(lambda match, others, mass, pairs, hits: (mass + others) ** 2),
        row(lambda match, others, mass, pairs, hits: mass + others),
    )
    return response(model, marginal, averages)


def relaxed_coordinate(model: Model, response: Tuple, copied: Expr = COPIED) -> Expr:
    slope, curvature = response
    return (-slope / curvature).subs(COPIED, copied)


def relaxed_action(model: Model, plane: Expr, response: Tuple, copied: Expr = COPIED) -> Expr:
    slope, curvature = response
    return plane - (slope**2 / (2 * curvature)).subs(COPIED, copied)


# --- checks ---

_VALUES: Mapping[Basic, Basic] = {P: S(20), gamma_w: Rational(6, 5), gamma_g: Rational(5, 7), T: Rational(1, 3)}
_SIZES = ((4, 3), (5, 2))
GROWTH = Rational(5, 2)
"""e^s of the softmax instances; every derivative is then rational."""
_PLANE = {u: Rational(3, 4), c: Rational(2, 5)}


def _problem(length: int, symbols: int) -> dict[Basic, Basic]:
    return {**_VALUES, L: S(length), V: S(symbols)}


def softmax_population(model: Model, length: int, symbols: int, apart: bool = False) -> Population:
    """All sequences, around softmax attention of gap log `GROWTH`."""

    def row(site: Site) -> list[Number]:
        copied = (site.position - model.shift) % length
        return [QQ.convert(GROWTH if key == copied else S.One) for key in range(length)]

    return Population(model, length, symbols, _problem(length, symbols), row, apart=apart)


def linear_population(model: Model, length: int, symbols: int) -> Population:
    """All sequences, around linear attention at `_PLANE`."""

    def row(site: Site) -> list[Number]:
        copied = (site.position - model.shift) % length
        level = (_PLANE[u] - _PLANE[c]) / length
        return [QQ.convert(level + (_PLANE[c] if key == copied else 0)) for key in range(length)]

    return Population(model, length, symbols, _problem(length, symbols), row, softmax=False)


def at_gap(expression: Basic, length: int, symbols: int) -> Basic:
    """A softmax result at the instance: exact where it holds s through e^s only."""
    copied = GROWTH / (GROWTH + length - 1)
    return expression.xreplace({**_problem(length, symbols), COPIED: copied, s: log(GROWTH)})


def _copied_claim(derivation: Derivation) -> Iterable[Comparison]:
    for length in (2, 7):
        row = [GROWTH, *[S.One] * (length - 1)]
        yield f"L = {length}", at_gap(derivation.value("copied attention"), length, 2), row[0] / sum(row, S.Zero)


def _series_claim(derivation: Derivation) -> Iterable[Comparison]:
    """Row sums of all sequences as power series in h."""
    for length, symbols in _SIZES:
        population = softmax_population(derivation.model, length, symbols)
        sums: list[list[Number]] = [[QQ(0)] * 3 for _ in range(2)]
        for site in population.sites():
            same = [token == site.own for token in site.tokens]
            weights = [[w, w * x, w * x / 2] for w, x in zip(population.row(site), same, strict=True)]
            norm = [sum(orders) for orders in zip(*weights, strict=True)]
            row = [_quotient(weight, norm) for weight in weights]
            aim = population.target(site)
            for b, entry in enumerate(row):
                if site.tokens[b] == aim:
                    sums[1] = [x + y for x, y in zip(sums[1], entry, strict=True)]
                for d, other in enumerate(row):
                    if site.tokens[b] == site.tokens[d]:
                        product = [sum(entry[k] * other[n - k] for k in range(n + 1)) for n in range(3)]
                        sums[0] = [x + y for x, y in zip(sums[0], product, strict=True)]
        count = length * symbols**length
        for name, ours, series in zip(("phi", "psi"), derivation.value("same-token overlaps"), sums, strict=True):
            explicit = sum((QQ.to_sympy(x / count) * h**k for k, x in enumerate(series)), S.Zero)
            yield f"{name}, L = {length}, V = {symbols}", at_gap(ours, length, symbols), explicit


def _quotient(a: list[Number], b: list[Number]) -> list[Number]:
    """The quotient of two power series, to second order."""
    result: list[Number] = []
    for n, value in enumerate(a):
        result.append((value - sum(result[k] * b[n - k] for k in range(n))) / b[0])
    return result


def _response_claim(
    name: str, population: Callable[[Model, int, int], Population]
) -> Callable[[Derivation], Iterable[Comparison]]:
    def claim(derivation: Derivation) -> Iterable[Comparison]:
        """Gradient and Hessian of the exact population action in all L + 4 invariant directions."""
        model = derivation.model
        for length, symbols in _SIZES:
            label = f"L = {length}, V = {symbols}"
            gradient, hessian = population(model, length, symbols).derivatives(invariant_directions(length, symbols))
            slope, curvature = at_gap(derivation.value(name), length, symbols).subs(_PLANE)
            cost = (model.score_decay * (V - 1)).subs(_problem(length, symbols))
            yield f"slope, {label}", slope, QQ.to_sympy(gradient[0])
            yield f"curvature, {label}", curvature, QQ.to_sympy(hessian[0][0]) + cost
            others = [entry for offset, entry in enumerate(gradient[4:]) if (offset - model.shift) % length]
            yield f"other circulants, {label}", [QQ.to_sympy(x - others[0]) for x in others], [S.Zero] * len(others)

    return claim


def _stability_claim(derivation: Derivation) -> Iterable[Comparison]:
    """The lowest eigenvalue of the Hessian at the exact stationary point, before and after the onset of copying."""
    for length, symbols, samples, gap in ((3, 3, 8, 1), (5, 2, 100, 12)):
        with mpmath.workdps(20):
            _, curvature = stationary_point(derivation.model, length, symbols, samples, mpmath.mpf(gap) / 10)
            lowest = min(mpmath.eigsy(curvature, eigvals_only=True))
        yield f"L = {length}, V = {symbols}, P = {samples}", lowest, mpmath.mpf(0)


def _relaxed_claim(
    plane: str, population: Callable[[Model, int, int], Population]
) -> tuple[Callable[[Derivation], Iterable[Comparison]], Callable[[Derivation], Iterable[Comparison]]]:
    def parabola(model: Model, length: int, symbols: int) -> tuple[Expr, Expr]:
        """Enumerated slope, and curvature with its score cost, along the same-token direction."""
        gradient, hessian = population(model, length, symbols).derivatives([same_token(symbols)])
        cost = (model.score_decay * (V - 1)).subs(_problem(length, symbols))
        return QQ.to_sympy(gradient[0]), QQ.to_sympy(hessian[0][0]) + cost

    def coordinate(derivation: Derivation) -> Iterable[Comparison]:
        """The enumerated parabola takes equal values on both sides of its minimum."""
        for length, symbols in _SIZES:
            slope, curvature = parabola(derivation.model, length, symbols)
            minimum = at_gap(derivation.value("relaxed coordinate"), length, symbols).subs(_PLANE)
            left, right = (slope * x + curvature * x**2 / 2 for x in (minimum - 1, minimum + 1))
            yield f"L = {length}, V = {symbols}", left, right

    def action(derivation: Derivation) -> Iterable[Comparison]:
        """The gain is half the enumerated slope times the coordinate."""
        for length, symbols in _SIZES:
            slope, _ = parabola(derivation.model, length, symbols)
            relaxed, flat, minimum = (
                at_gap(derivation.value(name), length, symbols).subs(_PLANE)
                for name in ("relaxed action", plane, "relaxed coordinate")
            )
            yield f"L = {length}, V = {symbols}", relaxed, flat + slope * minimum / 2

    return coordinate, action


def _relaxation(
    plane: str,
    copied: tuple[str, ...],
    arguments: tuple[Symbol, ...],
    population: Callable[[Model, int, int], Population],
) -> tuple[Step, Step]:
    """The last two steps, the same for both kinds of attention."""
    coordinate, action = _relaxed_claim(plane, population)
    return (
        Step(
            "relaxed coordinate",
            Function("h^*")(*arguments),
            relaxed_coordinate,
            "Where the action, to second order in h, is lowest: minus its slope over its curvature, g_h/H_hh.",
            takes=("same-token response", *copied),
            checks=(Check("enumerated parabola is even about it", "exact", coordinate),),
        ),
        Step(
            "relaxed action",
            Function(r"F_\mathrm{rel}")(*arguments),
            relaxed_action,
            "The action at the relaxed same-token coordinate, to second order in h.",
            takes=(plane, "same-token response", *copied),
            checks=(Check("gain is half the enumerated slope times h*", "numeric", action),),
        ),
    )


SOFTMAX_STEPS = (
    Step(
        "copied attention",
        Function("A")(s),
        copied_attention,
        "Attention on the copied key; the other L - 1 keys share the rest of the row equally.",
        takes=("softmax attention",),
        checks=(Check("softmax of an explicit row", "exact", _copied_claim),),
    ),
    Step(
        "same-token overlaps",
        Tuple(Function("phi")(h), Function("psi")(h)),
        same_token_overlaps,
        "Same-token pairs and target hits of one attention row to second order in h: the query's own key carries its "
        "token, the copied key does with probability 1/V, and of the other L - 2 keys a binomial number.",
        checks=(Check("power series of every row of all V^L sequences", "symbolic", _series_claim),),
    ),
    Step(
        "same-token response",
        Tuple(Symbol("g_h"), Symbol("H_hh")),
        softmax_response,
        "Slope and curvature of the population action along h: the only slope the plane has besides its own.",
        takes=("marginal action", "same-token overlaps"),
        checks=(
            Check(
                "enumerated gradient and Hessian in L + 4 directions",
                "exact",
                _response_claim("same-token response", softmax_population),
            ),
            Check("minimum in all L + 4 directions at the relaxed points", "positive", _stability_claim, quick=False),
        ),
    ),
    *_relaxation("softmax action", ("copied attention",), (s,), softmax_population),
)

LINEAR_STEPS = (
    Step(
        "same-token response",
        Tuple(Symbol("g_h"), Symbol("H_hh")),
        linear_response,
        "Slope and curvature along h of the population action around A on the plane; the row sums fluctuate with h.",
        takes=("marginal action",),
        checks=(
            Check(
                "enumerated gradient and Hessian in L + 4 directions",
                "exact",
                _response_claim("same-token response", linear_population),
            ),
        ),
    ),
    *_relaxation("linear action", (), (u, c), linear_population),
)
