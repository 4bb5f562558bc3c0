r"""The replica-symmetric potential of the training loss per dimension, and its reduction by symmetry.

.. math:: e = \sum_l \mathrm{tr}\Bigl[ \tfrac12 \hat q_l V_l - \tfrac12 \hat V_l q_l + \hat m_l^T m_l
          + \hat\theta_l^T \theta_l \Bigr] - \tfrac12 \sum_k \mathrm{tr}\, D_k^{-1} (w_k B_k + H_k) + \alpha\, \mathrm{E} M

with D_k = lambda + sum_l lam_lk Vhat_l, B_k = sum_l lam_lk qhat_l, and H_k the Gram matrix of
sum_l (sqrt d mhat_l p_l + lam_lk thetahat_l Q*) in the eigenspace k. Source: arXiv 2402.03902, result 1.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

import mpmath
from sympy import Add, Dummy, Expr, Rational, S, Symbol, factor, solve

from derive.averages import GaussianAverage, JumpIntegral
from derive.checks import Comparison
from derive.derivation import Check, Derivation, Step
from derive.positional_semantic import instances, replicas, ridge
from derive.positional_semantic.fields import random_fields
from derive.positional_semantic.model import Eigenspace, Matrix, Model, alpha
from derive.positional_semantic.overlaps import Overlaps, conjugates, fields, overlaps, paired
from derive.state_evolution import stationary

__all__ = ["REDUCED_STEPS", "STEPS", "is_reducible", "pairs", "space_values", "symmetric_place", "tidy"]


def pairs(model: Model) -> list[tuple[str, Symbol, Symbol]]:
    """(q, V, m or theta; overlap; the conjugate it multiplies) for every independent entry of every token."""
    return paired(overlaps(model), conjugates(model))


def space_moments(model: Model, space: Eigenspace) -> tuple[Matrix, Matrix, Matrix]:
    """D, B and H of one eigenspace in the conjugates; D at temperature one over beta is beta times this D."""
    size = model.student_rank
    D, B, H = model.decay * Matrix.eye(size), Matrix.zeros(size, size), Matrix.zeros(size, size)
    hats = conjugates(model)
    for lam, hat in zip(space.eigenvalues, hats, strict=True):
        D, B = D + lam * hat.V, B + lam * hat.q
    for (i, one), (j, two) in product(enumerate(hats), repeat=2):
        cross = space.eigenvalues[j] * one.m * space.cross[i, :] * two.theta.T
        H += space.positions[i, j] * one.m * two.m.T + cross + cross.T
        H += space.eigenvalues[i] * space.eigenvalues[j] * one.theta * space.teacher * two.theta.T
    return D, B, H


def space_values(model: Model, space: Eigenspace) -> dict[Symbol, Expr]:
    """D, B and H of the prior in one eigenspace: noise in each of its directions, the signal in the ones it lies in."""
    D, B, H = space_moments(model, space)
    values: dict[Symbol, Expr] = {}
    for symbols, entries in (
        (replicas.stiffness(model), D),
        (replicas.noise(model), space.weight * B),
        (replicas.signal(model), H),
    ):
        values |= dict(zip(symbols, entries, strict=True))
    return values


def token_pairing(pairing: Expr, token: Overlaps, hat: Overlaps) -> Expr:
    """The pairing summed over all entries of the matrices of one token."""
    total = S.Zero
    for entries, names in (
        ((token.q, hat.V), (replicas.q, replicas.Vhat)),
        ((token.V, hat.q), (replicas.V, replicas.qhat)),
        ((token.m, hat.m), (replicas.m, replicas.mhat)),
        ((token.theta, hat.theta), (replicas.theta, replicas.thetahat)),
    ):
        others = dict.fromkeys(pairing.free_symbols - {*names}, S.Zero)
        for pair in zip(*entries, strict=True):
            total += pairing.xreplace({**others, **dict(zip(names, pair, strict=True))})
    return total


def potential(model: Model, prior: Expr, pairing: Expr, channel: Expr) -> Expr:
    """The training loss per dimension: prior over the eigenspaces, pairing over the tokens, alpha times the channel."""
    total = alpha * channel
    for token, hat in zip(overlaps(model), conjugates(model), strict=True):
        total += token_pairing(pairing, token, hat)
    for space in model.spaces:
        total += prior.xreplace(space_values(model, space))
    return total


# --- the reduction by symmetry: two tokens, rank one ---


def is_reducible(model: Model) -> bool:
    """Two tokens, rank one, and a model that the exchange of the tokens leaves as it is."""
    if (model.length, model.student_rank, model.teacher_rank) != (2, 1, 1) or _symmetric_target(model) is None:
        return False
    return all(
        space.eigenvalues[0] == space.eigenvalues[1]
        and space.positions[0, 0] == space.positions[1, 1]
        and space.cross[0] == -space.cross[1]
        for space in model.spaces
    )


def _symmetric_target(model: Model) -> dict[Symbol, Expr] | None:
    """The value of an entry of A that makes it symmetric under the exchange; None if there is none."""
    gap = model.target[0, 0] - model.target[1, 1]
    if gap == 0:
        return {}
    symbols = sorted(gap.free_symbols, key=lambda symbol: str(symbol.name), reverse=True)
    return {symbols[0]: solve(gap, symbols[0])[0]} if symbols else None


def symmetric_place(model: Model) -> dict[Symbol, Expr]:
    """The points that the exchange (c_1, c_2, Y_1, Y_2) -> -(c_2, c_1, Y_2, Y_1) leaves in place.

    Both tokens have the same q, V and theta and opposite m; conjugates share their sum.
    """
    values = dict(_symmetric_target(model) or {})
    for sign, token, hat in zip((1, -1), overlaps(model), conjugates(model), strict=True):
        values |= {token.q[0]: replicas.q, token.V[0]: replicas.V}
        values |= {token.m[0]: sign * replicas.m, token.theta[0]: replicas.theta}
        values |= {hat.q[0]: replicas.qhat / 2, hat.V[0]: replicas.Vhat / 2}
        values |= {hat.m[0]: sign * replicas.mhat / 2, hat.theta[0]: replicas.thetahat / 2}
    return values


def tidy(expression: Expr) -> Expr:
    """Each term factored, with averages and integrals over jumps held fixed."""
    held = expression.atoms(GaussianAverage, JumpIntegral)
    averages = {node: Dummy(f"a{place}") for place, node in enumerate(held)}
    terms = Add.make_args(expression.xreplace(averages).expand() if averages else expression)
    return Add(*map(factor, terms)).xreplace({name: node for node, name in averages.items()})


def reduced_potential(model: Model, general: Expr) -> Expr:
    """The general potential at its symmetric points: stationary there, it is stationary in all directions."""
    return tidy(general.xreplace(symmetric_place(model)))


# --- checks ---

_REDUCED = (
    *(replicas.q, replicas.V, replicas.m, replicas.theta),
    *(replicas.qhat, replicas.Vhat, replicas.mhat, replicas.thetahat),
)


def _ridge_claim(derivation: Derivation) -> Iterable[Comparison]:
    """With a quadratic loss: the training loss of ridge regression, where the potential is stationary in everything."""
    model = derivation.model
    for seed in (1, 2):
        solution = ridge.solved(model, seed)
        chain = ridge.with_loss(derivation, ridge.quadratic_loss(model))
        value = chain.value("potential")
        yield f"energy, instance {seed}", _at(value, solution.values), solution.energy
        for _, *names in pairs(model):
            for name in names:
                slope = _at(value.diff(name), solution.values)
                yield f"slope in {name}, instance {seed}", slope, mpmath.mpf(0)


def _exchange_claim(derivation: Derivation) -> Iterable[Comparison]:
    """The loss of a sample is the same after the exchange of the two tokens with a flip of all fields."""
    model = derivation.model
    loss = derivation.value("sufficient loss").xreplace(symmetric_place(model))
    for seed in (1, 2, 3):
        values = random_fields(model, seed)
        flipped: dict[Symbol, Expr] = {}
        for name in ("z", "Y"):
            one, two = fields(name, 2, 1)
            flipped |= {one: -values[two], two: -values[one]}
        known = instances.parameters(model, seed)
        yield f"instance {seed}", loss.xreplace({**known, **values}), loss.xreplace({**known, **flipped})


def _symmetric_claim(derivation: Derivation) -> Iterable[Comparison]:
    """A quadratic loss with that symmetry: value and slopes at symmetric points, and none that lead out of them."""
    model = derivation.model
    chain = ridge.with_loss(derivation, ridge.quadratic_loss(model))
    whole, ours, place = chain.value("potential"), chain.value("reduced potential"), symmetric_place(model)
    for seed in (1, 2):
        values = {**instances.parameters(model, seed), alpha: S(2)}
        values |= {name: S(3 + 2 * index + seed) / 7 for index, name in enumerate(_REDUCED)}
        values |= {replicas.q: S(2 + seed)}
        full = {**values, **{name: value.xreplace(values) for name, value in place.items()}}
        yield f"value, instance {seed}", _at(ours, values), _at(whole, full)
        for name in _REDUCED:
            parts = [(key, value.diff(name)) for key, value in place.items() if value.has(name)]
            slopes = [(_at(whole.diff(key), full), weight) for key, weight in parts]
            total = sum((slope * weight for slope, weight in slopes), S.Zero)
            yield f"slope in {name}, instance {seed}", _at(ours.diff(name), values), total
            first, second = (slope / weight for slope, weight in slopes)
            yield f"slope out of the symmetric points, {name}, instance {seed}", first, second


def _difference_claim(derivation: Derivation) -> Iterable[Comparison]:
    """The loss itself: each conjugate against finite differences of the averaged Moreau envelope, five points wide.

    Tokens with m and theta both at work, so that no slope vanishes by symmetry.
    """
    value, model = derivation.value("reduced potential"), derivation.model
    point = {parameter.symbol: parameter.default or S.One for parameter in model.parameters} | {alpha: S(2)}
    point |= {replicas.q: Rational(1, 9), replicas.V: S(8), replicas.m: Rational(1, 12), replicas.theta: Rational(1, 7)}
    (average,) = value.atoms(GaussianAverage)
    hats = dict(zip(_REDUCED[:4], (replicas.Vhat, replicas.qhat, replicas.mhat, replicas.thetahat), strict=True))
    for overlap, conjugate in hats.items():
        update = stationary(value, overlap, conjugate).xreplace(point)
        step, total = point[overlap] / 64, S.Zero
        for move, weight in ((-2, 1), (-1, -8), (1, 8), (2, -1)):
            total += weight * average.xreplace({**point, overlap: point[overlap] + move * step}) / (12 * step)
        pairing = value.diff(overlap).diff(conjugate)
        yield f"{conjugate}", -point[alpha] * total / pairing, update


def _at(expression: Expr, values: dict[Symbol, Expr]) -> Expr:
    return instances.closed(expression.xreplace(values))


_PAPER = "arXiv 2402.03902, result 1"

STEPS = (
    Step(
        "potential",
        Symbol("e"),
        potential,
        "Per dimension: the prior over the eigenspaces, the pairing over tokens and entries, alpha times the channel; at its"
        " stationary point it is the training loss.",
        takes=("prior", "pairing", "channel"),
        checks=(Check("ridge regression by its deterministic equivalent", "numeric", _ridge_claim),),
        source=_PAPER,
    ),
)

REDUCED_STEPS = (
    Step(
        "reduced potential",
        Symbol("e"),
        reduced_potential,
        "Exchange of the two tokens with a flip of all fields is a symmetry; at a point that it leaves in place the potential"
        " is stationary in all other directions, so q, V and theta are equal and m opposite.",
        takes=("potential",),
        checks=(
            Check("the loss is the same after the exchange", "numeric", _exchange_claim),
            Check("values and slopes of the general potential at symmetric points", "exact", _symmetric_claim),
            Check(
                "finite differences of the averaged envelope give the conjugates", "average", _difference_claim, False
            ),
        ),
        source=_PAPER,
    ),
)
