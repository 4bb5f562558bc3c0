r"""The linear head, A = S/L: its effective action over uniform pooling u and copying c (claim C3 of arXiv 2606.12058).

.. math:: F(u, c) = \frac{\gamma_g}{2}\bigl[R_1 u^2 + L^2 (L-1) c^2\bigr] + D(u, c)
"""

from __future__ import annotations

import random
from collections.abc import Iterable

import mpmath
from sympy import And, Eq, Expr, Function, Piecewise, Rational, S, Symbol, Tuple, lambdify, nan, sqrt
from sympy.matrices import ImmutableDenseMatrix

from derive.action import EffectiveAction, Observable, OrderParameter, Phase, Symmetry
from derive.asymptotic import AsymptoticSeries, newton, series_terms
from derive.checks import Comparison
from derive.copy_head import landau, observables, posterior, relaxed, scaling, signed, symmetry
from derive.copy_head.model import CONTROL, DEFAULT, PARAMETERS, L, Model, P, T, V, c, c_1, c_G, gamma_g, gamma_w, u
from derive.copy_head.symbols import GLOSSARY
from derive.copy_head.symmetry import Circulant, attention_matrix, target
from derive.derivation import Check, Derivation, Step

__all__ = ["ACTION_STEPS", "action", "asymptotics", "derivation"]


def linear_action(model: Model, population: Expr, uniform_cost: Expr) -> Expr:
    """Score cost plus data: the copy pattern is the score matrix L c (Pi - 11^T/L) of the position-position block."""
    pattern = target(model)
    across = Circulant({**pattern.powers}, -1 / L)
    copy_cost = L**2 * (across.T @ across).trace
    return model.score_decay / 2 * (uniform_cost * u**2 + copy_cost * c**2) + population


def pair_action(model: Model, action: Expr) -> Expr:
    """The same action in the pair of the paper, A = c_1 11^T/L + c_G Pi."""
    return action.subs({u: c_1 + c_G, c: c_G}, simultaneous=True)


def stationary_box(model: Model, uniform_cost: Expr) -> Tuple:
    """Bounds on |u| and |c| at any stationary point.

    On a ray each mode of the data term reads -K t^2 / (2 (w + Y t^2)); its radial slope is at most K/(4Y), reached at
    Y t^2 = w. With K/Y <= 2 kappa P L/V for each of the V modes (Cauchy-Schwarz) the score cost, half of its radial slope,
    is at most kappa P L/4; the entropy only adds to the slope.
    """
    ray, slope = Symbol("t", positive=True), Symbol("w", positive=True)
    ratio = ray / (slope + ray) ** 2 * slope
    steepest = ratio.subs(ray, slope)
    per_mode = 2 * model.loss_factor * P * L / V
    total = V * per_mode * steepest
    return Tuple(sqrt(total / (model.score_decay * uniform_cost)), sqrt(total / (model.score_decay * L**2 * (L - 1))))


def window(model: Model, uniform_cost: Expr) -> Tuple:
    """Range of P scanned for transitions: around sqrt(gamma_w gamma_g) V^2 and sqrt(gamma_w gamma_g) L^(3/2) V^(1/2)."""
    strength = 2 * model.loss_factor * L
    pool = V * sqrt(model.weight_decay * model.score_decay * uniform_cost) / strength
    cross = L * sqrt(model.weight_decay * model.score_decay * L * V) / strength
    entropic = T * V**2 / strength
    return Tuple(pool / 64, 64 * (V * pool / sqrt(uniform_cost) + cross + entropic))


# --- checks ---

_RIDGES = {gamma_w: Rational(6, 5), gamma_g: Rational(5, 7)}
_VALUES = {L: S(3), V: S(2), P: S(7), T: Rational(1, 3), **_RIDGES}


def _score_claim(derivation: Derivation) -> Iterable[Comparison]:
    """|G|^2 of explicit scores: the uniform part in all four blocks, the copy part in the position-position block."""
    model = derivation.model
    for label, values, _, _ in symmetry.instances(model):
        length, symbols, uniform, copy = (values[symbol] for symbol in (L, V, u, c))
        pattern = attention_matrix(model, int(length), S.Zero, copy)
        # Lagrange: the share of each constant block is proportional to one over its size squared, per entry constant
        entries = (symbols**2, symbols * length, length * symbols, length**2)
        level = uniform / sum(1 / size for size in entries)
        shared = sum(size * (level / size) ** 2 for size in entries)
        square = shared + length**2 * (pattern.T * pattern).trace()
        cost = derivation.value("linear action") - derivation.value("population action")
        yield label, cost.subs(values), (model.score_decay / 2).subs(values) * square


def _pair_claim(derivation: Derivation) -> Iterable[Comparison]:
    """The pair action against the plane action at the u and c of A = c_1 11^T/L + c_G Pi, measured from the matrix."""
    for label, values, _, shift in symmetry.instances(derivation.model):
        length = shift.rows
        first, second = values[u], values[c]
        flat = ImmutableDenseMatrix.ones(length, length) / length
        matrix = first * flat + second * shift
        uniform = sum(matrix, S.Zero) / length
        copy = ((matrix - uniform * flat).T * shift).trace() / (length - 1)
        ours = derivation.value("pair action").subs({**values, c_1: first, c_G: second})
        yield label, ours, derivation.value("linear action").subs({**values, u: uniform, c: copy})


def _box_claim(derivation: Derivation) -> Iterable[Comparison]:
    """Outside the box the action grows along rays from the origin."""
    action = derivation.value("linear action")
    names = tuple(_VALUES)
    slope = lambdify((u, c, *names), u * action.diff(u) + c * action.diff(c), "mpmath")
    bounds = lambdify(names, derivation.value("linear box"), "mpmath")
    draw = random.Random(1)
    for index in range(40):
        problem = {**_VALUES, L: draw.randint(2, 40), V: draw.randint(2, 12), P: draw.randint(1, 5000)}
        numbers = [mpmath.mpf(value.p) / value.q for value in map(S, problem.values())]
        # one coordinate outside its bound, the other anywhere
        factors = [mpmath.mpf(draw.randint(100, 300)) / 100, mpmath.mpf(draw.randint(-300, 300)) / 100]
        point = [
            factor * bound for factor, bound in zip(factors[:: 1 if index % 2 else -1], bounds(*numbers), strict=True)
        ]
        yield f"ray {index}", slope(*point, *numbers), mpmath.mpf(0)


def _tight_claim(derivation: Derivation) -> Iterable[Comparison]:
    """Where u = c and Y t^2 = w every inequality is an equality: the slope of the data balances the cost of the box."""
    model = derivation.model
    data = derivation.value("population action").subs(T, 0)
    slope = u * data.diff(u) + c * data.diff(c)
    for values in (_VALUES, {**_VALUES, L: S(9), V: S(5)}):
        point = sqrt(model.weight_decay / (2 * model.loss_factor * P * L / V)).subs(values)
        cost = derivation.value("linear action").subs(T, 0) - data
        bounds = derivation.value("linear box").subs(values)
        for corner in ({u: bounds[0], c: S.Zero}, {u: S.Zero, c: bounds[1]}):
            yield "equality", 2 * cost.subs(corner).subs(values), -slope.subs({u: point, c: point}).subs(values)


def _window_claim(derivation: Derivation) -> Iterable[Comparison]:
    """The scales are those of the transitions in four limits: pooling, cold and hot; the leading terms of both laws."""
    low, high = derivation.value("linear window").subs(_RIDGES)
    names = ("pooling transition", "pooling law", "crossover law")
    pooling, pooled, crossover = (derivation.value(name).subs(_RIDGES) for name in names)
    stiffness = derivation.value("stiffness at zero").subs(_RIDGES).det()
    with mpmath.workdps(200):
        cold = {L: S(10) ** 40, V: S(7), T: S.Zero}
        yield "pooling at L = 10^40", 64 * low.subs(cold), pooling.subs(cold)
        hot = {L: S(30), V: S(7), T: S(10) ** 40}
        scale = high.subs(hot) / 64
        (found,), _ = newton((stiffness.subs(hot),), (P,), (mpmath.mpf(scale.evalf(100)),))
        yield "pooling at T = 10^40", scale, found
        leading = [series_terms(law, L)[0] * scale for law, scale in ((crossover[0], sqrt(L**3 * V)), (pooled, V**2))]
        for name, law, power in zip(("crossover", "pooling"), leading, (150, 5), strict=True):
            wide = {L: S(10) ** power, V: S(10) ** 40, T: S.Zero}
            yield f"{name} law at L = 10^{power}, V = 10^40", high.subs(wide) / 64, law.subs(wide)


_PAPER = "arXiv 2606.12058"

ACTION_STEPS = (
    Step(
        "linear action",
        Function("F")(u, c),
        linear_action,
        "The scores are L A: the uniform part at its cheapest, the copy part L c (Pi - 11^T/L), and the data term.",
        takes=("population action", "uniform score cost"),
        checks=(Check("|G|^2 of explicit scores, block by block", "numeric", _score_claim),),
        source=f"{_PAPER}, claims C2 and C3",
    ),
    Step(
        "pair action",
        Function("F")(c_1, c_G),
        pair_action,
        "In the pair of the paper, A = c_1 11^T/L + c_G Pi, so that c_G = c and c_1 = u - c.",
        takes=("linear action",),
        checks=(Check("u and c measured from explicit matrices", "numeric", _pair_claim),),
        source=f"{_PAPER}, claim C2",
    ),
    Step(
        "linear box",
        Tuple(Symbol(r"\max|u|"), Symbol(r"\max|c|")),
        stationary_box,
        "At a stationary point the radial slopes of score cost and data cancel; the data's is bounded, so u and c are.",
        takes=("uniform score cost",),
        checks=(
            Check("outside the box the action grows along every ray", "positive", _box_claim),
            Check("the bound is attained at u = c", "numeric", _tight_claim),
        ),
    ),
    Step(
        "linear window",
        Tuple(Symbol(r"P_\mathrm{low}"), Symbol(r"P_\mathrm{high}")),
        window,
        "Search range of the control: a factor 64 around the scales of the pooling transition and of the crossover.",
        takes=("uniform score cost",),
        checks=(Check("scales of the transitions in four limits", "numeric", _window_claim),),
    ),
)


def derivation(model: Model = DEFAULT) -> Derivation:
    """The derivation of the linear head from the joint posterior to its thresholds and scaling laws."""
    steps = (
        *posterior.STEPS,
        *symmetry.STEPS,
        *ACTION_STEPS,
        *observables.LINEAR_STEPS,
        *landau.STEPS,
        *relaxed.LINEAR_STEPS,
        *scaling.LINEAR_STEPS,
        *signed.STEPS,
    )
    return Derivation("copy-head/linear", model, steps, "Copy head with linear attention", GLOSSARY)


def action(model: Model = DEFAULT) -> EffectiveAction:
    """The effective action of the linear head over (u, c), driven by P."""
    chain = derivation(model)
    bounds, weight = chain.value("linear box"), chain.value("copy weight")
    return EffectiveAction(
        name="copy-head/linear",
        value=chain.value("linear action"),
        order_parameters=(
            OrderParameter(u, "uniform pooling: row sum of the mean attention", -bounds[0], bounds[0]),
            OrderParameter(c, "copying: copy entry of the mean attention minus the others", -bounds[1], bounds[1]),
        ),
        control=CONTROL,
        parameters=PARAMETERS,
        window=tuple(chain.value("linear window")),
        size=L,
        closed_forms=(("instability", Piecewise((chain.value("pooling transition"), Eq(T, 0)), (nan, True))),),
        symmetries=(Symmetry("sign flip of the scores", {u: -u, c: -c}),),
        phases=(
            Phase("zero", And(Eq(u, 0), Eq(c, 0))),
            Phase("anti-copy", u * c < 0),
            Phase("copy", weight > Rational(1, 2)),
            Phase("pooling", weight <= Rational(1, 2)),
        ),
        observables=(
            Observable("copy_weight", weight, "share of the copy pattern in |A|^2", crossover=Rational(1, 2)),
            Observable("c_1", u - c, "uniform coefficient in A = c_1 11^T/L + c_G Pi"),
            Observable("loss", chain.value("loss"), "mean squared error per position on new sequences"),
        ),
    )


def asymptotics(model: Model = DEFAULT) -> tuple[AsymptoticSeries, ...]:
    """The scaling laws of the linear head, as its derivation states them."""
    return scaling.linear_series(derivation(model))
